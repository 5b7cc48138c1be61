from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from pybench.analysis.comparison import compare_locks
from pybench.cli.table import Note, render


def row(strategy: str, **figures: object) -> dict[str, Any]:
    """A row of a summary, as the table gets it."""
    return {
        "cell": f"{strategy} concurrency={figures.get('concurrency', 16)}",
        "strategy": strategy,
        "args": "",
        "backend": "redis",
        "server": "valkey 9.1.2",
        "concurrency": 16,
        "keys": 1,
        "hold": "0",
        "retry": "full-jitter",
        "ttl_ms": 10_000,
        "trials": 5,
        "grants_per_s": 21_500.0,
        "grants_per_s_low": 21_000.0,
        "grants_per_s_high": 22_100.0,
        "safe_grants_per_s": 21_500.0,
        "acquire_p50_us": 480.0,
        "acquire_p99_us": 12_500.0,
        "acquire_p999_us": float("nan"),
        "handoff_p50_us": 95.5,
        "attempts_per_grant": 3.24,
        "commands_per_grant": 4.24,
        "contention_rate": 0.6,
        "jain": 0.997,
        "longest_wait_us": 31_400.0,
        "utilisation": 0.0,
        "client_cpu_us_per_grant": 14.0,
        "server_cpu_us_per_grant": 21.0,
        "grants": 215_000,
        "contended_grants": 200_000,
        "violations": 0,
        "bound_per_million": 15.0,
        "verdict": "SAFE",
    } | figures


MINIMUM = 60
NARROW = 34

ROWS = [
    row("mutex"),
    row("naive", grants_per_s=18_900.0, safe_grants_per_s=18_900.0),
    row("none", safe_grants_per_s=0.0, verdict="UNSAFE", violations=214_000),
]


def styled(rows: list[dict[str, Any]], width: int, *notes: Note, late: frozenset[str] = frozenset()):
    """The lines of the table; each trial of a cell has the cell's median, give or take what its number adds."""
    summary = pd.DataFrame(rows)
    trials = pd.DataFrame(
        {**row, "trial": n, "block": n, "status": "complete", "grants_per_s": row["grants_per_s"] * (1 + n / 1_000)}
        for row in rows
        for n in range(1, int(row["trials"]) + 1)
    )
    return render(rows, compare_locks(summary, trials), notes, width, late=late)


def lines(rows: list[dict[str, Any]], width: int, *notes: Note) -> list[str]:
    return [line.plain for line in styled(rows, width, *notes)]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int):
    assert max(map(len, lines(ROWS, width))) <= max(width, MINIMUM)
    assert all("21,500" in line for line in lines(ROWS, width) if line.split()[:2] == ["1", "mutex"])


def test_where_no_table_fits_each_row_becomes_an_entry():
    long = {"args": "renew=ttl/3"}
    rows = [row("notify", **long), row("notify", **long, concurrency=64, verdict="UNSAFE", safe_grants_per_s=0.0)]
    told = lines(rows, NARROW)
    assert max(map(len, told)) <= NARROW
    assert told[:6] == [
        "16 clients:",
        "1 notify(renew=ttl/3)",
        "    SAFE, 21,500 safe grants/s",
        "64 clients:",
        "x notify(renew=ttl/3)",
        "    UNSAFE, 0 safe grants/s",
    ]


@pytest.mark.parametrize(("trials", "sure"), [(2, "50 %"), (4, "88 %"), (5, "94 %"), (6, "97 %"), (1, "")])
def test_the_interval_says_how_sure_it_is(trials: int, sure: str):
    above, below = lines([row("mutex", trials=trials)], 120)[:2]
    place = below.index("interval")
    assert above[place : place + 8].strip() == sure


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (98.0, 102.1, "±2.1 %"),
        (97.0, 102.1, "±3.0 %"),
        (65.0, 103.0, "-35.0/+3.0 %"),
        (100.0, 109.8, "0/+9.8 %"),
        (99.9, 100.2, "±0.2 %"),
        (100.0, 100.0, "0 %"),
        (None, None, "n/a"),
    ],
)
def test_an_interval_that_lies_askew_shows_both_ends(low: float | None, high: float | None, shown: str):
    shown_row = row("mutex", grants_per_s=100.0, grants_per_s_low=low, grants_per_s_high=high)
    assert f" {shown} " in lines([shown_row], 120)[3]


