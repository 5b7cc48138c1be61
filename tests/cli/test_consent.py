"""Load goes to another machine only after confirmation."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from pybench.cli.consent import asking
from pybench.errors import InputError
from pybench.matrix import matrix_from_options
from pybench.planning.plan import Plan, make_plan
from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor


class Keyboard(io.StringIO):
    """A user at a terminal who types this text."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def plan() -> Plan:
    return make_plan(matrix_from_options(strategy="mutex", concurrency=["1", "64"], trials="2"))


@pytest.fixture
def here() -> Iterator[Server]:
    binary = binaries.find("auto")
    process, facts = supervisor.start(binary)
    yield Server(process.endpoint, facts, binary.source)
    process.stop()


@pytest.fixture
def elsewhere(here: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server on this machine that passes for one on another, because tests send no load to other machines."""
    monkeypatch.setattr(Server, "is_local", lambda _server: False)
    return here


def test_a_server_on_this_machine_needs_no_confirmation(plan: Plan, here: Server, capsys: pytest.CaptureFixture[str]):
    asking(yes=False)(plan, [here])
    assert capsys.readouterr().err == ""


def test_the_load_is_announced_even_with_yes(plan: Plan, elsewhere: Server, capsys: pytest.CaptureFixture[str]):
    asking(yes=True)(plan, [elsewhere])
    said = capsys.readouterr().err
    assert "is not on this machine" in said
    assert "4 trials of up to 64 clients over up to 4 connections" in said


def test_without_a_terminal_load_elsewhere_is_refused(plan: Plan, elsewhere: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InputError) as caught:
        asking(yes=False)(plan, [elsewhere])
    assert "--yes" in str(caught.value.hint)


@pytest.mark.parametrize("word", ["y", "YES"])
def test_a_yes_confirms_the_load(plan: Plan, elsewhere: Server, monkeypatch: pytest.MonkeyPatch, word: str):
    monkeypatch.setattr("sys.stdin", Keyboard(f"{word}\n"))
    asking(yes=False)(plan, [elsewhere])


@pytest.mark.parametrize("word", ["", "n", "maybe"])
def test_any_other_answer_sends_nothing(plan: Plan, elsewhere: Server, monkeypatch: pytest.MonkeyPatch, word: str):
    monkeypatch.setattr("sys.stdin", Keyboard(f"{word}\n"))
    with pytest.raises(InputError, match="nothing was sent"):
        asking(yes=False)(plan, [elsewhere])
