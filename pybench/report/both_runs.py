"""Two runs as one, for charts: the compared cells of both, each lock once as it was and once as it is.

Colour is the lock's in both runs; the old one is dashed, with a square marker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pybench.records import Run
from pybench.records.run import FRAMES
from pybench.report.view import SERIES_COLOURS, Series, View, make_view

if TYPE_CHECKING:
    from pybench.analysis.between_runs import RunChanges

SIDES = ("old", "new")
_LOOKS = (("square", "longdash"), ("circle", "solid"))


def both(changes: RunChanges, old: Run, new: Run, names: tuple[str, str] = SIDES) -> View:
    """The view of the cells that both runs have, in the order of the new one. `names` are those of the two runs."""
    parts = [
        _renamed(old, {one.old_cell: one.new_cell for one in changes.cells}, names[0]),
        _renamed(new, {one.new_cell: one.new_cell for one in changes.cells}, names[1]),
    ]
    cells = [_id(side, one.new_cell) for one in changes.cells for side in names]
    entries = {entry["id"]: entry for part in parts for entry in part.manifest["cells"]}
    manifest = {**new.manifest, "cells": [entries[cell] for cell in cells if cell in entries]}
    frames = {name: pd.concat([getattr(part, name) for part in parts], ignore_index=True) for name in FRAMES}
    view = make_view(Run(Path(), manifest, **frames))
    return _named(view, {one.new_cell: one.lock for one in changes.cells}, names)


def _id(side: str, cell: str) -> str:
    return f"{side}: {cell}"


def _renamed(run: Run, cells: Mapping[str, str], side: str) -> Run:
    """`run` with only these cells, under ids and on backends of its side."""

    def of(frame: pd.DataFrame) -> pd.DataFrame:
        kept = frame[frame["cell"].isin(list(cells))].copy()
        kept["cell"] = [_id(side, cells[str(cell)]) for cell in kept["cell"]]
        if "backend" in kept:
            # Without a difference the lock would be one line in both runs.
            kept["backend"] = [f"{backend} ({side})" for backend in kept["backend"]]
        return kept

    entries: list[dict[str, Any]] = [
        {**entry, "id": _id(side, cells[entry["id"]])} for entry in run.manifest["cells"] if entry["id"] in cells
    ]
    frames = {name: of(frame) if "cell" in (frame := getattr(run, name)) else frame for name in FRAMES}
    return Run(run.path, {**run.manifest, "cells": entries}, **frames)


def _named(view: View, locks: Mapping[str, str], names: tuple[str, str]) -> View:
    """`view` with lines that are called "mutex (old)" and "mutex (new)"."""
    looks = dict(zip(names, _LOOKS, strict=True))
    colours: dict[str, str] = {}
    lines: dict[str, Series] = {}
    cells = []
    for cell in view.cells:
        side, _, plain = cell.id.partition(": ")
        lock = locks[plain]
        colour = colours.setdefault(lock, _colour(cell.series, colours))
        shape, dash = looks[side]
        label = f"{lock} ({side})"
        line = lines.setdefault(label, Series(label, cell.series.strategy, colour, shape, dash))
        cells.append(replace(cell, series=line, line=line))
    series = tuple(lines.values())
    # As lines of an axis all are shown: a leading lock without its other run would compare nothing.
    return View(view.run, tuple(cells), series, view.axes, series, line_axis="run")


def _colour(series: Series, taken: Mapping[str, str]) -> str:
    """The next colour; grey for clients without a lock."""
    if "none" in series.colour:
        return series.colour
    return f"var(--series-{sum('none' not in one for one in taken.values()) % SERIES_COLOURS})"
