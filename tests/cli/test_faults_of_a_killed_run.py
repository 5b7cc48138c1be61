"""A killed run: its left-overs on servers and on this machine, and its resumption. No password is on a screen, in a
record, or on the command line of a process of pybench."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from command_line import COMMAND, PASSWORD, GivenServer, Pybench, below, environment

from pybench.records import load
from pybench.servers.processes import ProcessId
from tests.redis_client import connect
from tests.waiting import wait_until

MATRIX = """
backends:
  theirs: {url: "redis://:${THEIR_PASSWORD}@127.0.0.1:PORT/0"}
  own: {source: auto}
axes: {strategy: mutex, concurrency: 2, backend: [theirs, own], hold: 60ms, ttl: 1h}
trials: 1
warmup: 0
duration: 200ms
"""


def test_a_killed_run_leaves_no_server_is_resumed_and_removes_its_keys_from_a_given_one(
    pybench: Pybench, given_server: GivenServer, tmp_path: Path
):
    endpoint = given_server.process.endpoint
    (tmp_path / "m.yaml").write_text(MATRIX.replace("PORT", str(endpoint.port)))
    variables = {"THEIR_PASSWORD": PASSWORD}
    process = subprocess.Popen(
        [*COMMAND, "run", "m.yaml", "--out", "folder"],
        cwd=tmp_path,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "[1/2]" in line:
            break
    ours = [identity for pid in below(process.pid) if (identity := ProcessId.of(pid))]
    assert len(ours) >= 2, "a keeper and a server"
    for pid in (process.pid, *(identity.pid for identity in ours)):
        assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    with connect(endpoint) as client:
        client.set("mine", "1")
        prefix = load(tmp_path / "folder").manifest["key_prefix"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The key of a trial that was killed during a hold: its lease would last an hour.
        client.set(f"{prefix}5:{{0}}", "held", px=3_600_000)
        wait_until(lambda: not any(identity.is_alive() for identity in ours), "all of them end")
    process.stderr.close()
    assert load(tmp_path / "folder").manifest["status"] == "running"

    answer = pybench("run", "--resume", "folder", **variables)
    assert answer.code == 0
    assert "m: 1 of 2 trials" in answer.err
    with connect(endpoint) as client:
        assert client.keys("*") == [b"mine"]
    assert load(tmp_path / "folder").manifest["status"] == "complete"
    assert len(load(tmp_path / "folder").trials) == 2
    assert PASSWORD not in said + answer.out + answer.err
    for path in (tmp_path / "folder").rglob("*"):
        assert PASSWORD.encode() not in path.read_bytes(), path
