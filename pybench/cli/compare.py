"""`pybench compare`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, require_files, shown_path, write_file
from pybench.cli.status import reading_s, working

if TYPE_CHECKING:
    from pybench.analysis.between_runs import CellChange, FigureChange, RunChanges
    from pybench.records import Run

WIDEST_BAND = 10.0
"""As a share: a factor of 11."""

Old = Annotated[Path, typer.Argument(metavar="OLD", help="The run folder to compare with.")]
New = Annotated[Path, typer.Argument(metavar="NEW", help="The run folder that may have changed.")]
Band = Annotated[
    str | None,
    typer.Option(
        "--band",
        metavar="PERCENT",
        help="Differences up to this share do not count; 2% to 100% by figure if not given.",
    ),
]
Markdown = Annotated[Path | None, typer.Option("--md", metavar="FILE", help="Also write the comparison as Markdown.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with the charts of both runs.")
]


def compare(
    old: Old, new: New, *, band: Band = None, md: Markdown = None, html: Html = None, as_json: AsJson = False
) -> int:
    """Compare two saved runs: verdicts first, then figures.

    Cells are matched by lock and load. Runs that were measured one after the other may also differ because of the
    machine: what else differs stands above the figures. Exits 0 whatever it finds; pybench gate measures both sides in
    one job and fails on a regression.
    """
    from pybench.analysis.between_runs import compare_runs
    from pybench.cli.changes_table import changes_text
    from pybench.records import load
    from pybench.report import changes_markdown, changes_page

    limits = None if band is None else share(band)
    require_files(md=md, html=html)
    with working(f"comparing {shown_path(old)} and {shown_path(new)}", reading_s(old) + reading_s(new)):
        runs = load(old), load(new)
        changes = compare_runs(*runs, limits)
        shown = _object(changes, *runs) if as_json else changes_text(changes, *runs)
    if isinstance(shown, str):
        data(shown)
    else:
        data_json(shown)
    if md is not None:
        write_file(md, changes_markdown.build(changes, *runs))
    if html is not None:
        write_page_of_two(html, partial(changes_page.build, changes, *runs), len(changes.cells))
    return 0


def write_page_of_two(path: Path, build: Callable[[], str], cells: int) -> None:
    """Write the page of two runs of so many cells, which takes long. Raises RecordError."""
    from pybench.planning.ending import reporting_s

    with working(f"writing {shown_path(path)}", 2 * reporting_s(cells)):
        page = build()
    write_file(path, page)


def share(text: str) -> float:
    """The band `5%` as 0.05. Raises InputError."""
    from pybench.errors import InputError
    from pybench.notation import shown

    hint = "use a band such as --band 5%"
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise InputError(f"--band: {shown(text)} is not a percentage", hint=hint) from None
    if not 0 < share <= WIDEST_BAND:
        reason = f"is out of range; above 0% and at most {WIDEST_BAND:.0%}"
        raise InputError(f"--band: {shown(text)} {reason}", hint=hint)
    return share


def _object(changes: RunChanges, old: Run, new: Run) -> dict[str, Any]:
    """A comparison as `--json` prints it; ratios are the new figure divided by the old one, n/a is None."""
    from pybench.records.schema import SCHEMA

    def run(one: Run) -> dict[str, Any]:
        return {"name": one.manifest["name"], "folder": str(one.path), "started_at": one.manifest["started_at"]}

    return {
        "schema": SCHEMA,
        "old": run(old),
        "new": run(new),
        "paired": changes.paired,
        "headline": changes.headline,
        "differences": [{"what": one.what, "old": one.old, "new": one.new} for one in changes.differences],
        "cells": [_cell(one) for one in changes.cells],
        "only_old": list(changes.only_old),
        "only_new": list(changes.only_new),
    }


def _cell(one: CellChange) -> dict[str, Any]:
    return {
        "lock": one.lock,
        "load": one.load,
        "old_cell": one.old_cell,
        "new_cell": one.new_cell,
        "old_verdict": one.old_verdict.value,
        "new_verdict": one.new_verdict.value,
        "turn": None if one.turn is None else one.turn.value,
        "effect": None if one.effect is None else one.effect.value,
        "figures": {change.figure.column: figure_object(change) for change in one.figures},
    }


def figure_object(change: FigureChange) -> dict[str, Any]:
    """One figure of a cell as `--json` prints it."""
    ratio = change.ratio
    return {
        "old": change.old,
        "new": change.new,
        "ratio": None if ratio is None else ratio.value,
        "low": None if ratio is None else ratio.low,
        "high": None if ratio is None else ratio.high,
        "confidence": None if ratio is None else ratio.confidence,
        "effect": change.effect.value,
    }
