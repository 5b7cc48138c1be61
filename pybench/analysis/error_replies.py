"""The error replies of a run: which calls a server refused, in which phase of a grant, with the server's own text.

Promises: replies in the warm-up and at the end of each trial are counted, too. A record without the column has no
error replies.
Does not do: drawing conclusions from error replies; counting conflicts between transactions (see `conflicts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.masking import without
from pybench.numbers import format_exact

if TYPE_CHECKING:
    import pandas as pd

    from pybench.core_results import ErrorReply

COLUMN = "error_replies"
COUNT_COLUMN = "error_reply_count"

_CALLS = {
    "acquire": "acquire call",
    "renew": "renewal call",
    "release": "release call",
    "guard": "guarded call",
    "other": "other call",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Error replies of one code that one server gave to one strategy in one phase, over all trials that were read."""

    strategy: str
    server: str
    """The server's label, with its number where the lock has several."""
    phase: str
    """`acquire`, `renew`, `release`, `guard` or `other`."""
    code: str
    """The first word of a Redis error, or the SQLSTATE of a Postgres error."""
    count: int
    in_warmup: int
    first: str
    """The text of the first such reply."""
    cells: frozenset[str]

    @property
    def sentence(self) -> str:
        """Such as `mutex: redis 7.0.15 refused 93 release calls: "NOPERM User u has no permissions ..."`."""
        calls = f"{format_exact(self.count)} {_CALLS.get(self.phase, 'call')}{'' if self.count == 1 else 's'}"
        warmup = f" ({format_exact(self.in_warmup)} of them before the window)" if self.in_warmup else ""
        return f'{self.strategy}: {self.server} refused {calls}{warmup}: "{self.first}"'

    @property
    def remedy(self) -> str | None:
        """The command that grants the missing right; None where the refusal has another cause."""
        # Imported here: few records need this, and the modules that talk to servers take long to import.
        from pybench.servers.rights import NO_PRIVILEGE, lacks_right, postgres_hint, redis_hint

        if not lacks_right(self.code, self.first):
            return None
        return postgres_hint(self.first) if self.code == NO_PRIVILEGE else redis_hint(self.strategy)


def mask(rows: Iterable[ErrorReply], secrets: Iterable[str]) -> None:
    """Put stars for each of `secrets` in the texts of `rows`: an error text may quote the call."""
    known = frozenset(secrets)
    for row in rows:
        row["first"], row["code"] = without(row["first"], known), without(row["code"], known)


def encode(rows: Iterable[ErrorReply], servers: Sequence[str], guard: str | None = None) -> str:
    """The text of the column: the error replies that the core counted, each with the label of its server.

    `guard` is the label of the server of a guarded resource, whose number follows those of `servers`.
    """
    named = [
        {**row, "server_label": guard if row["phase"] == "guard" and guard else _label(servers, row["server"])}
        for row in rows
    ]
    return json.dumps(named, sort_keys=True)


def decode(text: object) -> list[dict[str, Any]]:
    """The error replies of one trial; empty for a record without the column."""
    if not isinstance(text, str):
        return []
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def refusals(trials: pd.DataFrame) -> list[Refusal]:
    """The error replies of all `trials`, the most frequent first."""
    if COLUMN not in trials.columns:
        return []
    found: dict[tuple[str, ...], Refusal] = {}
    for cell, strategy, text in zip(trials["cell"], trials["strategy"], trials[COLUMN], strict=True):
        for row in decode(text):
            one = _refusal(cell, strategy, row)
            key = (one.strategy, one.server, one.phase, one.code)
            before = found.get(key)
            found[key] = one if before is None else _sum(before, one)
    return sorted(found.values(), key=lambda refusal: -refusal.count)


def _refusal(cell: str, strategy: str, row: Mapping[str, Any]) -> Refusal:
    return Refusal(
        strategy=strategy,
        server=row["server_label"],
        phase=row["phase"],
        code=row["code"],
        count=row["count"],
        in_warmup=row["warmup"],
        first=row["first"],
        cells=frozenset({cell}),
    )


def _sum(earlier: Refusal, later: Refusal) -> Refusal:
    return replace(
        earlier,
        count=earlier.count + later.count,
        in_warmup=earlier.in_warmup + later.in_warmup,
        cells=earlier.cells | later.cells,
    )


def _label(servers: Sequence[str], number: int) -> str:
    if not 0 <= number < len(servers):
        return f"server {number + 1}"
    return servers[number] if len(servers) == 1 else f"{servers[number]} (server {number + 1})"
