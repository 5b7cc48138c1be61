"""The section of limits: curves with their knees, probes of searches, tables, and cautions about limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import pybench
from pybench.analysis.limits import LIMIT_COLUMNS, NO_P99
from pybench.cli.curve_table import curve_lines
from pybench.planning.limit_search import Phase
from pybench.records import Run
from pybench.report.both_runs import both
from pybench.report.cautions.of_run import cautions
from pybench.report.markdown import build as markdown
from pybench.report.sections import limit
from pybench.report.sections.ranking import columns_of
from pybench.report.view import View, make_view
from tests.report.support import Point, make_run

LIMITS = {"mutex": 400.0, "fair-queue": 1_000.0}
POINTS = [Point(name, 16, 1) for name in LIMITS]
Row = dict[str, object]


def probe(
    cell: str, trial: int, phase: str, rate: float, *, shown: str = "held", share: float = 1.0
) -> dict[str, object]:
    wait_us = 1_000 / (1.001 - min(share, 1.0))
    row = {"cell": cell, "trial": trial, "phase": phase, "rate_per_s": rate, "shown": shown, "grants_per_s": rate}
    row |= {"acquire_p50_us": wait_us, "acquire_p99_us": 9 * wait_us, "mean_in_system_us": 2_000 + wait_us}
    return row | {"reason": None if shown == "held" else "granted 90 % of the arrivals"}


def probes_of(cell: str, trial: int, found: float, *, curve: bool) -> list[Row]:
    rows = [
        probe(cell, trial, "up", found / 2, share=0.5),
        probe(cell, trial, "up", found * 1.04, shown="failed"),
        *(probe(cell, trial, "confirm", found) for _ in range(3)),
    ]
    shares = (0.3, 0.6, 0.8, 0.95) if curve else ()
    return [*rows, *(probe(cell, trial, "curve", share * found, share=share) for share in shares)]


def searched(mode: str, **changed: object) -> Run:
    """A run in which every lock has searched for its limit; `changed` are columns of the summary."""
    run = make_run(POINTS)
    of_cell = {point.id: LIMITS[point.strategy] for point in POINTS}
    found = run.summary["cell"].map(of_cell)
    columns = {
        "limit_per_s": found,
        "limit_low_per_s": found,
        "limit_high_per_s": found * 1.04,
        "limited_by": "throughput",
    }
    summary = run.summary.assign(mode=mode, **columns).assign(**changed)
    trials = run.trials.assign(mode=mode, limit_per_s=run.trials["cell"].map(of_cell))
    rows = [
        row
        for cell, rate in of_cell.items()
        for trial in sorted(set(trials["trial"]))
        for row in probes_of(cell, trial, rate, curve=mode == "curve")
    ]
    return dataclasses.replace(run, summary=summary, trials=trials, probes=pd.DataFrame(rows))


def view_of(mode: str, **changed: object) -> View:
    return make_view(searched(mode, **changed))


def test_the_page_of_two_searches_has_the_probes_and_curves_of_both():
    old, new = searched("curve"), searched("curve")
    view = both(pybench.compare(old, new), old, new)
    limits, loads = limit.limit_tables(view)
    limits_alone, loads_alone = limit.limit_tables(make_view(old))
    assert [row.figures for row in limits.rows[::2]] == [row.figures for row in limits_alone.rows]
    assert len(loads.rows) == 2 * len(loads_alone.rows)
    assert len(limit.render(view).figures) == 2


def test_a_run_without_a_search_has_no_such_section_and_no_such_column():
    view = make_view(make_run())
    assert limit.render(view) is None
    assert limit.limit_tables(view) == []
    assert "limit_per_s" not in [column for _, column in columns_of(view)]


def test_a_curve_without_a_p99_says_what_one_needs():
    run = searched("curve")
    short = dataclasses.replace(run, probes=run.probes.assign(acquire_p99_us=np.nan))
    assert NO_P99 in limit.render(make_view(short)).html
    assert NO_P99 not in limit.render(make_view(run)).html
    told = " ".join(str(line).strip() for line in curve_lines(make_view(short)))
    assert NO_P99 in told
    assert NO_P99 not in " ".join(str(line).strip() for line in curve_lines(make_view(run)))


def test_a_curve_is_a_line_over_its_loads_with_a_ring_at_the_knee_and_a_dotted_line_at_the_limit():
    section = limit.render(view_of("curve"))
    assert section is not None
    assert [figure.title for figure in section.figures] == ["p50 response", "p99 response"]
    figure = section.figures[0]
    line, ring, end = (trace for trace in figure.data if trace["name"] == "mutex")
    assert line["mode"] == "lines+markers"
    assert line["x"] == pytest.approx([120, 240, 320, 380, 400])
    assert np.all(np.diff(line["y"]) > 0)
    assert (ring["x"], ring["marker"]["symbol"]) == ([line["x"][1]], "circle-open")
    assert (end["x"], end["line"]["dash"]) == ([400.0, 400.0], "dot")
    assert "p50 response" in line["customdata"][0]
    assert "30 % of the limit, 120/s" in line["customdata"][0]
    assert "mutex: limit 400/s, knee at 240/s" in figure.alt
    assert "A ring marks the knee" in section.html


def test_a_search_alone_shows_its_probes_and_which_of_them_held():
    section = limit.render(view_of("saturate"))
    assert section is not None
    points, end = (trace for trace in section.figures[0].data if trace["name"] == "mutex")
    assert points["mode"] == "markers"
    hollow = [symbol.endswith("-open") for symbol in points["marker"]["symbol"]]
    assert hollow.count(True) * 5 == len(hollow), "of the five probes of each trial, one failed"
    assert "failed: granted 90 % of the arrivals" in points["customdata"][-1]
    assert end["x"] == [400.0, 400.0]
    assert "hollow where the rate did not hold" in section.html
    assert "A ring" not in section.html


def test_the_tables_have_each_limit_and_each_load():
    limits, loads = limit.limit_tables(view_of("curve"))
    assert [[datum.text for datum in row.figures[:4]] for row in limits.rows] == [
        ["400", "400 to 416", "throughput", "240"],
        ["1,000", "1,000 to 1,040", "throughput", "600"],
    ]
    assert len(loads.rows) == 2 * 5
    assert [row.where for row in loads.rows[:2]] == ["30 % of the limit", "60 % of the limit (knee)"]
    text = markdown(searched("curve"))
    assert "**The limit**" in text
    assert "| mutex |  | 400 | 400 to 416 | throughput | 240 |" in text
    assert "| limit, arrivals/s |" in text


def test_locks_whose_limits_are_far_apart_are_drawn_on_a_logarithmic_axis():
    run = searched("saturate")
    assert limit.render(make_view(run)).figures[0].layout["xaxis"]["type"] == "linear"
    far = run.summary.assign(limit_per_s=[4.0, 1_000.0])
    assert limit.render(make_view(dataclasses.replace(run, summary=far))).figures[0].layout["xaxis"]["type"] == "log"


def test_a_lock_without_a_limit_is_listed_without_one():
    view = view_of("saturate", **dict.fromkeys(LIMIT_COLUMNS[:3], np.nan), limited_by=None)
    section = limit.render(view)
    assert section is not None
    assert all("limit" not in trace.get("line", {}).get("dash", "") for trace in section.figures[0].data)
    assert [datum.text for datum in limit.limit_tables(view)[0].rows[0].figures[:3]] == ["n/a", "n/a", "n/a"]
    assert "No limit found" in {caution.title for caution in cautions(view)}


@pytest.mark.parametrize(
    ("changed", "title"),
    [
        ({"limited_by": "load generator"}, "Limit of the generator"),
        ({"limit_high_per_s": np.nan}, "Limit not reached"),
        ({}, None),
    ],
)
def test_a_limit_that_says_nothing_of_the_lock_has_a_caution(changed: dict[str, object], title: str | None):
    about_limits = {caution.title for caution in cautions(view_of("saturate", **changed)) if "imit" in caution.title}
    assert about_limits == ({title} if title else set())


def test_a_trial_that_was_not_steady_has_a_caution():
    run = make_run(POINTS)
    first = run.trials["cell"] == POINTS[0].id
    unsteady = dataclasses.replace(run, trials=run.trials.assign(steady=[not one for one in first]))
    (caution,) = (one for one in cautions(make_view(unsteady)) if one.title == "Not steady")
    assert "mutex" in caution.text
    assert "fair-queue" not in caution.text
    assert "Not steady" not in {one.title for one in cautions(make_view(run))}


def test_every_phase_is_named_in_the_manual():
    from tests.house.workspace import ROOT

    manual = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert all(f"`{phase}`" in manual for phase in Phase)
