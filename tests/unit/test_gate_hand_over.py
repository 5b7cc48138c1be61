"""What a gate and the process of a trial say to each other, and what happens where one of them is another version."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from pybench.errors import InputError, PybenchError
from pybench.gate import trial_process
from pybench.gate.hand_over import NUMBER, request
from pybench.gate.other_python import Environment, OtherTrial
from tests.core_trials import trial_spec_of

SECRET = "hunter2-pass"


def spec(socket):
    server = {"kind": "redis", "unix": str(socket), "host": None, "port": 0, "username": None, "password": SECRET}
    return dict(trial_spec_of([{**server, "db": 0, "protocol": 3, "compare_and_delete": "script"}]))


def asked(do, given):
    return trial_process._answer(json.dumps(request(do, given)), io.StringIO())


def test_it_says_its_versions():
    assert asked("hello", None)["versions"]["build_profile"] == "release"


def test_a_newer_request_is_refused():
    line = json.dumps({**request("hello"), "hand_over": NUMBER + 1})
    error = trial_process._answer(line, io.StringIO())["error"]
    assert error == {"kind": "version", "text": f"it knows hand-over {NUMBER}, and was asked for {NUMBER + 1}"}


def test_an_entry_that_it_does_not_know_is_refused_and_not_ignored(tmp_path):
    known = spec(tmp_path / "no-socket")
    newer = {**known, "weather": 1, "servers": [{**known["servers"][0], "colour": "red"}]}
    assert asked("trial", newer)["error"]["text"] == "it does not know colour, weather of a trial"
    assert all(caught for _, caught in asked("planted", {**known, "weather": False})["planted"])
    missing = {name: value for name, value in known.items() if name != "seed"}
    assert "`seed` is missing" in asked("trial", missing)["error"]["text"]


def test_a_server_that_is_away_is_the_error_that_it_is_without_a_process(tmp_path):
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        line = json.dumps(request("trial", spec(tmp_path / "no-socket")))
        answer = trial_process._answer(line, stdin)
        os.close(writing)
    assert answer["error"]["kind"] == "connect"
    assert answer["refusal"] is None


def fake(tmp_path: Path, script: str) -> Environment:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return Environment(python, secrets={SECRET})


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (f"""read line; echo '{{"hand_over": {NUMBER + 1}}}'""", InputError, f"it knows hand-over {NUMBER + 1}"),
        ("""read line; echo '{"hand_over": 1}'""", InputError, "it does not say its versions"),
        ("echo noise; exit 3", PybenchError, "ended with code 3 and without a reply; it said: nothing"),
        (f"echo failed for {SECRET} >&2; exit 1", PybenchError, "it said: failed for"),
        ("echo \"ModuleNotFoundError: No module named 'pybench'\" >&2; exit 1", InputError, "there is no pybench in"),
        ("echo \"No module named 'pybench.gate'\" >&2; exit 1", InputError, "it is too old"),
    ],
)
def test_a_process_without_a_useful_reply_is_an_error_without_a_password(tmp_path, script, kind, message):
    with pytest.raises(kind, match=message) as raised:
        fake(tmp_path, script).hello()
    assert SECRET not in str(raised.value)
    assert raised.value.hint


def test_a_process_that_says_nothing_is_ended(tmp_path):
    with pytest.raises(PybenchError, match="did not reply within 0 s"):
        fake(tmp_path, "exec sleep 600").ask("hello", None, 0.2)


def test_a_failed_trial_is_an_error(tmp_path):
    reply = json.dumps({"hand_over": NUMBER, "error": {"kind": "trial", "text": f"out of memory for {SECRET}"}})
    trial = OtherTrial(fake(tmp_path, f"read line; echo '{reply}'"), spec(tmp_path / "no-socket"))
    with pytest.raises(PybenchError, match="failed: out of memory") as raised:
        trial.run()
    assert SECRET not in str(raised.value)
    assert trial.result is None


def test_only_a_python_is_an_environment(tmp_path):
    with pytest.raises(InputError, match="there is no Python at"):
        Environment.at(tmp_path)
    found = fake(tmp_path, "")
    assert Environment.at(found.python).python == found.python
