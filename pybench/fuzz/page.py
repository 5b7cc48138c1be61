"""The time line of a world as one page: a drawing with a lane for each client and server, and all lines as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pybench import _core
from pybench.fuzz.time_line import LEGEND
from pybench.numbers import format_ns
from pybench.report.html import asset, fill
from pybench.report.page import policy

if TYPE_CHECKING:
    from pybench.fuzz.time_line import Hold, Line, TimeLine

STYLES = ("assets/page.css", "assets/world.css")
LANE = 34
"""The height of a lane in pixels."""
BEYOND = 1.04
"""The drawing goes on a little beyond the end, so that what went wrong there can be seen."""


def page(line: TimeLine) -> str:
    """The whole page. The same time line gives the same bytes."""
    return str(
        fill(
            "world.html",
            line=line,
            legend=LEGEND,
            drawing=_drawing(line),
            style=Markup("".join(asset(path) for path in STYLES)),
            policy=policy([]),
            version=_core.version,
        )
    )


def _drawing(line: TimeLine) -> dict[str, Any]:
    """The places of everything, in per cent of the width and pixels from the top."""
    end = max(1, line.ends_ns) * BEYOND

    def x(ns: float) -> float:
        return round(100 * ns / end, 3)

    lanes = {("client", client): index for index, client in enumerate(line.clients)}
    lanes |= {("server", server): len(lanes) + server for server in range(line.servers)}
    height = LANE * len(lanes)
    shares = (0, 0.25, 0.5, 0.75, 1) if line.ends_ns else (0,)
    ticks = [(x(share * line.ends_ns), format_ns(share * line.ends_ns)) for share in shares]
    return {
        "lane": LANE,
        "height": height,
        "lanes": [(f"{kind} {number}", LANE * index) for (kind, number), index in lanes.items()],
        "holds": [_bar(hold, LANE * lanes["client", hold.client], x) for hold in line.holds],
        "served": [
            (x(one.at_ns), LANE * lanes["server", one.server])
            for one in line.lines
            if one.server is not None and not one.is_fault
        ],
        "faults": [(x(one.at_ns), one.text, LANE * _lane_of(one, lanes)) for one in line.lines if one.is_fault],
        "wrong": [x(one.at_ns) for one in line.lines if one.is_wrong],
        "ticks": ticks,
    }


def _bar(hold: Hold, top: int, x: Any) -> dict[str, Any]:  # noqa: ANN401 - a function of the drawing
    return {
        "top": top,
        "left": x(hold.granted),
        "belief": max(x(hold.believed) - x(hold.granted), 0.4),
        "late_left": x(hold.believed),
        "late": x(hold.ended) - x(hold.believed),
    }


def _lane_of(fault: Line, lanes: dict[tuple[str, int], int]) -> int:
    """The lane of the client that the fault strikes, else that of its server."""
    return lanes["client", fault.client] if fault.client is not None else lanes["server", fault.server or 0]
