"""What the core does when a server or a user interferes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from pybench import _core
from pybench.analysis.violation_sentences import sentence
from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor
from tests.core_trials import MS, fixed, run_for_grants
from tests.redis_client import connect

ROOT = Path(__file__).parents[2]


def in_background(trial):
    thread = threading.Thread(target=trial.run)
    thread.start()
    deadline = time.monotonic() + 5
    while trial.progress().phase != "measuring":
        assert time.monotonic() < deadline, "the trial gets to its window"
        time.sleep(0.01)
    return thread


def test_scripts_flushed_under_a_holder_are_sent_whole_and_the_lock_is_given_back(make_spec, server):
    trial = _core.Trial(make_spec(hold=fixed(5), duration_ns=400 * MS))
    thread = in_background(trial)
    with connect(server.endpoint) as client:
        client.script_flush()
    thread.join()
    totals = trial.result.totals
    assert totals["grants"] > 20
    assert totals["errors"] == totals["unknown"] == totals["double_grants"] == 0


def test_killed_connections_are_opened_again_and_their_calls_counted(make_spec, server):
    trial = _core.Trial(make_spec(hold=fixed(1), duration_ns=600 * MS, ttl_ms=50))
    thread = in_background(trial)
    with connect(server.endpoint) as client:
        for _ in range(3):
            names = [entry for entry in client.client_list() if entry["name"] == "pybench-test"]
            assert len(names) <= 2
            for entry in names:
                client.client_kill_filter(_id=entry["id"])
            time.sleep(0.1)
    thread.join()
    totals = trial.result.totals
    assert totals["reconnects"] >= 3
    assert totals["grants"] > 50, "work goes on"
    assert totals["double_grants"] == 0


def test_a_key_of_another_type_is_an_error_and_no_hang(make_spec, server):
    spec = make_spec(strategy="naive", duration_ns=200 * MS)
    with connect(server.endpoint) as client:
        client.config_set("maxmemory", "1")
        try:
            result = _core.Trial(spec).run()
        finally:
            client.config_set("maxmemory", "0")
    assert result.totals["errors"] > 8, "out of memory is told, with a pause between"
    assert result.totals["grants"] == 0


def test_a_server_that_loses_its_fences_is_told_of_with_the_fences(make_spec, server):
    trial = _core.Trial(make_spec(strategy="fenced", warmup_ns=0, duration_ns=400 * MS))
    thread = in_background(trial)
    with connect(server.endpoint) as client:
        client.flushall()
    thread.join()
    stale = next(found for found in trial.result.violations if found["kind"] == "stale-fence")
    assert stale["first_fence"] >= stale["second_fence"] > 0
    assert f"not above fence {stale['first_fence']}" in sentence(stale)


def test_a_paused_server_is_waited_for_no_longer_than_the_patience(make_spec, server):
    trial = _core.Trial(make_spec(reply_timeout_ns=50 * MS, duration_ns=500 * MS, drain_ns=500 * MS))
    thread = in_background(trial)
    with connect(server.endpoint) as client:
        client.client_pause(200, all=True)
    thread.join()
    assert trial.result.totals["unknown"] > 0
    assert trial.result.totals["double_grants"] == 0


def test_a_server_that_dies_and_comes_back_is_found_again(make_spec):
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary)
    server = Server(supervised.endpoint, facts, binary.source, supervised.pid)
    try:
        spec = make_spec(duration_ns=400 * MS, drain_ns=100 * MS)
        spec["servers"] = [{**server.core_spec(), "compare_and_delete": "script"}]
        trial = _core.Trial(spec)
        thread = in_background(trial)
        os.kill(supervised.pid, signal.SIGKILL)
        started = time.monotonic()
        thread.join()
        assert time.monotonic() - started < 1
        assert trial.result.totals["reconnects"] > 0
        assert trial.result.totals["lost_calls"] > 0
    finally:
        supervised.stop()


def test_a_server_that_is_not_there_is_named(make_spec, tmp_path):
    spec = make_spec()
    spec["servers"][0] |= {"unix": str(tmp_path / "none.sock"), "host": None}
    with pytest.raises(_core.ConnectError, match=r"none\.sock: No such file") as caught:
        _core.Trial(spec).run()
    assert caught.value.refusal is None, "nobody said anything"


def test_a_wrong_password_is_refused_and_never_shown(make_spec):
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary, password=SecretStr("right-word"))
    server = Server(supervised.endpoint, facts, binary.source, supervised.pid)
    try:
        good = make_spec()
        good["servers"] = [{**server.core_spec(), "compare_and_delete": "script"}]
        assert run_for_grants(good, 0).totals["grants"] > 0
        for protocol in (2, 3):
            bad = {**good, "servers": [{**good["servers"][0], "password": "wrong-word", "protocol": protocol}]}
            with pytest.raises(_core.ConnectError, match="WRONGPASS") as caught:
                _core.Trial(bad).run()
            assert "wrong-word" not in str(caught.value)
            server_number, command, code, text = caught.value.refusal or (None, "", "", "")
            assert (server_number, command, code) == (0, "HELLO" if protocol == 3 else "AUTH", "WRONGPASS")
            assert text.startswith("WRONGPASS ")
        database = {**good, "servers": [{**good["servers"][0], "db": 15, "protocol": 2}]}
        assert _core.Trial(database).run().totals["grants"] > 0
    finally:
        supervised.stop()


def test_a_stop_ends_a_trial_at_once_and_keeps_what_it_measured(make_spec):
    trial = _core.Trial(make_spec(hold=fixed(1), duration_ns=60_000 * MS))
    thread = in_background(trial)
    time.sleep(0.2)
    started = time.monotonic()
    trial.stop()
    thread.join()
    assert time.monotonic() - started < 0.2
    assert trial.result.stopped
    assert trial.result.totals["grants"] > 10
    assert 100 * MS < trial.result.totals["window_ns"] < 5_000 * MS


def test_progress_is_told_while_the_trial_runs(make_spec):
    trial = _core.Trial(make_spec(keys=100, duration_ns=500 * MS))
    thread = in_background(trial)
    time.sleep(0.35)
    progress = trial.progress()
    thread.join()
    assert progress.phase == "measuring"
    assert progress.grants > 0
    assert progress.grants_per_s > 0
    assert progress.p99_ns > 0
    assert trial.progress().phase == "done"


CTRL_C = """
import sys, time, json
from pybench import _core
spec = json.loads(sys.argv[1])
trial = _core.Trial(spec)
print("ready", flush=True)
try:
    trial.run()
