"""The programs of examples/judge, on a real server: sound locks are SAFE, the broken one is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.analysis.verdicts import Verdict
from pybench.exits import Exit
from pybench.records.judging import HistoryVerdict, exit_code, judge_paths
from pybench.servers.redis import binaries, supervisor

EXAMPLES = Path(__file__).parents[2] / "examples/judge"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/*.js"), *EXAMPLES.glob("*/*.go")])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield f"redis://{process.endpoint.host}:{process.endpoint.port}"
    process.stop()


def judged(command: list[str], url: str, folder: Path, *, cwd: Path = EXAMPLES) -> HistoryVerdict:
    """The verdict on the histories that `command` writes."""
    histories = folder / "histories"
    histories.mkdir()
    subprocess.run([*command, url, str(histories)], cwd=cwd, check=True, timeout=600)
    files = sorted(histories.iterdir())
    assert len(files) == 8
    (verdict,) = judge_paths(files)
    return verdict


def test_every_program_has_fewer_than_60_lines():
    assert len(PROGRAMS) == 6
    assert {path.name: lines for path in PROGRAMS if (lines := len(path.read_text().splitlines())) >= 60} == {}


@pytest.mark.parametrize(
    ("program", "lock"), [("redis_py_lock.py", "redis-py Lock"), ("python_redis_lock.py", "python-redis-lock")]
)
def test_a_lock_of_python_is_safe(url: str, tmp_path: Path, program: str, lock: str):
    verdict = judged([sys.executable, program], url, tmp_path)
    assert (verdict.name, verdict.judgement.verdict, verdict.notes) == (lock, Verdict.SAFE, [])
    assert exit_code([verdict]) is Exit.OK


def test_a_lock_that_deletes_the_lock_of_another_is_unsafe(url: str, tmp_path: Path):
    verdict = judged([sys.executable, "broken_lock.py"], url, tmp_path)
    assert (verdict.judgement.verdict, verdict.judgement.promise_broken) == (Verdict.UNSAFE, True)
    assert verdict.counts["double_grants_after_overrun"]
    assert exit_code([verdict]) is Exit.PROMISE_BROKEN


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tool", [tool for tool in ("npm", "go") if shutil.which(tool)])
def test_a_lock_of_another_language_is_safe(url: str, tmp_path: Path, tool: str):
    """Where its tool chain is found; the packages come from its registry."""
    source = tmp_path / "source"
    shutil.copytree(EXAMPLES / {"npm": "node", "go": "go"}[tool], source)
    build, run = {
        "npm": (["npm", "install", "--no-audit", "--no-fund"], ["node", "redlock.js"]),
        "go": (["go", "build", "-o", "judge", "."], ["./judge"]),
    }[tool]
    subprocess.run(
        build, cwd=source, check=True, timeout=500, env={**os.environ, "npm_config_update_notifier": "false"}
    )
    verdict = judged(run, url, tmp_path, cwd=source)
    assert (verdict.judgement.verdict, verdict.notes) == (Verdict.SAFE, [])
