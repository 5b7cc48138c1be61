"""The axis `processes`: which cells can be spread over worker processes, and which faults of processes there are."""

from __future__ import annotations

import pytest

from pybench.analysis.fault_promises import of_cell
from pybench.errors import InputError
from pybench.matrix import expand, matrix_from_options
from pybench.matrix.faults import Fault, Faults
from pybench.notation import BadValue
from pybench.planning import control, probes
from pybench.planning.plan import TRIAL_OVERHEAD_NS, before_trials_ns, make_plan
from pybench.planning.process_rules import starting_ns
from pybench.strategies import CATALOGUE


def refused(**options: str) -> str:
    (refused,) = make_plan(matrix_from_options(**{"strategy": "mutex", "concurrency": "8", **options})).refused
    return refused.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"processes": "2", "mode": "saturate"}, "mode saturate"),
        ({"processes": "2", "warmup": "steady"}, "warm-up until steady"),
        ({"processes": "5", "threads": "2"}, "5 processes with 2 threads each for a concurrency of 8"),
        ({"faults": "kill process[0] at 1s"}, "has no worker processes; add processes: 2"),
        ({"processes": "2", "faults": "pause process[2] at 1s for 1ms"}, "has 2 processes; the last one is process[1]"),
        ({"processes": "1", "faults": "kill process[1] at 1s"}, "has 1 process; the last one is process[0]"),
        ({"processes": "2", "faults": "kill process[0] at 9s"}, "the window of 2s is over by then"),
        ({"processes": "2", "strategy": "pg-optimistic", "faults": "kill process[0] at 1s"}, "judged by writes"),
        ({"processes": "2", "strategy": "layered", "faults": "kill process[0] at 1s"}, "layered is judged by writes"),
        ({"processes": "2", "guard": "counter", "faults": "kill process[0] at 1s"}, "guard: counter is judged by"),
    ],
)
def test_what_cannot_be_spread_is_refused_with_the_reason(options: dict[str, str], reason: str):
    assert reason in refused(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"processes": "2", "threads": "4"},
        {"processes": "2", "stages": "0 -> 8 over 1s"},
        {"processes": "2", "rate": "100/s"},
        {"processes": "2", "strategy": "pg-optimistic", "faults": "pause process[1] at 1s for 100ms"},
        {"processes": "3", "faults": "kill process[0] at 1s, crash client[0] at 1s, kill redis[0] at 1s for 1ms"},
    ],
)
def test_what_can_be_spread_is_planned(options: dict[str, str]):
    plan = make_plan(matrix_from_options(**{"strategy": "mutex", "concurrency": "8", **options}))
    assert not plan.refused
    assert len(plan.cells) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kill process[0] at 1s for 500ms", "kill happens at one moment"),
        ("pause process[0] at 1s", "pause needs a length"),
        ("restart process[0] at 1s", "restart is not for process"),
        ("cut process[0] at 1s", "cut is not for process"),
        ("pause process[0] at 1s for 0", "a pause of 0 does nothing"),
    ],
)
def test_a_fault_that_no_process_can_have_is_refused(text: str, problem: str):
    with pytest.raises(BadValue, match=problem):
        Fault.parse(text)


def test_a_killed_process_cannot_be_harmed_again():
    Faults.parse("pause process[0] at 1s for 100ms, kill process[0] at 1200ms, kill process[1] at 1s")
    with pytest.raises(BadValue, match=r"pause process\[0\] at 2s for 1ms comes after kill process\[0\] at 1s"):
        Faults.parse("kill process[0] at 1s, pause process[0] at 2s for 1ms")


def test_faults_of_processes_keep_their_text():
    text = "kill process[1] at 1s, pause process[0] at 1s for 500ms"
    assert Faults.parse(text).text == "pause process[0] at 1s for 500ms, kill process[1] at 1s"


def test_a_lock_promises_under_a_killed_process_what_it_promises_under_a_crash():
    def under(faults: str) -> tuple[bool, bool, bool]:
        (cell,) = expand(matrix_from_options(strategy="mutex", concurrency="4", processes="2", faults=faults))
        promised = of_cell(cell, CATALOGUE["mutex"])
        return promised.exclusion, promised.data, promised.progress

    assert under("kill process[0] at 1s") == under("crash client[0] at 1s") == (True, True, False)
    assert under("pause process[0] at 1s for 1ms") == under("pause client[0] at 1s for 1ms") == (True, True, False)


def test_probes_use_the_most_processes_and_baselines_none():
    matrix = matrix_from_options(strategy="mutex", concurrency="64", processes=["0", "12"], threads=["1", "2"])
    cells = expand(matrix)
    (probe,) = probes.probe_cells(cells)
    assert (probe.processes, probe.threads, probe.concurrency) == (12, 2, 48)
    baseline = control.client_cost_cell(cells[-1], "redis")
    assert (baseline.processes, baseline.threads) == (0, 1)


def test_a_probe_has_a_load_that_a_cell_has():
    cells = [
        cell
        for processes, threads in (("0", "16"), ("8", "1"))
        for cell in expand(
            matrix_from_options(strategy="mutex", concurrency="64", processes=processes, threads=threads)
        )
    ]
    (probe,) = probes.probe_cells(cells)
    assert (probe.processes, probe.threads, probe.concurrency) == (8, 1, 16)


def test_the_time_before_the_trials_covers_the_start_of_the_processes_of_each_check():
    def before_s(processes: list[str]) -> float:
        return before_trials_ns(expand(matrix_from_options(strategy="mutex", processes=processes))) / 1e9

    started_s = starting_ns(expand(matrix_from_options(strategy="mutex", processes="4"))[0]) / 1e9
    # Both parts of the probe have processes, and so has a control of its own beside that of one process.
    assert before_s(["4"]) == pytest.approx(before_s(["0"]) + 3 * started_s)
    assert before_s(["0", "4"]) == pytest.approx(before_s(["4"]) + control.CONTROL_NS / 1e9 + TRIAL_OVERHEAD_NS / 1e9)


@pytest.mark.parametrize("value", ["-1", "65", "two"])
def test_a_number_of_processes_out_of_range_is_refused(value: str):
    with pytest.raises(InputError, match="processes"):
        matrix_from_options(strategy="mutex", processes=value)
