"""The latency over load of cells with `mode: curve`, as a table below that of the run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pybench.analysis.limits import NO_P99, LoadPoint, curve_of, knee_of, lacks_p99
from pybench.formats import Format
from pybench.numbers import format_percent

if TYPE_CHECKING:
    from rich.text import Text

    from pybench.report.view import View

HEADINGS = ("load", "arrivals/s", "grants/s", "p50", "p99", "time in system")
GAP = 2
KNEE = (
    "knee: the load with the most grants per second for each second in the system, from the arrival to the end of the "
    "release"
)


def curve_lines(view: View) -> list[Text]:
    """The lines of the table; none for a run without a curve."""
    from rich.text import Text

    curves = [(cell, curve_of(view.run.probes, view.run.trials, cell.id)) for cell in view.cells]
    points = [point for _, found in curves for point in found]
    if not points:
        return []
    blocks = [(cell, _rows(found)) for cell, found in curves if found]
    rows = [HEADINGS, *(row for _, found in blocks for row in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    heading = _line(HEADINGS, widths)
    lines = [Text(""), Text(heading, style="bold"), Text("-" * len(heading), style="dim")]
    for cell, found in blocks:
        lines.append(Text(f"{cell.name}:", style="bold"))
        lines += [Text(_line(row, widths)) for row in found]
    noted = [
        *([KNEE] if any("knee" in row[0] for row in rows) else []),
        *([NO_P99] if lacks_p99(points) else []),
    ]
    for note in noted:
        wrapped = textwrap.wrap(note, 78, initial_indent="  ", subsequent_indent="    ")
        lines += [Text(line, style="dim") for line in wrapped]
    return lines


def _rows(points: list[LoadPoint]) -> list[tuple[str, ...]]:
    knee = knee_of(points)
    return [
        (
            f"{format_percent(point.share)} of the limit{', knee' if point is knee else ''}",
            Format.RATE.text(point.rate_per_s),
            Format.RATE.text(point.grants_per_s),
            *(Format.TIME_US.text(value) for value in (point.p50_us, point.p99_us, point.system_us)),
        )
        for point in points
    ]


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    numbers = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
    return (" " * GAP).join([row[0].ljust(widths[0]), *numbers]).rstrip()
