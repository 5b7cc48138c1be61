"""`pybench.plots`: verdicts stand beside figures, an unsafe lock never looks like a winner, errors have hints."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import pybench
from pybench import plots
from pybench.errors import InputError, RecordError
from pybench.plots import measures
from pybench.plots.selection import chosen
from pybench.report.view import make_view
from tests.report.support import Point, make_run

FAST = Point("naive", 16, 1, cost=5.0, broken=True)
"""Faster than any other lock here, and unsafe."""


@pytest.fixture(scope="module")
def run() -> pybench.Run:
    return make_run(
        [Point("none", 16, 1, broken=True), FAST, Point("mutex", 16, 1), Point("redlock", 16, 1, cost=90.0)]
    )


@pytest.fixture(scope="module")
def loads() -> pybench.Run:
    return make_run()


def texts(picture: plots.Picture) -> list[str]:
    axes = picture.axes
    found = [text.get_text() for axis in axes for text in axis.texts]
    return found + [label.get_text() for axis in axes for label in (*axis.get_xticklabels(), *axis.get_yticklabels())]


def rows_of(picture: plots.Picture) -> list[str]:
    return [label.get_text() for label in picture.axes[0].get_yticklabels()]


@pytest.mark.parametrize("column", ["safe_grants_per_s", "grants_per_s", "acquire_p99_us", "server_cpu_us_per_grant"])
def test_unsafe_cells_come_last_whatever_their_figure(run, column):
    assert set(rows_of(plots.dots(run, column))[-2:]) == {"none", "naive"}


def test_an_unsafe_lock_has_no_safe_grants_and_its_verdict_beside_its_name(run):
    picture = plots.dots(run, "safe_grants_per_s")
    assert "naive: 0 UNSAFE" in repr(picture)
    assert texts(picture).count("✕ UNSAFE") == 2
    assert texts(picture).count("✓ SAFE") == 2


def test_the_scale_is_that_of_locks_that_may_be_used(run):
    measure = measures.measure_of("grants_per_s")
    cells = {cell.series.label: cell for cell in make_view(run).cells}
    top = plots.dots(run, "grants_per_s").axes[0].get_xlim()[1]
    assert measures.value_of(cells["none"], measure).number > top > measures.value_of(cells["mutex"], measure).number


def test_only_safe_cells_are_filled(run):
    paper = plots.dots(run, "jain").axes[0].get_facecolor()
    filled = {cell.series.label: is_filled for cell, is_filled in _fills(run, paper)}
    assert filled == {"none": False, "naive": False, "mutex": True, "redlock": True}


def _fills(run, paper):
    from matplotlib.colors import to_rgba

    from pybench.plots.picture import marker

    for cell in make_view(run).cells:
        yield cell, to_rgba(marker(cell)["markerfacecolor"]) != paper


def test_the_lines_of_unsafe_locks_name_their_verdict(loads):
    picture = plots.against_load(loads, "safe_grants_per_s")
    assert "none ✕ UNSAFE" in texts(picture)
    assert "mutex ✓" in texts(picture)
    assert "0 UNSAFE with 16 clients" in repr(picture)


def test_grids_show_every_verdict_and_every_rank(run, loads):
    assert sum("UNSAFE" in text for text in texts(plots.verdicts(loads))) == sum(loads.summary["verdict"] == "UNSAFE")
    ranks = plots.standings(run)
    assert "naive: ✕ UNSAFE" in repr(ranks)
    assert "mutex: 1" in repr(ranks)


def test_a_table_has_verdicts_and_units(run):
    frame = plots.table(run, "safe_grants_per_s", "acquire_p99_us")
    assert list(frame.columns) == ["verdict", "safe grants/s", "p99 response"]
    assert frame.loc["naive", "verdict"] == "✕ UNSAFE"
    assert frame.loc["mutex", "p99 response"].endswith("s")
    assert plots.say(run, "grants_per_s", FAST.id).endswith("(UNSAFE)")


def test_a_scatter_names_every_cell_with_its_verdict(run):
    shown = texts(plots.scatter(run, "commands_per_grant", "acquire_p99_us"))
    assert {"mutex ✓", "redlock ✓", "naive ✕ UNSAFE", "none ✕ UNSAFE"} <= set(shown)


def test_distributions_name_verdicts_and_quantiles(run):
    assert "UNSAFE" in repr(plots.percentiles(run))
    (cell,) = (one.id for one in chosen(run, "strategy == 'mutex'").cells)
    us = run.quantile(cell, 0.5)
    assert pybench.numbers.format_us(us) in repr(plots.histogram(run, cell))
    assert "trial by trial" in repr(plots.quantiles_by_trial(run, cell))
    assert repr(plots.phases(run, cell)).startswith("Phases of mutex, SAFE")


def test_a_picture_is_a_png_with_its_size_and_its_text(run):
    picture = plots.dots(run, "jain")
    png, about = picture._repr_png_()
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert (about["width"], about["height"]) == (width * 100 // 120, height * 100 // 120)
    assert about["alt"] == repr(picture)
    assert len(png) < 60_000


def test_a_picture_is_a_card_on_light_and_on_dark_pages(run):
    png, _ = plots.dots(run, "jain")._repr_png_()
    alpha = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[:, :, 3]
    assert {int(alpha[y, x]) for y in (0, -1) for x in (0, -1)} == {0}
    assert (alpha == 255).mean() > 0.99
    assert len(np.unique(alpha)) > 2, "the edge of a corner is smooth"


def test_ratios_need_cells_that_both_runs_have(run):
    other = make_run([Point("fair", 4, 1)])
    with pytest.raises(InputError, match="nothing to compare"):
        plots.ratios(pybench.compare(run, other))
    changes = pybench.compare(run, run)
    assert "naive: not compared: UNSAFE" in repr(plots.ratios(changes))
    with pytest.raises(InputError, match="no cell of these runs is compared by jain"):
        plots.ratios(changes, "jain")
    assert "mutex: old" in repr(plots.trials(run, run, changes))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda run: plots.dots(run, "speed"), "no figure of the summary"),
        (lambda run: plots.dots(run, "jain", "speed > 1"), "is not a query of the summary"),
        (lambda run: plots.dots(run, "jain", "concurrency == 17"), "no cell of this run fulfils"),
        (lambda run: plots.against_load(run, "jain"), "differ in no axis of load"),
        (lambda run: plots.sessions(run), "no chosen cell has a lock on a database"),
        (lambda run: plots.percentiles(run, phase="nap"), "no samples of the phase nap"),
        (lambda run: plots.histogram(run, FAST.id, "nap"), "no samples of this phase"),
    ],
)
def test_what_cannot_be_drawn_is_said_with_a_hint(run, draw, message):
    with pytest.raises(InputError, match=message) as raised:
        draw(run)
    assert raised.value.hint


def test_a_run_is_found_from_a_folder_below_it(tmp_path, monkeypatch):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    with pytest.raises(RecordError, match="no run folder results/mine"):
        plots.open_run("results/mine")
    pybench.run(strategy="mutex", trials=1, duration="20ms", warmup="10ms", out=tmp_path / "results" / "mine")
    assert plots.open_run("results/mine").path == tmp_path / "results" / "mine"


def test_without_matplotlib_the_extra_is_named():
    hidden = "import sys; sys.modules['matplotlib'] = None; import pybench.plots as plots; plots.dots"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert "InputError: pybench.plots needs matplotlib" in done.stderr
    assert "pip install 'pybench[notebooks]'" in done.stderr


def test_matplotlib_is_loaded_with_the_first_picture_only():
    light = (
        "import sys, pybench; from pybench import plots; print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_grants_over_time_have_their_median_and_the_times_of_planned_faults():
    run = make_run([Point("mutex", 16, 1), FAST], trials=3)
    quiet = plots.over_time(run)
    steps = run.timeline[run.timeline["cell"].str.startswith("mutex")].groupby("start_ns")["grants"].median()
    (line,) = [line for line in quiet.axes[0].lines if line.get_label() == "mutex ✓"]
    assert list(line.get_ydata()) == list(steps)
    assert "naive, UNSAFE" in repr(quiet)
    assert "Shaded" not in repr(quiet)
    fault = {"trial": 1, "fault": 0, "name": "kill redis[0]", "from_ns": 500_000_000, "until_ns": 700_000_000}
    cell = run.summary["cell"][run.summary["strategy"] == "mutex"].iloc[0]
    harmed = replace(run, faults=pd.DataFrame([{**fault, "cell": cell, "error": None}]))
    assert "Shaded: kill redis[0] from 0.50 s to 0.70 s." in repr(plots.over_time(harmed, where="strategy == 'mutex'"))
    assert "Shaded" not in repr(plots.over_time(harmed, where="strategy == 'naive'"))


def test_a_window_without_a_whole_step_has_no_grants_over_time():
    with pytest.raises(InputError, match="no window of these cells had a whole step"):
        plots.over_time(make_run([Point("mutex", 16, 1)], steps=0))
