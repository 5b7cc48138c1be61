"""`pybench fuzz` and `pybench replay`: worlds on virtual time, found from seeds and played again."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_line import Pybench

from pybench.core_results import FuzzTally
from pybench.fuzz import Search, parse_worlds, search

MANUAL = Path(__file__).parents[2] / "docs/fuzz.md"
SMALL = ("--ttl", "50ms", "--hold", "20ms", "--length", "250ms")
"""Worlds that take few events."""


def searched(pybench_inside: Pybench, *arguments: str) -> dict:
    answer = pybench_inside("fuzz", *arguments, "--json")
    found = json.loads(answer.out)
    assert found["exit_code"] == answer.code
    return found


def played(pybench_inside: Pybench, command: str, *more: str) -> dict:
    words = shlex.split(command)
    assert words[0] == "pybench"
    return json.loads(pybench_inside(*words[1:], *more, "--json").out)


def test_the_manual_shows_what_its_commands_print(pybench_inside: Pybench):
    """Worlds are the same on any machine; only how long they took is not."""
    fenced = MANUAL.read_text().split("```")[1::2]
    commands, answers = fenced[0::2], fenced[1::2]
    assert [shlex.split(command)[2] for command in commands] == ["fuzz", "replay"]
    for command, answer in zip(commands, answers, strict=True):
        out = pybench_inside(*shlex.split(command)[2:]).out
        assert timeless(out).strip() == timeless(answer).strip()


def timeless(text: str) -> str:
    return re.sub(r"in [\d.]+ s, [\d,]+ events/s", "in ... s, ... events/s", text)


@pytest.mark.parametrize(
    ("strategy", "fault", "seeds"), [("mutex", "failover", 60), ("redlock", "clock", 40), ("redlock", "forget", 40)]
)
def test_a_classic_counter_example_is_found_and_its_one_line_repeats_it(
    pybench_inside: Pybench, strategy: str, fault: str, seeds: int
):
    options = ("--seeds", str(seeds), "--faults", fault, "--clients", "4", *SMALL)
    found = searched(pybench_inside, "--strategy", strategy, *options)
    assert (found["exit_code"], found["broken"]) == (0, [])
    (one,) = found["shortest"]
    assert 2 <= one["clients"] <= 4
    assert set(one["faults"]) == {fault}
    again = played(pybench_inside, one["replay"])
    assert (again["sentence"], again["broken"]) == (one["sentence"], False)
    assert again["replay"] == one["replay"]
    # Two clients hold the lock at the end, and the fault came before.
    assert again["lines"][-1]["states"].count("#") == 2
    assert any(line["text"].startswith("FAULT") and fault in line["text"] for line in again["lines"])


def test_redlock_survives_what_it_promises_to_survive(pybench_inside: Pybench):
    found = searched(
        pybench_inside, "--strategy", "redlock", "--seeds", "60", "--faults", "delay,cut,pause,kill,restart", *SMALL
    )
    assert (found["exit_code"], found["broken"], found["outside"], found["worlds"]) == (0, [], [], 60)
    assert set(found["faults_struck"]) == {"delay", "cut", "pause", "kill", "restart"}
    assert found["events"] > 100_000


def test_a_broken_promise_stops_the_search_with_exit_20_and_is_repeated(
    pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch
):
    # `none` takes no lock. Were it to promise exclusion, each of its worlds would break the promise.
    from pybench.fuzz import setting
    from pybench.strategies import CATALOGUE

    monkeypatch.setitem(setting.CATALOGUE, "none", CATALOGUE["none"].__class__(**_promising(CATALOGUE["none"])))
    found = searched(pybench_inside, "--strategy", "none", "--seeds", "50", "--from", "7")
    assert (found["exit_code"], found["broken"], found["worlds"]) == (20, [7], 1)
    all_of_them = searched(pybench_inside, "--strategy", "none", "--seeds", "5", "--keep-going")
    assert (all_of_them["exit_code"], all_of_them["broken"]) == (20, [0, 1, 2, 3, 4])
    text = pybench_inside("fuzz", "--strategy", "none", "--seeds", "5")
    assert text.code == 20
    assert text.err == "exit code 20: a lock broke its promise\n"
    command = text.out.splitlines()[-1]
    again = pybench_inside(*shlex.split(command)[1:])
    assert again.code == 20
    assert "broken promise: client" in again.out


def _promising(entry) -> dict:
    from pybench.strategies import Exclusion

    return {name: getattr(entry, name) for name in entry.__dataclass_fields__} | {"exclusion": Exclusion.ALWAYS}


def test_the_counts_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch):
    def counts(cores: int) -> tuple:
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
        worlds = parse_worlds("mutex", clients=None, ttl="100ms", hold=None, length="300ms", faults=None)
        found = Search(0)
        search(worlds, found, 200, keep_going=False)
        return found.worlds, found.events, found.grants, found.outside, found.faults

    assert counts(1) == counts(3)


def test_a_replay_is_the_same_bytes_each_time_and_fits_a_terminal(pybench_inside: Pybench, tmp_path: Path):
    command = ("replay", "redlock", "5", "--clients", "3", "--ttl", "100ms", "--hold", "50ms", "--length", "60ms")
    answers = [pybench_inside(*command, "--html", f"{name}.html") for name in ("first", "second")]
    assert answers[0].out == answers[1].out
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()
    assert max(map(len, answers[0].out.splitlines())) <= 80
    page = (tmp_path / "first.html").read_text()
    assert "default-src &#39;none&#39;" in page
    assert "<script" not in page
    assert page.count('<rect class="fault"') == answers[0].out.count("FAULT")


def test_the_states_of_clients_follow_the_steps(pybench_inside: Pybench):
    found = played(pybench_inside, "pybench replay mutex 3 --clients 2 --faults none --ttl 100ms --hold 150ms")
    texts = [line["text"] for line in found["lines"]]
    assert any("its lease ends, and it works on" in text for text in texts)
    states = {line["states"] for line in found["lines"]}
    assert {"?.", "??", "!?"} <= states or {"?.", "??", "?!"} <= states
    assert "##" not in states
    assert found["sentence"] is None


def test_the_one_grant_that_went_wrong_is_the_last_line(pybench_inside: Pybench, tmp_path: Path):
    """All clients of `none` are granted in one moment. The first does nothing wrong, and a third is not needed."""
    answer = pybench_inside("replay", "none", "0", "--clients", "3", "--html", "world.html")
    assert "client 1 was granted key 0" in " ".join(answer.out.split())
    told = answer.out.split("\n\n")[1].splitlines()
    assert told[-1].endswith("##.  client 1 is granted the lock, while client 0 still holds it")
    page = (tmp_path / "world.html").read_text()
    assert page.count('class="is-wrong"') == page.count('<line class="wrong"') == 1
    assert page.count("</text>") == 1, "the drawing has no length, and one time"


def test_several_other_holders_are_told_in_one_clause(pybench_inside: Pybench):
    found = played(pybench_inside, "pybench replay semaphore 5 --only-faults 0 --requests 39 --earlier 263ms")
    *_, last = found["lines"]
    assert last["text"].count("while") == 1
    assert re.search(r"while clients \d, \d, \d and \d still hold it$", last["text"])


@pytest.mark.parametrize(("strategy", "has_lease"), [("mutex", True), ("pg-advisory", False), ("pg-row", False)])
def test_a_lock_of_a_session_is_not_said_to_have_a_lease(pybench_inside: Pybench, strategy: str, has_lease: bool):
    fault = "pause" if has_lease else "client-kill"
    text = " ".join(pybench_inside("fuzz", "-s", strategy, "--seeds", "40", "--faults", fault).out.split())
    assert "while another still worked past its" in text
    assert ("lease" in text) == has_lease
    assert ("session" in text) != has_lease


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fuzz", "--strategy", "mutexx"), "there is no strategy"),
        (("fuzz", "--strategy", "mutex", "--faults", "flood"), "there is no fault flood"),
        (("fuzz", "--strategy", "redlock", "--faults", "failover"), "have no fault failover"),
        (("fuzz", "--strategy", "mutex", "--seeds", "0"), "--seeds"),
        (("fuzz", "--strategy", "mutex", "--ttl", "1ms"), "with a lease of 1 ms"),
        (("fuzz", "--strategy", "mutex", "--hold", "0"), "--hold"),
        (("fuzz", "--strategy", "mutex", "--length", "1ns"), "--length: 1ns is too short"),
        (("fuzz", "--strategy", "mutex", "--length", "61m"), "--length: 61m is too long"),
        (("fuzz", "--strategy", "mutex", "--ttl", "24h"), "--ttl: 24h is too long"),
        (("fuzz", "--strategy", "mutex", "--hold", "601s"), "--hold: 601s is too long"),
        (("replay", "mutex", "-1"), ""),
        (("replay", "mutex", "one"), "is no seed"),
        (("replay", "mutex", "1", "--only-clients", "a"), "no list of numbers"),
        (("replay", "mutex", "1", "--clients", "3", "--only-clients", "0,3"), "this world has no client 3"),
        (("replay", "mutex", "1", "--faults", "none", "--only-faults", "0"), "this world has no fault 0"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_sentence(
    pybench_inside: Pybench, arguments: tuple[str, ...], message: str
):
    answer = pybench_inside(*arguments)
    assert answer.code == 40
    assert message in answer.err
    assert answer.out == ""


def test_an_interrupt_exits_130_with_what_was_found(pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch):
    added = Search.add

    def interrupts(found: Search, tally: FuzzTally) -> None:
        added(found, tally)
        if found.worlds >= 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(Search, "add", interrupts)
    answer = pybench_inside("fuzz", "--strategy", "mutex", "--seeds", "1000000", "--from", "5", *SMALL, "--json")
    assert answer.code == 130
    found = json.loads(answer.out)
    assert found["worlds"] >= 30
    assert f"--from {5 + found['worlds']}" in answer.err


def test_an_interrupt_while_the_shortest_world_is_sought_keeps_the_counts(
    pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch
):
    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pybench.fuzz.shortest._shortest", interrupts)
    answer = pybench_inside("fuzz", "-s", "mutex", "--faults", "failover", "--clients", "3", "--seeds", "60", "--json")
    found = json.loads(answer.out)
    assert (answer.code, found["exit_code"], found["worlds"]) == (130, 130, 60)
    assert found["outside"]
    assert found["shortest"] == []
    assert "the search was complete" in answer.err
