"""Trials whose clients are in worker processes, on real servers: one verdict over all, whatever happens to a process.

A slow machine makes times longer: what is asserted are bounds, counts, and what differs within one trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pybench import _core
from pybench.errors import PybenchError, RecordError
from pybench.planning.trial_spec import recording_spec
from pybench.records.parts import TrialPart
from pybench.running.child import Child
from pybench.running.processes import ProcessTrial
from tests.core_trials import MS, fixed
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.matrix.cells import Cell

LEASE_MS = 600
TRIES = 5


@pytest.fixture
def make_trial(make_spec, cell: Cell) -> Callable[..., ProcessTrial]:
    def make(processes: int = 2, *, files: Sequence[str] = (), **fields: object) -> ProcessTrial:
        spec = make_spec(**{"duration_ns": 300 * MS, **fields})
        return ProcessTrial(spec | {"recording": recording_spec(cell, trial=1, files=files)}, processes)

    return make


@pytest.fixture
def cell() -> Cell:
    from pybench.matrix import expand, matrix_from_options

    return expand(matrix_from_options(strategy="mutex"))[0]


@contextlib.contextmanager
def under_way(trial: ProcessTrial) -> Iterator[Future[TrialPart]]:
    """`trial` while it runs, and its result."""
    with ThreadPoolExecutor() as threads:
        result = threads.submit(trial.run)
        try:
            yield result
        finally:
            trial.stop()


def holder_of(trial: ProcessTrial) -> int:
    """The process whose one client holds the one key: nobody else has been granted anything."""

    def holders() -> list[int]:
        return [index for index in range(2) if trial._workers and trial.worker(index).progress.get("grants")]

    wait_until(lambda: len(trial._workers) == 2 and holders(), "somebody holds the key")
    return holders()[0]


def held(**fields: object) -> dict[str, Any]:
    """Two clients, each in a process of its own, of which one holds the key for most of its lease."""
    usual = {"concurrency": 2, "connections": {"kind": "per-client"}, "ttl_ms": LEASE_MS, "warmup_ns": 0}
    return {**usual, "hold": fixed(LEASE_MS * 0.9), "duration_ns": 20_000 * MS, **fields}


def require_consistent(part: TrialPart) -> None:
    assert part.totals["findings"] == 0, part.finding
    grants = part.totals["grants"]
    assert part.clients["grants"].sum() == grants
    if not part.stopped:  # A short rest of a window is no step of its own.
        assert part.timeline["grants"].sum() == grants


@pytest.mark.parametrize("threads", [1, 2])
def test_a_lock_that_excludes_clients_of_other_processes_is_safe(make_trial, make_spec, threads: int):
    # Pauses let clients of both processes have the key: one that asks again at once often wins.
    load: dict[str, object] = {"threads": threads, "hold": fixed(1), "think": fixed(8)}
    part = make_trial(**load).run()
    require_consistent(part)
    totals = part.totals
    assert totals["contended_grants"] > 0
    assert totals["double_grants"] + totals["lease_overruns"] == 0
    assert len(part.clients["grants"]) == 8
    assert part.clients["grants"][:4].sum() > 0
    assert part.clients["grants"][4:].sum() > 0
    assert totals["window_ns"] == 300 * MS
    alone = _core.Trial(make_spec(duration_ns=300 * MS, **load)).run()
    assert part.totals.keys() == alone.totals.keys()
    assert {(row.phase, row.outcome) for row in alone.histograms if row.phase == "handoff"} == {
        (row.phase, row.outcome) for row in part.histograms if row.phase == "handoff"
    }


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_arrivals_come_as_in_one_process(make_trial, make_spec, threads: int):
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 400.0, "max_in_flight": 1_000}
    load: dict[str, object] = {"loop": loop, "threads": threads, "keys": 100, "duration_ns": 300 * MS}
    # A process that the machine stopped for half of the window shows little: there is another trial.
    trials = (make_trial(**load).run() for _ in range(TRIES))
    part = next(one for one in trials if one.totals["longest_stall_ns"] < 100 * MS)
    require_consistent(part)
    alone = _core.Trial(make_spec(**load)).run()
    # Each of up to four threads may have one more or less at each end of the window.
    assert part.totals["arrivals"] == pytest.approx(120, abs=8)
    assert alone.totals["arrivals"] == pytest.approx(120, abs=8)
    assert part.totals["grants"] > 60


def test_no_lock_is_caught_over_the_borders_of_processes(make_trial):
    part = make_trial(strategy="none", hold=fixed(1)).run()
    require_consistent(part)
    assert part.totals["double_grants"] > 100
    assert len(part.violations) == 100
    pairs = {(one["first_client"] < 4, (one["second_client"] or 0) < 4) for one in part.violations}
    assert {(True, False), (False, True)} & pairs, "clients 0 to 3 are in one process, 4 to 7 in the other"


def test_stages_change_the_load_of_all_processes_together(make_trial):
    stages = [{"from": 0.0, "to": 8.0, "length_ns": 200 * MS}, {"from": 8.0, "to": 8.0, "length_ns": 200 * MS}]
    part = make_trial(stages=stages, duration_ns=400 * MS, hold=fixed(1), keys=100).run()
    require_consistent(part)
    assert part.timeline["offered"].tolist() == pytest.approx([2, 6, 8, 8])
    first, last = part.timeline["grants"][0], part.timeline["grants"][3]
    assert 0 < first < last


def test_a_single_worker_process_is_judged_too(make_trial):
    part = make_trial(1, strategy="none", hold=fixed(1)).run()
    require_consistent(part)
    assert part.totals["double_grants"] > 100


def keys_of(files: Sequence[str], recorded: Any) -> dict[str, list[str]]:  # noqa: ANN401 - of the core
    """The keys that each client asked for, in order."""
    lines = _core.RecordedLines(list(files), recorded["window"], recorded["ended_ns"], {}, 1)
    keys = defaultdict(list)
    text = b"".join(iter(lines.next, b"")).decode()
    for event in map(json.loads, text.splitlines()[1:]):
        if event["event"] == "acquire":
            keys[event["client"]].append(event["key"])
    return keys


def test_clients_draw_the_same_in_any_number_of_processes(make_trial, make_spec, cell: Cell, tmp_path: Path):
    fields: dict[str, object] = {"keys": 1_000, "duration_ns": 100 * MS, "hold": fixed(1)}
    drawn = []
    for processes in (0, 2):
        files = [str(tmp_path / f"{processes}.{thread}") for thread in range(max(1, processes))]
        recording = recording_spec(cell, trial=1, files=files)
        result = (
            make_trial(processes, files=files, **fields).run()
            if processes
            else _core.Trial(make_spec(recording=recording, **fields)).run()
        )
        drawn.append(keys_of(files, result.recorded))
    alone, spread = drawn
    assert alone.keys() == spread.keys()
    assert len(alone) == 8
    for client, keys in alone.items():
        common = min(len(keys), len(spread[client]))
        assert common > 5
        assert keys[:common] == spread[client][:common]


def test_the_key_of_a_killed_process_is_free_when_its_lease_ends(make_trial):
    trial = make_trial(**held(hold=fixed(10_000), ttl_ms=1_500, fault_periods=[(0, 1 * MS)]))
    with under_way(trial) as running:
        holder = holder_of(trial)
        trial.worker(holder).kill()
        other = trial.worker(1 - holder)
        wait_until(lambda: other.progress.get("grants"), "the key is granted to the other process")
        trial.stop()
        part = running.result()
    require_consistent(part)
    totals = part.totals
    assert totals["double_grants"] + totals["lease_overruns"] == 0
    assert totals["grants"] == 2
    assert sum(period["grants"] for period in part.periods) == 2
    responses = [row.count for row in part.histograms if (row.phase, row.outcome) == ("response", "granted")]
    assert responses == [2], "the killed process handed its latencies over"
    assert part.faults is not None
    assert part.faults["orphans"] == 1
    (free_ns,) = part.faults["time_to_free_ns"]
    assert 500 * MS < free_ns < 5_000 * MS
    assert 0 < totals["nominal_hold_ns"] <= 20_000 * MS


def test_a_killed_process_that_handed_nothing_over_has_its_grants_and_all_counters(make_trial, make_spec, monkeypatch):
    trial = make_trial(1, duration_ns=20_000 * MS, hold=fixed(1))
    with under_way(trial) as running:
        wait_until(lambda: trial.progress().grants > 10, "locks are granted")
        monkeypatch.setattr(trial.worker(0), "_hand_over", lambda: None)
        assert trial.worker(0).kill()
        part = running.result()
    require_consistent(part)
    assert part.totals["grants"] > 10
    assert part.totals["attempts"] == part.totals["commands"] == 0
    alone = _core.Trial(make_spec(duration_ns=10 * MS)).run()
    # No loop was there to stand still.
    assert alone.totals.keys() - part.totals.keys() == {"longest_stall_ns"}


def test_a_stopped_process_outlives_its_lease_which_is_no_fault_of_the_lock(make_trial):
    trial = make_trial(**held())
    with under_way(trial) as running:
        worker = trial.worker(holder_of(trial))
        worker.pause()
        other = trial.worker(1 - worker.index)
        wait_until(lambda: other.progress.get("grants"), "the key is granted to the other process")
        worker.resume()
        trial.stop()
        part = running.result()
    require_consistent(part)
    assert part.totals["double_grants"] + part.totals["double_grants_after_overrun"] == 0
    # More than one where the machine is so busy that the other client comes twice meanwhile.
    assert part.totals["lease_overruns"] >= 1
    assert part.totals["outlived"] >= 1
    assert part.totals["longest_stall_ns"] < LEASE_MS * MS, "one of them stood still on purpose"


def test_a_process_that_is_killed_while_it_is_stopped_overlaps_nobody_later(make_trial):
    trial = make_trial(**held(ttl_ms=1_500, hold=fixed(1_400)))
    with under_way(trial) as running:
        worker = trial.worker(holder_of(trial))
        worker.pause()
        worker.kill()
        other = trial.worker(1 - worker.index)
        wait_until(lambda: other.progress.get("grants"), "the key is granted to the other process")
        trial.stop()
        part = running.result()
    require_consistent(part)
    assert part.totals["double_grants"] + part.totals["lease_overruns"] == 0


def test_an_auto_renewed_lock_of_a_stopped_process_learns_late_that_it_is_lost(make_trial):
    periods = [(0, 3_000 * MS)]
    trial = make_trial(
        **held(strategy="watchdog", hold=fixed(5_000), fault_periods=periods, ttl_ms=300, duration_ns=3_000 * MS)
    )
    with under_way(trial) as running:
        worker = trial.worker(holder_of(trial))
        worker.pause()
        other = trial.worker(1 - worker.index)
        wait_until(lambda: other.progress.get("grants"), "the key is granted to the other process")
        time.sleep(0.2)
        worker.resume()
        part = running.result()
    require_consistent(part)
    assert part.faults is not None
    assert max(part.faults["time_to_know_ns"]) > 150 * MS
    assert part.totals["double_grants"] == 0


def test_a_process_that_ends_by_itself_ends_the_trial_with_its_last_words(make_trial):
    trial = make_trial(duration_ns=20_000 * MS)
    with under_way(trial) as running:
        wait_until(lambda: trial.progress().phase == "measuring", "the trial is under way")
        pids = [child.pid for child in workers()]
        os.kill(trial.worker(0)._child._process.pid, signal.SIGKILL)
        with pytest.raises(PybenchError, match="worker process 0 of the trial was ended by SIGKILL") as raised:
            running.result()
    assert raised.value.hint
    assert len(pids) == 2
    assert not any(map(psutil.pid_exists, pids)), "the others end with it"


def workers(parent: int | None = None) -> list[psutil.Process]:
    children = psutil.Process(parent).children(recursive=True)
    return [child for child in children if "pybench.running.trial_worker" in " ".join(child.cmdline())]


def test_an_interrupt_ends_the_trial_early_and_keeps_its_figures(make_trial):
    trial = make_trial(duration_ns=20_000 * MS, concurrency=8, hold=fixed(1))

    def interrupt() -> None:
        # Also while a process is stopped, which then goes on to release what it holds.
        wait_until(lambda: trial.progress().grants > 10, "locks are granted")
        trial.worker(1).pause()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        trial.run()
    assert trial.result is not None
    require_consistent(trial.result)
    assert trial.result.stopped
    assert trial.result.totals["grants"] > 10
    assert trial.result.totals["window_ns"] < 20_000 * MS
    assert not workers()


def test_half_a_line_of_a_process_that_was_killed_is_not_heard(tmp_path: Path):
    (tmp_path / "says_half.py").write_text("print('{}')\nprint('{\"part\": ', end='', flush=True)\n")
    heard: list[str] = []
    ended = threading.Event()
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with Child(sys.executable, "says_half", variables=variables, hear=heard.append, ended=ended.set):
        assert ended.wait(20)
    assert heard == ["{}\n"]


def test_an_interrupted_wait_does_not_take_a_child_for_one_that_has_said_all(tmp_path: Path):
    (tmp_path / "says_late.py").write_text("import sys\nsys.stdin.read()\nprint('late')\n")
    heard: list[str] = []
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with Child(sys.executable, "says_late", variables=variables, hear=heard.append) as child:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            child.heard_all(20)
        child.stop()
        assert child.heard_all(20)
    assert heard == ["late\n"]


ORPHANED = """
import json, sys, threading
from pybench.running.processes import ProcessTrial
trial = ProcessTrial(json.loads(sys.stdin.readline()), 2)
def pause():
    while not trial.progress().grants:
        pass
    trial.worker(0).pause()
    print("paused", flush=True)
