"""Generates the data dictionary of the manual from `pybench/columns.py`.

    python -m tools.column_dictionary

rewrites the tables of docs/columns.md. A test compares both; no table is typed by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from pybench.columns import GROUPS, Column, Over
from tools import redis_vs_postgres

MANUAL = Path(__file__).parents[1] / "docs" / "columns.md"
BEGIN, END = "<!-- from pybench/columns.py -->\n", "<!-- end of columns -->\n"


def tables() -> str:
    """A table for each group of columns, under its heading."""
    return "\n".join("\n".join([f"## {title}", "", *_table(group), ""]) for title, group in GROUPS.items())


def told() -> str:
    """The text of the page between its marks."""
    return redis_vs_postgres.told(MANUAL, BEGIN, END)


def _table(group: Sequence[Column]) -> Iterator[str]:
    yield "| column | unit | trials | summary | meaning |"
    yield "| :-- | :-- | :-- | :-- | :-- |"
    for _, same in itertools.groupby(group, key=lambda one: (one.meaning, one.unit, one.over, one.in_summary)):
        columns = list(same)
        one = columns[0]
        names = ", ".join(f"`{column.name}`" for column in columns)
        over = "" if one.over in (None, Over.OWN) else one.over.value
        where = "yes" if one.in_trials and one.in_summary else "only there" if one.in_summary else ""
        yield f"| {names} | {one.unit} | {over} | {where} | {one.meaning} |"


def main() -> None:
    """Rewrite the page."""
    redis_vs_postgres.write(MANUAL, tables(), BEGIN, END)


if __name__ == "__main__":
    main()
