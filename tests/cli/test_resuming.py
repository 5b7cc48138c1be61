"""Runs that ended early: the command that resumes them, and what `--resume` accepts and refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pexpect
import pytest
from command_line import COMMAND, PASSWORD, QUICK, GivenServer, Pybench, answer_of, environment

from pybench.records import load
from pybench.running.resume import command
from tests.redis_client import connect

SMALL = ["-s", "mutex", "--concurrency", "2,4", *QUICK]


def reopened(folder: Path, **fields: object) -> None:
    """Mark the run in `folder` as incomplete in its manifest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | {"status": "interrupted", **fields}
    path.write_text(json.dumps(manifest))


def test_a_run_that_lacks_only_its_end_is_gathered_and_keeps_its_baseline(pybench: Pybench, tmp_path: Path):
    pybench("run", *SMALL, "--out", "folder")
    before = load(tmp_path / "folder")
    reopened(tmp_path / "folder")
    answer = pybench("run", "--resume", "folder")
    after = load(tmp_path / "folder")
    assert (answer.code, after.manifest["status"]) == (0, "complete")
    assert after.manifest["baseline"] == before.manifest["baseline"]
    assert "[control]" not in answer.err
    assert after.trials.equals(before.trials)


def test_the_password_of_a_given_server_is_asked_for_again(pybench: Pybench, given_server: GivenServer, tmp_path: Path):
    pybench("run", *SMALL, "--out", "folder", "--redis", given_server.url)
    reopened(tmp_path / "folder")
    refused = pybench("run", "--resume", "folder")
    assert refused.code == 40
    shown = given_server.url.replace(PASSWORD, "PASSWORD").removesuffix("/0")
    assert f"--resume {tmp_path / 'folder'} --redis {shown}" in refused.err
    assert pybench("run", "--resume", "folder", PYBENCH_REDIS_URL=given_server.url).code == 0


def test_a_password_that_the_environment_keeps_is_found_there_again(
    pybench: Pybench, given_server: GivenServer, tmp_path: Path
):
    url = given_server.url.replace(PASSWORD, "${THEIR_PASSWORD}")
    (tmp_path / "m.yaml").write_text(f'backends: {{theirs: {{url: "{url}"}}}}')
    assert pybench("run", "m.yaml", *SMALL, "--out", "folder", THEIR_PASSWORD=PASSWORD).code == 0
    reopened(tmp_path / "folder")
    assert PASSWORD not in (tmp_path / "folder" / "manifest.json").read_text()
    assert pybench("run", "--resume", "folder").code == 40
    assert pybench("run", "--resume", "folder", THEIR_PASSWORD=PASSWORD).code == 0


def test_a_server_at_another_address_is_another_server(pybench: Pybench, given_server: GivenServer, tmp_path: Path):
    pybench("run", *SMALL, "--out", "folder", "--redis", given_server.url)
    servers = json.loads((tmp_path / "folder" / "manifest.json").read_text())["servers"]
    reopened(tmp_path / "folder", servers=[{**servers[0], "address": "redis://127.0.0.1:1/0"}])
    answer = pybench("run", "--resume", "folder", "--redis", given_server.url)
    assert answer.code == 40
    assert "at redis://127.0.0.1:1/0, and now there is" in answer.err


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core nothing is bound to any")
def test_a_run_that_was_bound_to_cores_is_not_resumed_without_them(pybench: Pybench, tmp_path: Path):
    first, *_, last = cores = sorted(os.sched_getaffinity(0))
    pybench("run", *SMALL, "--out", "folder")
    reopened(tmp_path / "folder")
    on_one = {"begin": lambda: os.sched_setaffinity(0, {first})}
    refused = answer_of([*COMMAND, "run", "--resume", "folder"], tmp_path, **on_one)
    servers = ", ".join(map(str, cores[:-1]))
    assert (refused.code, refused.err.splitlines()) == (
        40,
        [
            f"error: this run cannot be resumed here: the run was bound to the cores {last} (load threads) "
            f"and {servers} (servers), "
            "and now it would be bound to no cores",
            "hint: start a new run: trials under different conditions cannot be compared",
        ],
    )
    assert pybench("run", "--resume", "folder").code == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "pybench run --resume 'my run'"),
        ("redis://localhost", "pybench run --resume 'my run'"),
        ("redis://me:***@db/2", "pybench run --resume 'my run' --redis redis://me:PASSWORD@db/2"),
    ],
)
def test_the_resume_command_shows_where_to_fill_in_a_password(url: str | None, said: str):
    backends = {"redis": {"kind": "redis"} if url is None else {"url": url}}
    assert command({"matrix": {"expanded": {"backends": backends}}}, "my run") == said


def test_the_resume_command_names_all_servers_of_a_run_with_several():
    urls = ["redis://me:***@a", "redis://b"]
    told = command({"matrix": {"expanded": {"backends": {"redis": {"urls": urls}}}}}, "folder")
    assert told == "pybench run --resume folder --redis redis://me:PASSWORD@a --redis redis://b"


def test_a_terminal_that_is_closed_ends_the_run_in_good_order(given_server: GivenServer, tmp_path: Path):
    arguments = ["run", "-s", "mutex", "--concurrency", "4", "--keys", "1000", "--trials", "3", "--duration", "2s"]
    program, *rest = [*COMMAND, *arguments, "--redis", given_server.url, "--out", "folder"]
    process = pexpect.spawn(program, rest, cwd=str(tmp_path), env=environment(), encoding="utf-8", timeout=30)
    process.expect_exact("[1/3]")
    process.expect_exact("measuring")
    # The terminal hangs up, as when a window is closed.
    os.close(process.child_fd)
    _, status = os.waitpid(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert load(tmp_path / "folder").manifest["status"] == "interrupted"
    assert (tmp_path / "folder" / "report.html").exists()
    with connect(given_server.process.endpoint) as client:
        assert client.keys("*") == []
