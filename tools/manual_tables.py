"""The tables of the manual that the code defines: axes of a matrix, columns of the records, properties of the locks.

    python -m tools.manual_tables

writes them into docs/matrix.md, docs/columns.md, docs/strategies.md and README.md. A test compares; nothing in them is
typed by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, get_args, get_origin

from pybench.analysis.properties import PROPERTIES, properties_of
from pybench.column import Column, Over
from pybench.columns import GROUPS
from pybench.matrix.axes import Axis
from pybench.matrix.cells import AXES
from pybench.strategies import CATALOGUE
from tools.redis_vs_postgres import told, write

MANUAL = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- from pybench/columns.py -->\n", "<!-- end of columns -->\n"
BEGIN_AXES, END_AXES = "<!-- from pybench/matrix/cells.py -->\n", "<!-- end of axes -->\n"
BEGIN_PROPERTIES, END_PROPERTIES = "<!-- from pybench/analysis/properties.py -->\n", "<!-- end of properties -->\n"
README = MANUAL.parent / "README.md"


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


def properties(manual: str, root: str) -> str:
    """The property table of all strategies, each value a link to its proof; `manual` and `root` lead to the folders."""
    titles = [one.title for one in PROPERTIES]
    rows = [f"| lock | {' | '.join(titles)} |", "| :-- |" + " :-- |" * len(titles)]
    for name, entry in CATALOGUE.items():
        held = properties_of(entry)
        values = [f"[{one.value}]({_proof(one.proof, manual, root)})" for one in held.values()]
        rows.append(f"| `{name}` | {' | '.join(values)} |")
    return "".join(f"{row}\n" for row in rows)


def _proof(proof: str, manual: str, root: str) -> str:
    """Where a proof is found: the section of an experiment, the page of a command, or the file of a test."""
    command, _, rest = proof.removeprefix("pybench ").partition(" ")
    if not proof.startswith("pybench "):
        return root + proof.partition("::")[0]
    return f"{manual}lab.md#{rest}" if command == "lab" else f"{manual}{command}.md"


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
        "strategies.md": told(MANUAL / "strategies.md", BEGIN_PROPERTIES, END_PROPERTIES),
        "README.md": told(README, BEGIN_PROPERTIES, END_PROPERTIES).strip("\n") + "\n",
    }


def generated() -> dict[str, str]:
    """What `committed` has to be."""
    return {
        "columns.md": columns(),
        "matrix.md": axes(),
        "strategies.md": properties("", "../"),
        "README.md": properties("docs/", ""),
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
    """Write all pages anew."""
    new = generated()
    write(MANUAL / "columns.md", new["columns.md"], BEGIN, END)
    write(MANUAL / "matrix.md", new["matrix.md"], BEGIN_AXES, END_AXES)
    write(MANUAL / "strategies.md", new["strategies.md"], BEGIN_PROPERTIES, END_PROPERTIES)
    # GitHub reads a table within HTML only between empty lines.
    write(README, f"\n{new['README.md']}\n", BEGIN_PROPERTIES, END_PROPERTIES)


if __name__ == "__main__":
    main()