def test_a_lock_that_asks_nobody_has_no_latency():
    none = row("none", acquire_p50_us=0.0, acquire_p99_us=0.0, acquire_p999_us=0.0)
    assert lines([none], 200)[3].replace(" %", "%").split()[6:9] == ["-", "-", "-"]


def test_a_small_rate_keeps_its_digits():
    assert " 21.4 " in lines([row("mutex", safe_grants_per_s=21.43)], 120)[3]


def test_what_does_not_fit_is_dropped_and_named_and_the_verdict_stays():
    narrow = lines(ROWS, 80)
    assert "verdict" in narrow[1]
    assert "p99" in narrow[1]
    assert any("not shown at this width: " in line for line in narrow)
    assert "attempts/grant" in " ".join(narrow)


def test_everything_is_shown_where_there_is_room():
    wide = lines(ROWS, 200)
    assert "Jain's" in wide[0]
    assert not any("not shown" in line for line in wide)


def test_an_unsafe_cell_has_no_rank_and_says_what_broke():
    rows = [*ROWS[:2], row("fair", safe_grants_per_s=0.0, verdict="UNSAFE", violations=7)]
    table = styled(rows, 120, Note("UNSAFE", "fair in 1 of 2 cells: 7 double grants"))
    plain = [line.plain for line in table]
    unsafe = next(line for line in table if line.plain.lstrip().startswith("x"))
    assert str(unsafe.style) == "strike red"
    (note,) = [line for line in table if "UNSAFE fair in 1 of 2 cells: 7 double grants" in line.plain]
    assert str(note.style) == "red"
    assert [line.split()[0] for line in plain[3:6]] == ["1", "2", "x"]


def test_overlaps_without_a_lock_are_expected_and_not_red():
    note = Note("UNSAFE", "none: 214,000 double grants", is_evidence=True)
    table = styled(ROWS, 120, note)
    shown = [line for line in table if "none" in line.plain]
    assert [str(line.style) for line in shown] == ["dim", "dim"]
    assert shown[1].plain.strip() == "expected: none: 214,000 double grants"


def test_the_verdict_stands_beside_the_lock_and_the_bound_in_a_column_of_its_own():
    head, below, _, first = lines(ROWS, 120)[:4]
    assert below.split()[:3] == ["#", "lock", "verdict"]
    assert first.split()[:3] == ["1", "mutex", "SAFE"]
    place = head.index("true rate")
    assert below[place : place + 9].strip() == "below"
    assert first[place : place + 9].strip() == "0.0015 %"
    assert "true rate" not in lines([row("mutex", bound_per_million=None)], 120)[0]


def test_of_many_notes_the_first_are_shown_and_the_others_counted():
    told = lines(ROWS, 120, *(Note("UNSAFE", f"number {n}") for n in range(12)))
    assert sum("UNSAFE number" in line for line in told) == 8
    assert "  and 4 more: see the report" in told


def test_an_undecided_cell_has_no_rank():
    assert lines([row("mutex", verdict="UNDECIDED", safe_grants_per_s=None)], 120)[3].lstrip().startswith("-")


def test_ranks_count_within_a_load_under_its_name():
    """No number ranks cells of different loads: the slower load comes first and has a first of its own."""
    rows = [
        row(name, concurrency=clients, grants_per_s=rate, safe_grants_per_s=rate)
        for clients, rates in ((1, (3_000.0, 2_000.0)), (64, (500_000.0, 900_000.0)))
        for name, rate in zip(("mutex", "naive"), rates, strict=True)
    ]
    shown = lines(rows, 120)
    assert shown[3] == "1 client:"
    assert [line.split()[:2] for line in shown[4:6]] == [["1", "mutex"], ["2", "naive"]]
    assert shown[6] == "64 clients:"
    assert [line.split()[:2] for line in shown[7:9]] == [["1", "naive"], ["2", "mutex"]]


def test_locks_that_tie_share_the_first_place_in_bold_and_the_mark_is_explained():
    table = styled([row("mutex"), row("fenced"), row("naive", grants_per_s=9_000.0, safe_grants_per_s=9_000.0)], 120)
    assert [line.plain.split()[:2] for line in table[3:6]] == [["=1", "mutex"], ["=1", "fenced"], ["3", "naive"]]
    assert [str(line.style) for line in table[3:6]] == ["bold", "bold", ""]
    assert "= statistically tied with the first lock of the same rank: the difference may be chance" in told(table)


