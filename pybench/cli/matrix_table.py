"""`pybench strategies --matrix`: the property table for a terminal, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pybench.analysis.properties import PROPERTIES, Held, properties_of
from pybench.cli.fitted_table import Column, print_with_notes, say
from pybench.cli.output import data_console, printed

if TYPE_CHECKING:
    from pybench.strategies import Strategy

    Row = tuple[Strategy, dict[str, Held]]


def matrix_text(strategies: Sequence[Strategy]) -> str:
    """A row for each lock, and below the table what each column means and what proves it."""
    rows = [(strategy, properties_of(strategy)) for strategy in strategies]
    console = data_console()
    columns = [
        Column("lock", lambda row: row[0].name, left=True, is_kept=True),
        *(Column(one.title, _value(one.key), left=True) for one in PROPERTIES),
    ]
    print_with_notes(
        console, rows, columns, lambda _: "", ["Default arguments. What each column means, and its proof:"]
    )
    for one in PROPERTIES:
        say(console, f"{one.title}: {one.meaning}")
        for proof in dict.fromkeys(cells[one.key].proof for _, cells in rows):
            console.print(f"  {proof}", style="dim", soft_wrap=True)
    return printed(console).lstrip()


def matrix_json(strategies: Sequence[Strategy]) -> list[dict[str, Any]]:
    """Every cell with its value, whether it is good (null: neither), and its proof."""
    return [
        {"strategy": strategy.name, **{key: asdict(held) for key, held in properties_of(strategy).items()}}
        for strategy in strategies
    ]


def _value(key: str) -> Callable[[Row], str]:
    return lambda row: row[1][key].value