except KeyboardInterrupt:
    print(json.dumps([trial.result.stopped, trial.result.totals["grants"]]), flush=True)
"""


def test_ctrl_c_ends_a_trial_within_200_ms_and_keeps_what_was_measured(make_spec):
    import json

    spec = make_spec(hold=fixed(1), duration_ns=60_000 * MS, warmup_ns=0)
    process = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, json.dumps(spec)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    stopped, grants = json.loads(process.stdout.readline())
    took = time.monotonic() - started
    process.wait(5)
    process.stdout.close()
    assert stopped
    assert grants > 10
    assert took < 0.2


def test_a_trial_runs_once(make_spec):
    trial = _core.Trial(make_spec(duration_ns=10 * MS, warmup_ns=0))
    trial.run()
    with pytest.raises(RuntimeError, match="once"):
        trial.run()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_trial_carried_over_a_fork_refuses_to_run(make_spec):
    trial = _core.Trial(make_spec())
    child = os.fork()
    if child == 0:
        try:
            trial.run()
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"strategy": "mutexx"}, "known are none, atomic, naive, mutex"),
        ({"args": {"nodes": 5}}, "takes no arguments"),
        ({"ttl_ms": 0}, "from 1 ms to 2\\^53"),
        ({"ttl_ms": 2}, "clock-skew margin"),
        ({"concurrency": 0}, "`concurrency`"),
        ({"threads": 9}, "`threads`"),
        ({"keys": -1}, "`keys` is of the wrong type .* or out of range"),
        ({"poll": "sometimes"}, "block, spin"),
        ({"hold": {"kind": "uniform", "low_ns": 5, "high_ns": 1}}, "`hold`"),
        ({"loop": {"kind": "open", "arrivals": "poisson", "rate_per_s": 0.0, "max_in_flight": 1}}, "`rate_per_s`"),
        ({"key_prefix": "x" * 513}, "`key_prefix`"),
        ({"servers": []}, "`servers`"),
        ({"rtt": {"kind": "uniform", "low_ns": 5, "high_ns": 1}}, "`rtt`"),
        ({"rtt": {"kind": "far"}}, "fixed, exp, lognormal, uniform or quantiles"),
    ],
)
def test_a_trial_that_cannot_be_is_refused_with_the_field(make_spec, fields, message):
    of_servers = {"rtt": fields["rtt"]} if "rtt" in fields else {}
    spec = make_spec(**{name: value for name, value in fields.items() if name not in of_servers})
    spec["servers"] = [{**one, **of_servers} for one in spec["servers"]]
    with pytest.raises(ValueError, match=message):
        _core.Trial(spec)


def test_a_debug_core_refuses_to_measure(make_spec, tmp_path):
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "lib_core.so"
    if not built.exists():
        subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "pybench-core"], cwd=ROOT, check=True)
    (tmp_path / "_core.so").symlink_to(built)
    script = "import _core, json, sys; print(_core.build_profile); _core.Trial(json.loads(sys.argv[1]))"
    import json

    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(make_spec())],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert ended.stdout == "debug\n"
    assert "RuntimeError: a core built for debugging does not measure" in ended.stderr
