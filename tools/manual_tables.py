"""The tables of the manual that the code defines: every axis of a matrix, and every column of the records.

    python -m tools.manual_tables

writes them into docs/matrix.md and docs/columns.md. A test compares; nothing in them is typed by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, get_args, get_origin

from pybench.column import Column, Over
from pybench.columns import GROUPS
from pybench.matrix.axes import Axis
from pybench.matrix.cells import AXES
from tools.redis_vs_postgres import told, write

MANUAL = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- from pybench/columns.py -->\n", "<!-- end of columns -->\n"
BEGIN_AXES, END_AXES = "<!-- from pybench/matrix/cells.py -->\n", "<!-- end of axes -->\n"


def columns() -> str:
    """A table for each group of columns, under its heading; those of the axes come first."""
    groups = {"The cell": list(_of_cells()), **{title: list(_table(group)) for title, group in GROUPS.items()}}
    return "\n".join("\n".join([f"## {title}", "", *rows, ""]) for title, rows in groups.items())


def axes() -> str:
    """The table of the axes."""
    rows = ["| axis | default | column | values |", "|---|---|---|---|"]
    for axis in AXES.values():
        default = "none" if axis.default is None else f"`{axis.text(axis.default)}`"
        meaning = f"{axis.meaning[0].lower()}{axis.meaning[1:]}{_bounds(axis)}"
        rows.append(f"| `{axis.name}` | {default} | `{axis.column}` | {meaning} |")
    return "".join(f"{row}\n" for row in rows)


def _bounds(axis: Axis) -> str:
    """The least and the highest of an axis that counts, behind its meaning."""
    if get_origin(axis.type) is not Annotated or axis.column_type != "int64":
        return ""
    _, interval = get_args(axis.type)
    return f"; {interval.ge:,} to {interval.le:,}"


def committed() -> dict[str, str]:
    """What the manual says between its marks, by the name of the page."""
    return {
        "columns.md": told(MANUAL / "columns.md", BEGIN, END),
        "matrix.md": told(MANUAL / "matrix.md", BEGIN_AXES, END_AXES),
    }


def _of_cells() -> Iterator[str]:
    yield "| column | unit | meaning |"
    yield "| :-- | :-- | :-- |"
    yield "| `cell` |  | the id of the cell: its strategy, and each axis that is not at its default |"
    arguments = "its arguments as text, such as `fanout=sequential, nodes=5`; empty for defaults"
    yield f"| `strategy`, `args` |  | the lock, and {arguments} |"
    yield "| `server` |  | product and version of the servers |"
    for axis in AXES.values():
        if axis.name != "strategy":
            idle = "; n/a in a closed loop" if axis.only_open or axis.name == "rate" else ""
            yield f"| `{axis.column}` | {axis.unit} | the axis [`{axis.name}`](matrix.md#axes){idle} |"


def _table(group: Sequence[Column]) -> Iterator[str]:
    yield "| column | unit | trials | summary | meaning |"
    yield "| :-- | :-- | :-- | :-- | :-- |"
    for _, same in itertools.groupby(group, key=lambda one: (one.meaning, one.unit, one.over, one.in_summary)):
        alike = list(same)
        one = alike[0]
        names = ", ".join(f"`{column.name}`" for column in alike)
        over = "" if one.over in (None, Over.OWN) else one.over.value
        where = "yes" if one.in_trials and one.in_summary else "only there" if one.in_summary else ""
        yield f"| {names} | {one.unit} | {over} | {where} | {one.meaning} |"


def main() -> None:
    """Write both pages anew."""
    write(MANUAL / "columns.md", columns(), BEGIN, END)
    write(MANUAL / "matrix.md", axes(), BEGIN_AXES, END_AXES)


if __name__ == "__main__":
    main()
