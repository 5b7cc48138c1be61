"""What `pybench gate --plan` says: trials, time, and the least slowdown that they find."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.cli.output import data, data_json

if TYPE_CHECKING:
    from pybench.gate.forecast import Forecast
    from pybench.gate.sides import Sides


def show(sides: Sides, band: float | None, base: Path, *, as_json: bool) -> int:
    """Print the plan. Raises InputError where base and head have no cell in common."""
    from pybench.gate.forecast import forecast_of

    forecast = forecast_of(sides, band, base if base.is_dir() else None)
    if as_json:
        data_json(_object(forecast))
    else:
        data("\n".join(_lines(forecast)))
    return 0


def _lines(forecast: Forecast) -> list[str]:
    from pybench.analysis.gating import ENOUGH_BLOCKS
    from pybench.cli.figures import wall_time
    from pybench.cli.plan import times_of
    from pybench.numbers import plural
    from pybench.report.gate_words import percent

    matrix, trials = forecast.matrix, f"{forecast.trials:,}"
    lines = [
        f"{matrix.name}: a gate of {plural(len(forecast.cells), 'cell')}, {plural(forecast.blocks, 'block')} of 3 "
        f"trials a cell, each of {times_of(matrix, forecast.cells)}",
        f"trials: {trials}, and at most {trials} more in the confirming round",
        f"time: about {wall_time(forecast.seconds)}, with the confirming round at most "
        f"{wall_time(forecast.seconds + forecast.confirming_seconds)}",
        "slowdowns found in 9 of 10 jobs:"
        if forecast.least
        else f"slowdowns found: none with so few blocks; at least {ENOUGH_BLOCKS} are needed",
    ]
    for spread, column, least in forecast.least:
        what = "as in the trials of BASE" if spread == forecast.measured else "in a block"
        lines.append(f"  {percent(least)} and more of {column}, if trials vary by {percent(spread)} {what}")
    return lines


def _object(forecast: Forecast) -> dict[str, Any]:
    return {
        "name": forecast.matrix.name,
        "cells": len(forecast.cells),
        "blocks": forecast.blocks,
        "trials": forecast.trials,
        "confirming_trials": forecast.trials,
        "seconds": forecast.seconds,
        "confirming_seconds": forecast.confirming_seconds,
        "measured_spread": forecast.measured,
        "least_slowdowns": [
            {"spread": spread, "figure": column, "slowdown": least} for spread, column, least in forecast.least
        ],
    }
