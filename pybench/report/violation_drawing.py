"""A violation as a small drawing: one bar for each of two holds, the ends of their leases, and the overlap shaded.

It is inline SVG in per cent and pixels, so that its text keeps its size on any screen. Its colours are those of the
page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.numbers import format_ns, missing
from pybench.report.html import fill

# The ends of the drawing in per cent of its width.
LEFT, RIGHT = 0.0, 100.0


OUT_OF_ORDER = {"stale-fence": "fences out of order", "fifo-inversion": "served out of order"}
"""The text for kinds of violations that are about the order of two grants, and not about an overlap."""


def draw(violation: Mapping[str, Any]) -> str:
    """The drawing of a row of `violations.jsonl`; empty where the violation is not about two grants."""
    if missing(violation["second_granted_ns"]):
        return ""
    at = int(violation["at_ns"])
    first = _Hold(violation, "first")
    second = _Hold(violation, "second")
    overlap = int(violation["overlap_ns"])
    shown_until = max(value for value in (first.ended, second.ended, at + overlap) if value is not None)
    unfinished = overlap == 0 or first.ended is None or second.ended is None
    start = min(first.granted, second.granted)
    length = max(shown_until - start, 1)
    # A hold that did not end in the trial runs past the other one, to the edge of the drawing.
    end = start + length * (1.25 if unfinished else 1.0)
    place = _Scale(start, end)
    overlap_end = at + overlap if overlap else end
    # Two grants in the wrong order need not overlap.
    overlaps = violation["kind"] not in OUT_OF_ORDER
    return fill(
        "violation.html",
        holds=[_bar(hold, place, end) for hold in (first, second)],
        overlap=(place(at), max(place(overlap_end) - place(at), 0.4)) if overlaps else None,
        overlap_text=_overlap_text(overlap) if overlaps else OUT_OF_ORDER[violation["kind"]],
        ticks=[(place(start), "start", f"{start / 1e9:.6f} s"), (RIGHT, "end", f"+{format_ns(end - start)}")],
    )


def _overlap_text(overlap_ns: int) -> str:
    return f"overlap {format_ns(overlap_ns)}" if overlap_ns else "overlap until the trial ended"


class _Hold:
    """The hold of one client; `ended` is None where it did not end, and `until` where it has no lease."""

    def __init__(self, violation: Mapping[str, Any], which: str) -> None:
        def point(name: str) -> int | None:
            value = violation[f"{which}_{name}"]
            return None if missing(value) else int(value)

        self.client = int(violation[f"{which}_client"])
        self.granted = point("granted_ns") or 0
        self.until = point("until_ns")
        self.ended = point("ended_ns")


class _Scale:
    """From nanoseconds to per cent of the width."""

    def __init__(self, start: float, end: float) -> None:
        self._start, self._end = start, end

    def __call__(self, ns: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (ns - self._start) / (self._end - self._start), 3)


def _bar(hold: _Hold, place: _Scale, end: float) -> dict[str, Any]:
    left = place(hold.granted)
    right = place(hold.ended if hold.ended is not None else end)
    lease = None if hold.until is None or hold.until > end else place(hold.until)
    return {
        "client": hold.client,
        "left": left,
        "width": max(right - left, 0.4),
        "lease": lease,
        "beyond": hold.until is not None and hold.until > end,
        "lease_left": format_ns(hold.until - end) if hold.until is not None else "",
        "no_lease": hold.until is None,
        "unfinished": hold.ended is None,
    }
