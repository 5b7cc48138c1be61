"""Why a lock and a guarded resource do not go together.

Promises: pure functions of a cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.strategies import CATALOGUE, Judge, Promise, ServerKind

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell


def why_no_guard(cell: Cell) -> str | None:
    """The first reason against the guard of `cell`; None where the works of the lock can be guarded."""
    strategy, guard = CATALOGUE[cell.strategy], cell.guard
    if strategy.needs_guard and guard.kind not in ("counter", "stock"):
        return (
            f"{cell.strategy} takes no lock, and needs work that is one step; use guard: counter, or guard: stock(100)"
        )
    if not guard:
        return None
    if strategy.uses_rows and strategy.judged_by is not Judge.BELIEF:
        return f"{cell.strategy} writes a row of its own at each release, and is judged by it; use guard: none"
    if strategy.permits(cell.args) > 1:
        return f"{cell.strategy} lets several clients work on one key, so their writes collide; use guard: none"
    if guard.constraint and cell.guard_kind is not ServerKind.POSTGRES:
        return "constraint=on is a CHECK of a table, which Redis does not have; use guard_on: postgres, or drop it"
    if guard.kind == "fenced-write" and Promise.FENCE not in strategy.promises:
        return f"{cell.strategy} has no fence for fenced-write; use {_fenced()}, or guard: counter"
    if guard.keys != cell.keys_per_grant:
        return _wrong_keys(cell)
    return None


def _fenced() -> str:
    fenced = [one for one in CATALOGUE.values() if Promise.FENCE in one.promises and one.judged_by is Judge.BELIEF]
    return " or ".join(one.name for one in fenced)


def _wrong_keys(cell: Cell) -> str:
    if cell.guard.keys == 1:
        return f"{cell.guard.text} is one key per grant; use keys_per_grant: 1, or guard: transfer(100)"
    if CATALOGUE[cell.strategy].takes_many_keys:
        return f"{cell.guard.text} takes two accounts per grant; use keys_per_grant: 2"
    able = " or ".join(strategy.name for strategy in CATALOGUE.values() if strategy.takes_many_keys)
    return f"{cell.guard.text} takes two accounts per grant, and {cell.strategy} takes one key; use {able}"