def test_locks_with_too_few_trials_share_the_first_place_and_are_neither_bold_nor_tied():
    table = styled([row(name, trials=3) for name in ("mutex", "fenced")], 120)
    assert "=1 shared by all: fewer than 4 trials per cell are too few to compare locks" in told(table)
    assert not any("chance" in line for line in told(table))
    assert [str(line.style) for line in table[3:5]] == ["", ""]


def told(table) -> list[str]:
    return [line.plain.strip() for line in table]


def test_the_longest_wait_and_jains_index_stand_in_the_table_of_a_usual_terminal():
    rows = [row("semaphore", args="permits=3"), row("pg-advisory", args="scope=transaction", backend="postgres")]
    head = lines(rows, 100)[:2]
    assert all(word in " ".join(head) for word in ("longest", "wait", "Jain's", "index", "p99", "verdict"))


def test_a_quantile_beyond_the_window_is_a_bound_and_a_pooled_one_is_marked():
    found = row("mutex", acquire_p99_us=None, acquire_p99_at_least_us=400_000.0, acquire_p999_us=4.0)
    shown = lines([found | {"acquire_p999_pooled": True}], 200)
    assert "> 400 ms" in shown[3]
    assert "4.00 µs*" in shown[3]
    assert any(line.strip().startswith("* quantile of the samples of all trials together") for line in shown)


def test_a_cell_whose_generator_was_late_is_marked():
    table = styled([row("mutex")], 120, late=frozenset({"mutex concurrency=16"}))
    assert " SAFE, generator late " in table[3].plain


def test_safe_says_what_it_stands_on():
    shown = lines([row("mutex", contended_grants=0)], 120)
    assert " SAFE, not contended " in shown[3]
    below = " ".join(line.strip() for line in shown[4:])
    assert "mutex: SAFE on healthy servers; would not survive" in below
    assert "work past the ttl" in below
    naive = " ".join(line.strip() for line in lines([row("naive")], 120)[4:])
    assert "naive: SAFE on healthy servers, only while no client crashes or works past the ttl" in naive


def test_one_line_names_all_plans_under_which_a_lock_was_safe():
    plans = ["none", "kill redis[0] at 1s", "pause redis[0] at 1s for 100ms", "kill redis[0] at 1s for 20ms"]
    rows = [row("mutex", cell=plan, faults=plan, ttl_ms=500.0, appendfsync="off") for plan in plans]
    shown = " ".join(line.strip() for line in lines(rows, 200)[4:])
    assert shown.count("would not survive") == 1
    assert "mutex: SAFE on healthy servers, under kill redis[0] and under pause redis[0]; would not survive" in shown
    # Only the last plan brings the server back without its data.
    assert shown.count("no violation was seen") == 1
    assert (
        "mutex under kill redis[0] at 1s for 20ms: no violation was seen, but the lock does not promise to survive "
        "this: redis[0] came back without its data"
    ) in shown


def test_many_notes_are_cut_short_in_words_that_are_true_of_all_cells():
    plans = [f"kill redis[{server}] at 1s for 20ms" for server in range(12)]
    rows = [row("redlock", cell=plan, args="nodes=12", faults=plan, ttl_ms=500.0, appendfsync="off") for plan in plans]
    shown = " ".join(line.strip() for line in lines(rows, 200)[4:])
    assert "under kill redis[2] and under 9 further plans of faults; would not survive" in shown
    assert "and 4 more: see the report" in shown
    assert "healthy" not in shown


def test_a_figure_that_was_not_measured_is_shown_as_na():
    assert "n/a" in lines([row("mutex")], 200)[3]


def test_a_cell_that_is_not_ranked_says_why():
    rows = [
        row("semaphore", args="permits=3", safe_grants_per_s=90_000.0),
        row("mutex"),
        row("naive", grants_per_s=9_000.0, safe_grants_per_s=9_000.0),
    ]
    shown = lines(rows, 120)
    ranks = [line.split()[:2] for line in shown[3:6]]
    assert ranks == [["1", "mutex"], ["2", "naive"], ["-", "semaphore(permits=3)"]]
    assert "  - semaphore(permits=3): not ranked, because several clients may hold a key at once" in shown
    assert not any("not ranked" in line for line in lines(ROWS, 120))


def test_the_share_of_holds_past_their_lease_stands_in_the_table_where_there_is_one():
    assert not any("past lease" in line for line in lines([row("mutex", outlived_share=0.0)], 200))
    shown = lines([row("mutex", outlived_share=0.021), row("pg-row", outlived_share=None)], 200)
    assert "past lease" in shown[1]
    assert "2.1 %" in shown[3]
