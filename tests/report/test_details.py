"""The sections about single clients, herds, servers of quorum locks, and what servers and machine did."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from pybench.records import Run
from pybench.report import details
from pybench.report.markdown import build as markdown
from pybench.report.sections import clients, herd, nodes, telemetry, timeline
from pybench.report.view import View, make_view
from tests.report.support import Point, make_run

FIXED = "fixed(base=50ms, max_wait=10s)"
STEPS = 200


def with_frames(run: Run, **frames: list[dict[str, object]]) -> View:
    return make_view(dataclasses.replace(run, **{name: pd.DataFrame(rows) for name, rows in frames.items()}))


def trials_of(run: Run) -> list[tuple[str, int]]:
    return list(zip(run.trials["cell"], run.trials["trial"], strict=True))


def of_clients(run: Run, grants: dict[str, list[int]]) -> list[dict[str, object]]:
    return [
        {
            "cell": cell,
            "trial": trial,
            "client": client,
            "clients": 1,
            "grants": count,
            "wait_mean_us": 1e6 / (count or 1),
        }
        for cell, trial in trials_of(run)
        for client, count in enumerate(grants[cell])
    ]


# Client by client.


@pytest.fixture(scope="module")
def two_locks() -> Run:
    return make_run([Point("mutex", 8, 1), Point("naive", 8, 1)], trials=2)


def test_the_clients_of_a_lock_are_drawn_in_order_as_multiples_of_their_fair_share(two_locks):
    even, uneven = (cell.id for cell in make_view(two_locks).cells)
    view = with_frames(two_locks, clients=of_clients(two_locks, {even: [10] * 8, uneven: [0, 0, 0, 0, 0, 0, 20, 60]}))
    section = clients.render(view)
    shares, waits = section.figures
    level, steep = shares.data
    assert set(level["y"]) == {1.0}
    assert (steep["x"][0], steep["x"][-1], steep["y"][0], steep["y"][-1]) == (0.0, 100.0, 0.0, 6.0)
    assert len(waits.data) == 2
    assert "got no grant at all: one of naive" in section.html
    assert "0.00 to 6.00" in shares.alt


def test_no_curve_has_more_points_than_the_page_can_take(two_locks):
    ids = [cell.id for cell in make_view(two_locks).cells]
    rng = np.random.default_rng(1)
    view = with_frames(
        two_locks, clients=of_clients(two_locks, {cell: rng.integers(1, 99, 900).tolist() for cell in ids})
    )
    for figure in clients.render(view).figures:
        assert all(len(trace["y"]) == len(trace["x"]) <= clients.POINTS for trace in figure.data)


def test_a_run_of_two_clients_or_without_their_rows_has_no_such_section(two_locks):
    assert clients.render(make_view(two_locks)) is None
    pair = make_run([Point("mutex", 2, 1)])
    view = with_frames(pair, clients=of_clients(pair, {make_view(pair).cells[0].id: [3, 4]}))
    assert clients.render(view) is None


# Herds.


def herds(burst: int = 64) -> View:
    run = make_run([Point("mutex", 64, 1), Point("mutex", 64, 1, retry=FIXED)], trials=3)
    rng = np.random.default_rng(2)
    rows = [
        {
            "cell": cell,
            "trial": trial,
            "step_ns": 10_000_000,
            "commands": np.array([burst if step % 5 == 0 else 8 for step in range(STEPS)])
            if "fixed" in cell
            else rng.poisson(38, STEPS),
        }
        for cell, trial in trials_of(run)
    ]
    return with_frames(run, commands=rows)


def test_a_herd_is_told_from_clients_that_ask_independently():
    view = herds()
    jitter, fixed = (herd.bursts_of(view, cell) for cell in view.cells)
    assert not jitter.is_herd
    assert fixed.is_herd
    assert fixed.mean == pytest.approx((64 + 4 * 8) / 5)
    assert fixed.ratio == pytest.approx(64 / fixed.mean)
    section = herd.render(view)
    assert "The largest is that of mutex with retry fixed(base=50ms, max_wait=10s)" in section.html
    assert "3.33 times its mean" in section.html


def test_each_policy_has_a_part_with_half_a_second_of_its_steps():
    (figure,) = herd.render(herds()).figures
    assert len([name for name in figure.layout if name.startswith("yaxis")]) == 2
    for trace in figure.data:
        assert len(trace["y"]) == herd.PIECE
        assert (trace["x"][0], trace["x"][-1]) == (5, 495)
    assert [max(trace["y"]) == 64 for trace in figure.data] == [False, True]


def test_a_trial_shorter_than_half_a_second_fills_its_chart():
    view = herds()
    short = view.run.commands.assign(commands=[steps[:30] for steps in view.run.commands["commands"]])
    (figure,) = herd.render(make_view(dataclasses.replace(view.run, commands=short))).figures
    assert figure.layout["xaxis"]["range"][1] == 300
    assert {len(trace["y"]) for trace in figure.data} == {30}
    assert "in 300 ms" in figure.alt


def test_without_a_herd_the_section_says_so_and_a_run_of_one_policy_has_none(two_locks):
    assert "Here none does" in herd.render(herds(burst=8)).html
    rows = [
        {"cell": cell, "trial": trial, "step_ns": 10_000_000, "commands": np.ones(STEPS)}
        for cell, trial in trials_of(two_locks)
    ]
    assert herd.render(with_frames(two_locks, commands=rows)) is None
    assert herd.render(make_view(make_run([Point("mutex", 8, 1), Point("mutex", 8, 1, retry=FIXED)]))) is None


def test_steps_in_which_the_generator_stood_still_make_no_herd():
    view = herds()
    commands = view.run.commands.copy()
    commands["commands"] = [np.where(np.arange(STEPS) < 120, 0, steps) for steps in commands["commands"]]
    stalled = make_view(dataclasses.replace(view.run, commands=commands))
    assert [herd.bursts_of(stalled, cell).is_herd for cell in stalled.cells] == [False, True]


# Servers of quorum locks.


def of_nodes(run: Run, **third: float) -> list[dict[str, object]]:
    usual = {"asked": 1_000, "granted": 600, "refused": 400, "errors": 0, "unanswered": 0, "late": 300, "decided": 300}
    times = {"reply_p50_us": 100.0, "reply_p99_us": 300.0, "least_validity_ms": 9_000.0}
    return [
        {"cell": cell, "trial": trial, "server": server, **usual, **times, **(third if server == 3 else {})}
        for cell, trial in trials_of(run)
        for server in (1, 2, 3)
    ]


@pytest.fixture(scope="module")
def quorum() -> Run:
    return make_run([Point("redlock", 8, 1, args="nodes=3")], trials=2)


def test_a_server_that_votes_late_is_named_in_both_reports(quorum):
    view = with_frames(quorum, nodes=of_nodes(quorum, late=950, decided=5, reply_p50_us=900.0))
    (sentence,) = nodes.remarks(view)
    assert sentence == (
        "redlock(nodes=3): server 3 voted after the decision in 95 % of its votes, with a p50 of 900 µs where the "
        "others have 100 µs."
    )
    html = nodes.render(view).html
    assert "<strong>3</strong>" in html
    assert html.count("<tr ") == 3
    assert "server 3 voted after the decision" in markdown(view.run)


def test_a_server_that_does_not_reply_is_named(quorum):
    view = with_frames(quorum, nodes=of_nodes(quorum, unanswered=500, granted=300, refused=200))
    assert nodes.remarks(view) == ["redlock(nodes=3): server 3 did not reply to 50 % of its calls."]


def test_late_votes_of_the_slowest_minority_are_no_news(quorum):
    view = with_frames(quorum, nodes=of_nodes(quorum, late=450, reply_p50_us=110.0))
    assert nodes.remarks(view) == []
    assert "No server stands out." in nodes.render(view).html
    assert nodes.render(make_view(quorum)) is None


def test_a_long_table_of_servers_is_folded_up(quorum):
    assert "<details" not in nodes.render(with_frames(quorum, nodes=of_nodes(quorum))).html
    many = make_run([Point("redlock", clients, 1, args="nodes=3") for clients in range(1, 9)])
    html = nodes.render(with_frames(many, nodes=of_nodes(many))).html
    assert '<details class="more"><summary>Servers of 8 cells, as a table</summary>' in html


# Telemetry below the time line.


def of_telemetry(run: Run, steal: float = 0.0, gap: bool = False) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for cell, trial in trials_of(run):
        for step in range(20):
            at = {"cell": cell, "trial": trial, "start_ns": step * 100_000_000}
            share = None if gap and step == 7 else 0.25
            rows += [{**at, "server": server, "cpu_share": share, "commands": 500} for server in (1.0, 2.0)]
            rows.append({**at, "server": None, "cpu_share": 0.1, "steal_share": steal})
    return rows


def test_servers_are_summed_and_stand_below_the_grants_over_the_same_time(two_locks):
    view = with_frames(two_locks, telemetry=of_telemetry(two_locks))
    (figure,) = timeline.render(view).figures
    titles = [figure.layout[name]["title"]["text"] for name in ("yaxis3", "yaxis2", "yaxis")]
    assert titles == ["grants per 100 ms", *(part.title for part in telemetry.PARTS[:2])]
    below = [trace for trace in figure.data if trace["yaxis"] == "y2"]
    assert len(below) == 2
    assert all(set(trace["y"]) == {0.5} for trace in below)
    commands = [trace for trace in figure.data if trace["yaxis"] == "y"]
    assert all(set(trace["y"]) == {1_000.0} for trace in commands)
    assert commands[0]["x"][:2] == [0.05, 0.15]


def test_steal_is_shown_only_where_there_is_some_and_a_gap_is_a_gap(two_locks):
    stolen = with_frames(two_locks, telemetry=of_telemetry(two_locks, steal=0.4, gap=True))
    (figure,) = timeline.render(stolen).figures
    assert figure.layout["yaxis"]["title"]["text"] == telemetry.PARTS[2].title
    cpu = next(trace for trace in figure.data if trace["yaxis"] == "y3")
    assert cpu["y"][7] is None
    assert cpu["y"][6] == 0.5


def test_without_telemetry_the_time_line_is_what_it_was(two_locks):
    (figure,) = timeline.render(make_view(two_locks)).figures
    assert "yaxis2" not in figure.layout
    assert "yaxis" not in figure.data[0]


# Large runs.


def test_a_large_run_shows_one_load_in_detail_and_says_so(monkeypatch):
    monkeypatch.setattr(details, "MOST_CELLS", 3)
    run = make_run([Point(name, clients, 1) for name in ("mutex", "naive") for clients in (8, 64)], trials=1)
    view = make_view(run)
    shown = details.detailed(view)
    assert {(cell.row["concurrency"], cell.row["keys"]) for cell in shown} == {(64, 1)}
    full = with_frames(run, clients=of_clients(run, {cell.id: [5] * 4 for cell in view.cells}))
    section = clients.render(full)
    assert f"Of 4 cells, the {len(shown)} of one load are shown." in section.html
    assert len(section.figures) == 2