threading.Thread(target=pause, daemon=True).start()
trial.run()
"""


def test_no_process_survives_its_parent_not_even_a_stopped_one(make_spec, cell: Cell):
    spec = make_spec(duration_ns=60_000 * MS) | {"recording": recording_spec(cell, trial=1, files=[])}
    with subprocess.Popen([sys.executable, "-c", ORPHANED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps(spec).encode() + b"\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == b"paused\n"
        left = workers(parent.pid)
        parent.kill()
    assert len(left) == 2
    wait_until(lambda: not any(one.is_running() and one.status() != "zombie" for one in left), "the workers end")


def test_a_recording_that_cannot_grow_is_an_error_and_ends_all(make_trial):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(RecordError, match=r"cannot be recorded in .*: File too large"):
            make_trial().run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not workers()


def test_a_password_is_in_no_argument_and_no_environment_of_a_process(make_trial, make_spec):
    secret = "7f4c-a-password"
    spec = make_spec()
    servers = [{**spec["servers"][0], "password": secret}]
    trial = make_trial(servers=servers, duration_ns=500 * MS)
    seen = []
    with under_way(trial) as running:
        wait_until(lambda: [*workers(), *([None] if running.done() else [])], "the processes are there")
        for worker in workers():
            with contextlib.suppress(psutil.Error):
                seen += [*worker.cmdline(), *worker.environ().values()]
        assert running.result().totals["grants"] > 0
    assert seen
    assert not any(secret in text for text in seen)


def test_a_server_that_is_not_there_is_told_as_by_a_trial_of_one_process(make_trial, make_spec, tmp_path: Path):
    spec = make_spec()
    servers = [{**spec["servers"][0], "unix": str(tmp_path / "none.sock"), "host": None, "port": 0}]
    with pytest.raises(_core.ConnectError, match=r"none\.sock") as raised:
        make_trial(servers=servers).run()
    assert raised.value.refusal is None
