"""What the locks of the run promise, property by property: the table that people argue about."""

from __future__ import annotations

from pybench.analysis.assumptions import entry_of
from pybench.analysis.properties import PROPERTIES, Held, properties_of
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.view import View


def render(view: View) -> Section | None:
    """A row for each lock of the run; None where this version knows none of them."""
    rows: dict[str, tuple[dict[str, Held], list[int]]] = {}
    for cell in view.cells:
        known = entry_of(cell.row)
        if known is not None:
            rows.setdefault(cell.series.label, (properties_of(*known), []))[1].append(cell.index)
    if not rows:
        return None
    html = fill(
        "properties.html",
        rows=[{"label": label, "held": held, "cells": cells} for label, (held, cells) in rows.items()],
        properties=PROPERTIES,
    )
    return Section("properties", "What the locks promise", html, nav="Promises")
