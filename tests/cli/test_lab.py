"""`pybench lab`: its words, its options, and what it leaves behind when something befalls it."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import COMMAND, PASSWORD, GivenServer, Pybench, below, environment
from syrupy.assertion import SnapshotAssertion

from pybench.lab import carrying_out
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.findings import Case, Expected
from pybench.servers import Server
from tests.redis_client import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("no_running_loop")
SMALL = ("oversell", "--concurrency", "6", "--work", "5ms")


def test_the_list_names_every_experiment(pybench_inside: Pybench):
    answer = pybench_inside("lab")
    for name, experiment in EXPERIMENTS.items():
        assert f"{name:<11}  {experiment.summary}.\n" in answer.out
        assert len(experiment.summary) <= 55
    assert [one["experiment"] for one in json.loads(pybench_inside("lab", "--json").out)] == list(EXPERIMENTS)


@pytest.mark.parametrize("name", [*EXPERIMENTS, "run-all"])
def test_each_experiment_explains_itself_in_80_columns(pybench_inside: Pybench, name: str):
    answer = pybench_inside("lab", name, "--help")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    if name in EXPERIMENTS:
        assert EXPERIMENTS[name].learn.split()[-1] in answer.out
        assert all(f"--{one.name} " in answer.out for one in EXPERIMENTS[name].parameters)


def test_the_help_of_an_experiment(pybench_inside: Pybench, snapshot: SnapshotAssertion):
    assert pybench_inside("lab", "--help").out == snapshot
    assert pybench_inside("lab", "oversell", "--help").out == snapshot


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("oversel",), "no such command 'oversel'"),
        (("oversell", "--stock", "none"), "--stock: "),
        (("oversell", "--work", "5"), "--work: "),
        (("oversell", "--strategy", "mutx"), "--strategy: there is no strategy"),
        (("oversell", "--strategy", "mutex", "--all"), "--all takes every lock"),
        (("oversell", "--strategy", "pg-optimistic"), "pg-optimistic has no part in oversell: it keeps nobody out"),
        (("oversell", "--constraint"), "--constraint is about Postgres"),
        (("oversell", "--servers", "mine"), "--servers is auto, wheel or path"),
        (("oversell", "--time-limit", "0"), "--time-limit is longer than 0"),
        (("oversell", "--html", "/dev/null/page.html"), "--html: "),
        (("ttl-edge", "--work", "1s", "--ttl", "1s"), "--work is not longer than --ttl"),
        (("crash", "--ttl", "0"), "--ttl: "),
        (("crash", "--ttl", "2ms"), "at least 3ms"),
        (("crash", "--ttl", "2h"), "at most 1h"),
        (("clock", "--ttl", "0"), '--ttl: "0" is not a lease'),
        (("leader", "--ttl", "0"), '--ttl: "0" is not a lease'),
        (("partition", "--ttl", "0"), '--ttl: "0" is not a lease'),
        (("pause", "--ttl", "0"), '--ttl: "0" is not a lease'),
        (("restart", "--ttl", "0"), '--ttl: "0" is not a lease'),
        (("clock", "--jump", "0"), "--jump is shorter than --ttl"),
        (("clock", "--ttl", "3s", "--jump", "2s"), "--jump is shorter than --ttl"),
        (("retry", "--base", "1ms"), "--base is shorter than 10ms"),
        (("retry", "--base", "100ms", "--cap", "50ms"), "--cap is shorter than --base"),
        (("deadlock", "--strategy", "none"), "none has no part in deadlock: it takes no lock"),
        (("oversell", "--stock", "50"), "--stock is not less than --concurrency"),
        (("failover", "--redis", "redis://127.0.0.1"), "no such option: --redis"),
        (("oversell", "--redis", "http://here"), "redis://"),
    ],
)
def test_an_input_that_cannot_be_used_is_named(pybench_inside: Pybench, arguments: tuple[str, ...], message: str):
    answer = pybench_inside("lab", *arguments)
    assert (answer.code, answer.out) == (40, "")
    assert message in answer.err
    assert "\nhint: " in answer.err


def test_an_experiment_prints_a_box_and_writes_its_files(pybench_inside: Pybench, tmp_path: Path):
    answer = pybench_inside("lab", *SMALL, "--html", "page.html", "--log", "clients.csv")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "| final stock     |" in answer.out
    assert answer.out.splitlines()[-1].startswith("Servers: ")
    assert "- none: 6 sold of 1: the stock is -5 (wrong, as expected).\n" in answer.out
    assert "- mutex: 1 sold of 1, never more (right).\n" in answer.out
    assert answer.out.isascii()
    assert answer.err == "written: page.html\nwritten: clients.csv\n"
    assert "6 sold of 1: the stock is -5" in (tmp_path / "page.html").read_text()
    assert len((tmp_path / "clients.csv").read_text().splitlines()) == 1 + 3 * 6


def test_a_given_server_keeps_nothing_and_its_password_is_shown_nowhere(
    pybench_inside: Pybench, given_server: GivenServer, tmp_path: Path
):
    own = "redlock needs more servers"
    with connect(given_server.process.endpoint) as server:
        server.set("mine", own)
        answer = pybench_inside("lab", *SMALL, "--all", "--redis", given_server.url, "--json", "--html", "page.html")
        assert answer.code == 0
        assert server.keys() == [b"mine"]
    told = json.loads(answer.out)
    assert {one["strategy"] for one in told["left_out"]} >= {"redlock", "multilock", "replicated"}
    assert "it needs 5 Redis servers, and 1 was given" in {one["reason"] for one in told["left_out"]}
    assert PASSWORD not in answer.out + answer.err + (tmp_path / "page.html").read_text()


def test_a_server_on_another_machine_is_used_only_after_confirmation(
    pybench_inside: Pybench, given_server: GivenServer, monkeypatch: pytest.MonkeyPatch
):
    # A server on this machine that passes for one on another, because tests send no load to other machines.
    monkeypatch.setattr(Server, "is_local", lambda server: server.started_by_us)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    for name in set(EXPERIMENTS) - {"oversell", "fencing"}:
        monkeypatch.delitem(EXPERIMENTS, name)
    with connect(given_server.process.endpoint) as server:
        commands_before = server.info("commandstats")
        for command in (SMALL, ("run-all",)):
            answer = pybench_inside("lab", *command, "--redis", given_server.url)
            assert (answer.code, answer.out) == (40, "")
            assert answer.err.count(" is not on this machine.\n") == 1, "it asks once"
            assert answer.err.endswith("stdin is no terminal\nhint: pass --yes to confirm\n")
        assert not {"cmdstat_set", "cmdstat_eval"} & (set(server.info("commandstats")) - set(commands_before))
    assert PASSWORD not in answer.err
    answer = pybench_inside("lab", *SMALL, "--redis", given_server.url, "--yes")
    assert (answer.code, answer.err.count(" is not on this machine.\n")) == (0, 1)


def test_a_missing_tool_is_named_and_run_all_skips_it(pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(carrying_out, "find_spec", lambda name: None if name == "fastapi" else True)
    answer = pybench_inside("lab", "idempotency")
    assert answer.code == 41
    assert answer.err.startswith("error: pybench lab idempotency needs fastapi\nhint: pip install 'pybench[service]'")
    for name in set(EXPERIMENTS) - {"idempotency", "oversell"}:
        monkeypatch.delitem(EXPERIMENTS, name)
    every = pybench_inside("lab", "run-all", "--json", "--html", "all.html")
    assert every.code == 41
    told = json.loads(every.out)
    assert [one["experiment"] for one in told["experiments"]] == ["oversell"]
    assert told["skipped"] == [
        {"experiment": "idempotency", "reason": "skipped: pybench lab idempotency needs fastapi"}
    ]


def test_run_all_exits_with_the_code_of_the_worst(pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    def broken(_stage: object) -> list[Case]:
        return [Case("mutex", Expected.RIGHT, went_wrong=True, sentence="it was granted twice")]

    for name in set(EXPERIMENTS) - {"fencing", "oversell"}:
        monkeypatch.delitem(EXPERIMENTS, name)
    monkeypatch.setitem(EXPERIMENTS, "oversell", replace(EXPERIMENTS["oversell"], run=broken))
    answer = pybench_inside("lab", "run-all")
    assert answer.code == 20
    lines = answer.out.splitlines()
    assert lines[0].startswith("oversell ")
    assert lines[0].endswith("A LOCK BROKE ITS PROMISE: mutex.")
    assert "As expected: " in lines[1]


def test_an_interrupt_in_the_middle_leaves_no_process_and_no_key(given_server: GivenServer, tmp_path: Path):
    # The role of the buyers is played by processes; the work is longer than the test.
    command = [
        "lab",
        "oversell",
        "--processes",
        "2",
        "--concurrency",
        "4",
        "--work",
        "50s",
        "--redis",
        given_server.url,
    ]
    with connect(given_server.process.endpoint) as server:
        running = subprocess.Popen(
            [*COMMAND, *command], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            wait_until(lambda: server.keys("pybench:lab-*"), "the stock is there", seconds=60)
            # Earlier, while the stock is filled, the interrupt would end a connection of the experiment itself.
            wait_until(lambda: server.info("clients")["connected_clients"] > 2, "the buyers are there", seconds=60)
            started = below(running.pid)
            assert len(started) >= 2
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=30)
        finally:
            running.kill()
        assert (running.returncode, out, err) == (130, b"", b"error: interrupted\n")
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
        assert server.keys() == []


def test_a_server_that_dies_in_the_middle_is_a_clear_error(given_server: GivenServer, tmp_path: Path):
    command = ["lab", "oversell", "--concurrency", "4", "--work", "50s", "--redis", given_server.url]
    with connect(given_server.process.endpoint) as server:
        running = subprocess.Popen(
            [*COMMAND, *command], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            wait_until(lambda: server.keys("pybench:lab-*"), "the stock is there", seconds=60)
            wait_until(lambda: server.info("clients")["connected_clients"] > 2, "the buyers are there", seconds=60)
            given_server.process.stop()
            # The work would take 50 s.
            out, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert (running.returncode, out) == (41, b"")
    assert b"the server of the stock" in err
    assert b"Traceback" not in err
    assert PASSWORD.encode() not in err


@pytest.mark.parametrize("command", [("retry", "--work", "5s", "--cap", "5s"), ("recipes",)])
def test_a_server_that_programs_of_the_lab_lose_is_no_bug(
    given_server: GivenServer, tmp_path: Path, command: tuple[str, ...]
):
    with connect(given_server.process.endpoint) as server:
        running = subprocess.Popen(
            [*COMMAND, "lab", *command, "--redis", given_server.url],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            wait_until(lambda: server.keys("pybench:lab-*"), "a lock is held", seconds=60)
            given_server.process.stop()
            out, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert (running.returncode, out) == (41, b"")
    assert err.startswith(f"error: {command[0]}: ".encode())
    assert b"Traceback" not in err
    assert PASSWORD.encode() not in err


def test_an_experiment_that_takes_too_long_is_ended(pybench_inside: Pybench):
    answer = pybench_inside("lab", "oversell", "--work", "30s", "--concurrency", "2", "--time-limit", "500ms")
    assert (answer.code, answer.out) == (41, "")
    assert answer.err.startswith("error: a case of the experiment did not end within 500 ms\nhint: raise --time-limit")


@pytest.mark.parametrize("name", ["crash", "partition", "pause", "restart"])
def test_a_long_wait_ends_with_its_case_and_blames_no_server(pybench_inside: Pybench, name: str):
    began = time.monotonic()
    answer = pybench_inside("lab", name, "--ttl", "30s", "--time-limit", "1500ms")
    assert (answer.code, answer.out) == (41, "")
    assert answer.err.startswith("error: a case of the experiment did not end within 1.5 s\nhint: raise --time-limit")
    assert time.monotonic() - began < 15, "the lease is longer"


def test_the_property_table_is_printed_and_fits_what_it_is_given(pybench_inside: Pybench):
    answer = pybench_inside("strategies", "--matrix")
    assert answer.code == 0
    assert "not shown at this width: " in answer.out
    (row,) = json.loads(pybench_inside("strategies", "naive", "--matrix", "--json").out)
    assert (row["strategy"], row["atomic_ttl"]) == (
        "naive",
        {"value": "no", "is_good": False, "proof": "pybench lab crash"},
    )
