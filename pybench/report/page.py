"""The page: the sections in order, in one file that loads nothing. Its content security policy enforces that.

Scripts run only by their hashes, so that text of a run could not run as a script even if it became markup.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pybench.records import Run
from pybench.report import run_facts
from pybench.report.cell_filter import cell_filter
from pybench.report.charts.grid import leading
from pybench.report.html import asset, fill, script_json
from pybench.report.section import Section
from pybench.report.sections import (
    answer,
    clients,
    cost,
    database,
    distribution,
    fairness,
    faults,
    guarded,
    heatmaps,
    herd,
    latency,
    limit,
    method,
    nodes,
    properties,
    ranking,
    stages,
    throughput,
    timeline,
    violations,
    workers,
)
from pybench.report.view import View, make_view

PLOTLY = "vendor/plotly-cartesian.min.js"
SCRIPTS = {
    "boot": "assets/boot.js",
    "cells": "assets/cells.js",
    "charts": "assets/charts.js",
    "page": "assets/page.js",
}
STYLES = ("assets/page.css", "assets/cells.css", "assets/heat.css")
# Longer data of scripts are packed: the charts of a thousand cells would be most of the page.
PLAIN_DATA = 1_000_000

Render = Callable[[View], Section | None]

BEFORE_CHARTS: tuple[Render, ...] = (ranking.render, heatmaps.render)
CHARTS: tuple[Render, ...] = (
    throughput.render,
    latency.render,
    limit.render,
    distribution.render,
    distribution.render_handoff,
    stages.render,
    timeline.render,
    guarded.render,
    faults.render,
    fairness.render,
    clients.render,
    herd.render,
    cost.render,
)
AFTER_CHARTS: tuple[Render, ...] = (
    nodes.render,
    database.render,
    workers.render,
    violations.render,
    properties.render,
    method.render,
)


def build(run: Run, view: View | None = None) -> str:
    """The whole of `report.html`; `view` is that of `run`, where the caller has it."""
    view = make_view(run) if view is None else view
    manifest = run.manifest
    head = Head(run_facts.run_name(manifest), run_facts.when(manifest), run_facts.server_labels(manifest))
    return assemble(
        view,
        head,
        answer.render(view),
        before=_rendered(BEFORE_CHARTS, view),
        charts=rendered_charts(view),
        after=_rendered(AFTER_CHARTS, view),
    )


@dataclass(frozen=True, slots=True)
class Head:
    """The line on top of a page."""

    name: str
    when: str
    servers: str


def assemble(
    view: View,
    head: Head,
    first: Section,
    *,
    before: Sequence[Section],
    charts: Sequence[Section],
    after: Sequence[Section],
) -> str:
    """A whole page of these sections. The legend of the charts has the lines of `view`."""
    figures = {
        figure.id: {"data": figure.data, "layout": figure.layout}
        for section in charts
        for figure in section.figures
        if figure.data
    }
    scripts = {name: asset(path) for name, path in SCRIPTS.items()}
    if figures:
        scripts["plotly"] = asset(PLOTLY)
    page = fill(
        "page.html",
        name=head.name,
        when=head.when,
        servers=head.servers,
        answer=first,
        before=before,
        charts=charts,
        after=after,
        view=view,
        leading=leading(view),
        figures=_packed(figures),
        folded=_packed({id_: text for section in (*before, *charts, *after) for id_, text in section.folded.items()}),
        filter=cell_filter(view),
        style=Markup("".join(asset(path) for path in STYLES)),
        scripts={name: Markup(text) for name, text in scripts.items()},
        policy=policy(list(scripts.values())),
        version=str((view.run.manifest.get("versions") or {}).get("pybench") or ""),
    )
    # Plain text from here on: as markup it would escape whatever it is joined with.
    return str(page)


def _packed(data: Mapping[str, Any]) -> tuple[str, Markup] | None:
    """`data` as the text of a script element, and the type of the element; None without data.

    Much of a long text are repetitions: it is a tenth of its length as gzip, which any browser unpacks.
    """
    if not data:
        return None
    text = script_json(data)
    if len(text) <= PLAIN_DATA:
        return "application/json", text
    # Without a time the same run gives the same page.
    return "application/gzip", Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())


def rendered_charts(view: View) -> list[Section]:
    """The sections with charts; none for a run that measured nothing."""
    return _rendered(CHARTS if view.measured else (), view)


def _rendered(renders: Sequence[Render], view: View) -> list[Section]:
    return [section for render in renders if (section := render(view)) is not None]


def policy(scripts: list[str]) -> str:
    """The content security policy: nothing from anywhere, and of scripts only these."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    # Plotly sets styles as it draws, and saves a chart as an image from data it made itself.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    assert not re.search(r"</script|<!--", script, re.IGNORECASE), "an inlined script must not end its own element"
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
