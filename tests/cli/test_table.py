from __future__ import annotations

from typing import Any

import pytest

from pybench.cli.table import Note, render, varying


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
        "ttl": "10s",
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
    row("naive", safe_grants_per_s=20_900.0),
    row("none", safe_grants_per_s=0.0, verdict="UNSAFE", violations=214_000),
]


def lines(rows: list[dict[str, Any]], width: int, *notes: Note) -> list[str]:
    return [line.plain for line in render(rows, notes, width)]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int):
    assert max(map(len, lines(ROWS, width))) <= max(width, MINIMUM)
    assert all("21,500" in line for line in lines(ROWS, width) if " mutex" in line)


def test_where_no_table_fits_each_row_becomes_an_entry():
    rows = [row("mutex"), row("mutex", concurrency=64, verdict="UNSAFE", safe_grants_per_s=0.0)]
    told = lines(rows, NARROW)
    assert max(map(len, told)) <= NARROW
    assert told[:4] == [
        "1 mutex, 16 clients",
        "    21,500 safe grants/s, SAFE",
        "x mutex, 64 clients",
        "    0 safe grants/s, UNSAFE",
    ]


@pytest.mark.parametrize(("trials", "sure"), [(2, "50 %"), (4, "88 %"), (5, "94 %"), (6, "95 %"), (1, "")])
def test_the_interval_says_how_sure_it_is(trials: int, sure: str):
    above, below = lines([row("mutex", trials=trials)], 120)[:2]
    place = below.index("interval")
    assert above[place : place + 8].strip() == sure


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (98.0, 102.1, "±2.1%"),
        (97.0, 102.1, "±3.0%"),
        (65.0, 103.0, "-35.0/+3.0%"),
        (100.0, 109.8, "-0.0/+9.8%"),
        (99.9, 100.2, "±0.2%"),
        (100.0, 100.0, "±0.0%"),
        (None, None, "n/a"),
    ],
)
def test_an_interval_that_lies_askew_shows_both_ends(low: float | None, high: float | None, shown: str):
    shown_row = row("mutex", grants_per_s=100.0, grants_per_s_low=low, grants_per_s_high=high)
    assert shown in lines([shown_row], 120)[3].split()


def test_a_lock_that_asks_nobody_has_no_latency():
    none = row("none", acquire_p50_us=0.0, acquire_p99_us=0.0, acquire_p999_us=0.0)
    assert lines([none], 200)[3].split()[4:7] == ["-", "-", "-"]


def test_a_small_rate_keeps_its_digits():
    assert " 21.4 " in lines([row("mutex", safe_grants_per_s=21.43)], 120)[3]


def test_what_does_not_fit_is_dropped_and_named_and_the_verdict_stays():
    narrow = lines(ROWS, 80)
    assert "verdict" in narrow[1]
    assert "p99" in narrow[1]
    assert any("not shown at this width: " in line for line in narrow)
    assert "Jain's index" in " ".join(narrow)


def test_everything_is_shown_where_there_is_room():
    wide = lines(ROWS, 200)
    assert "Jain's" in wide[0]
    assert not any("not shown" in line for line in wide)


def test_an_unsafe_cell_has_no_rank_and_says_what_broke():
    table = render(ROWS, [Note("UNSAFE", "none in 1 of 2 cells: 214,000 double grants")], 120)
    plain = [line.plain for line in table]
    unsafe = next(line for line in table if line.plain.lstrip().startswith("x"))
    assert "strike" in str(unsafe.style)
    assert any("UNSAFE none in 1 of 2 cells: 214,000 double grants" in line for line in plain)
    assert [line.split()[0] for line in plain[3:6]] == ["1", "2", "x"]


def test_of_many_notes_the_first_are_shown_and_the_others_counted():
    told = lines(ROWS, 120, *(Note("UNSAFE", f"number {n}") for n in range(12)))
    assert sum("UNSAFE number" in line for line in told) == 8
    assert "  and 4 more: see the report" in told


def test_an_undecided_cell_has_no_rank():
    assert lines([row("mutex", verdict="UNDECIDED", safe_grants_per_s=None)], 120)[3].lstrip().startswith("-")


def test_only_axes_that_vary_have_a_column():
    rows = [row("mutex", concurrency=1), row("mutex", concurrency=64)]
    assert varying(rows) == ["concurrency"]
    assert varying([*rows, row("mutex", ttl="1s")]) == ["concurrency", "ttl"]


def test_a_figure_that_was_not_measured_is_said_to_be_so():
    assert "n/a" in lines([row("mutex")], 200)[3]


def test_a_cell_that_is_not_compared_has_no_place_and_says_why():
    rows = [row("semaphore", safe_grants_per_s=90_000.0), row("mutex"), row("naive", safe_grants_per_s=20_900.0)]
    shown = lines(rows, 120)
    assert [line.split()[:2] for line in shown[3:6]] == [["-", "semaphore"], ["1", "mutex"], ["2", "naive"]]
    assert "  - semaphore: not ranked, for more may hold a key at a time" in shown
    assert not any("not ranked" in line for line in lines(ROWS, 120))
