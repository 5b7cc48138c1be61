"""What the sessions of a database did: at work, waiting for a lock, waiting for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.numbers import format_bytes, format_percent, significant
from pybench.plots import picture
from pybench.plots.beside import ROW, rows, told
from pybench.plots.selection import chosen
from pybench.report.database_use import ORDER, database_use

if TYPE_CHECKING:
    from pybench.records import Run

LEAST_SHARE = 0.06
"""A share below this is too narrow for its text."""


def sessions(run: Run, where: str | None = None) -> picture.Picture:
    """What the sessions of the database were found at, a bar for each cell, with WAL and commits per grant."""
    selection, uses = chosen(run, where), database_use(run.trials)
    cells = [cell for cell in selection.cells if cell.id in uses and uses[cell.id].waits]
    if not cells:
        raise InputError("no chosen cell has a lock on a database", hint="choose cells of Postgres locks")
    kinds = [kind for kind in ORDER if any(kind in uses[cell.id].waits for cell in cells)]
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=1.3 + ROW * 1.2 * len(cells))
        axis.set_xlim(0, 1)
        axis.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axis.set_xlabel("share of sampled sessions")
        rows(axis, [selection.name(cell) for cell in cells])
        left = [0.0] * len(cells)
        for kind in kinds:
            shares = [uses[cell.id].waits.get(kind, 0.0) for cell in cells]
            ink = picture.colour(f"--wait-{ORDER.index(kind)}")
            axis.barh(range(len(cells)), shares, left=left, height=0.62, color=ink, label=kind,
                      edgecolor=picture.colour("--paper"), linewidth=0.8)  # fmt: skip
            left = [before + share for before, share in zip(left, shares, strict=True)]
        for place, cell in enumerate(cells):
            use = uses[cell.id]
            commits = "n/a" if use.commits is None else significant(round(use.commits, 2))
            noun = "commit" if commits == "1" else "commits"
            texts = [f"{format_bytes(use.wal_bytes)} WAL", f"{commits} {noun}", picture.verdict_text(cell)]
            told(axis, place, texts, picture.verdict_colour(cell), (10, 75, 150))
        figure.legend(loc="outside lower left", ncols=4, fontsize=8.5, frameon=False)
        axis.set_title(", ".join(filter(None, ["sessions, and per grant WAL and commits", selection.fixed])))
    figure.alt = "What the sessions of the database did. " + "; ".join(
        f"{selection.name(cell)}, {cell.verdict}: "
        + ", ".join(f"{kind} {format_percent(round(share, 3))}" for kind, share in uses[cell.id].waits.items())
        for cell in cells
    )
    return figure
