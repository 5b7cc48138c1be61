"""Fixtures of the command line: the command itself, and a running server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import COMMAND, PASSWORD, Answer, GivenServer, Pybench, answer_of
from pydantic import SecretStr

from pybench.cli.line import answer
from pybench.servers.redis import binaries, supervisor


@pytest.fixture
def pybench(tmp_path: Path) -> Pybench:
    """Runs one command line, and returns its exit code and its output."""

    def run(*arguments: str, seconds: float = 60, **variables: str) -> Answer:
        return answer_of([*COMMAND, *arguments], tmp_path, seconds=seconds, **variables)

    return run


@pytest.fixture
def pybench_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """Runs one command line in this process: faster, for commands that measure nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("PYBENCH_REDIS_URL", raising=False)
    monkeypatch.delenv("PYBENCH_POSTGRES_URL", raising=False)

    def run(*arguments: str) -> Answer:
        code = answer(list(arguments))
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return run


@pytest.fixture
def given_server() -> Iterator[GivenServer]:
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp", password=SecretStr(PASSWORD))
    yield GivenServer(process)
    process.stop()
