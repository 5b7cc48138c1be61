"""`leader`: the leader of several processes is killed, stopped, and cut off; what its late writes do."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pybench.errors import ServerError
from pybench.lab.cable import Cable
from pybench.lab.clients import client_row, killed_row
from pybench.lab.contest import attempt, not_of_redis_alone, servers_of
from pybench.lab.experiment import About, Experiment, Lease, Parameter
from pybench.lab.fence import REFUSED, STALE, checked_write
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.strategies import Count, Promise

if TYPE_CHECKING:
    from pybench.lab.acting import Line
    from pybench.lab.actors import Actor
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

KEPT_S = "86400"


def candidate(line: Line, client: dict[str, Any], name: str, ttl: str, resource: dict[str, Any]) -> None:
    """The role of one process: it waits until it is the leader, and writes when told."""
    from pydantic import SecretStr

    from pybench.lab.stage import ClientSpec
    from pybench.servers.redis.conversation import Conversation
    from pybench.servers.redis.endpoint import Endpoint

    with (
        ClientSpec(**client).open() as locks,
        Conversation(Endpoint.parse(SecretStr(resource["url"])), seconds=resource["seconds"]) as log,
    ):
        log.log_in()
        line.say({"ready": True})
        with attempt(locks, name, ttl=ttl, wait=f"{resource['seconds']:.3f}s") as mine:
            held = mine.held
            if held is None:
                return
            line.say({"fence": held.fence})
            fence = held.fence if resource["checked"] else None
            while True:
                term = line.hear()["term"]
                words = (
                    ("RPUSH", resource["key"], str(term))
                    if fence is None
                    else checked_write(resource["key"], fence, "RPUSH", term)
                )
                line.say({"accepted": log.ask(*words) != STALE})


@dataclass(slots=True)
class _Election:
    """The candidates of one case, and what was seen of them."""

    stage: Stage
    actors: list[Actor]
    cables: Sequence[Sequence[Cable]]
    """Of each candidate, to the servers of the lock."""
    leaders: list[int] = field(default_factory=list)
    """Who led, in order, by the place among `actors`."""
    took_over_ms: list[float] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)
    """Whether each late write was accepted."""
    rows: list[ClientRow] = field(default_factory=list)
    _elected: list[int] = field(default_factory=list)
    """Who has said that it leads, and has not been seen as the leader yet."""

    @property
    def leader(self) -> Actor:
        """The latest leader."""
        return self.actors[self.leaders[-1]]

    def await_next(self, since: float) -> None:
        """Wait for the next leader, and let it write. Raises ServerError, also where its lease ended before."""
        self.stage.wait_until(self._somebody_leads, what="another candidate became the leader", every_s=0.002)
        self.took_over_ms.append(round((time.monotonic() - since) * 1e3, 3))
        self.leaders.append(self._elected.pop(0))
        if not self.write(self.leader, len(self.leaders)):
            raise ServerError("a leader lost its lease before it could write", hint="raise --ttl: the machine is busy")

    def _somebody_leads(self) -> bool:
        for place, actor in enumerate(self.actors):
            if place not in self.leaders and (told := actor.heard()) is not None and "fence" in told:
                self._elected.append(place)
        return bool(self._elected)

    def write(self, actor: Actor, term: int) -> bool:
        """Let a process write as the leader of this term; whether the resource accepted it."""
        actor.tell({"term": term})
        return bool(actor.hear()["accepted"])


def _run(stage: Stage) -> Iterator[Case]:
    (server,) = stage.redis()
    for number, lock in enumerate(stage.locks):
        stage.note(lock.text)
        yield _case(stage, lock, f"{stage.prefix}{number}:", stage.url(server))


def _case(stage: Stage, lock: ChosenLock, own: str, url: str) -> Case:
    is_checked = _has_fence(lock)
    key = f"{own}terms"
    servers = stage.redis(servers_of(lock))
    (resource,) = stage.redis()
    order = {"url": url, "key": key, "checked": is_checked, "seconds": stage.left_s}
    with ExitStack() as stack:
        cables = [
            [stack.enter_context(Cable(server.endpoint)) for server in servers]
            for _ in range(stage.count("candidates"))
        ]
        spec = stage.client_spec(lock)
        actors = [
            stage.actor(
                candidate,
                {
                    "client": asdict(
                        replace(spec, redis=[cable.endpoint.url.get_secret_value() for cable in own_cables])
                    ),
                    "name": f"{own}lock",
                    "ttl": stage.length("ttl"),
                    "resource": order,
                },
            )
            for own_cables in cables
        ]
        election = _Election(stage, actors, cables)
        for actor in actors:
            actor.hear()
        _harm_leaders(election)
        for actor in actors:
            actor.end()
    with resource.conversation() as conversation:
        terms = conversation.ask("LRANGE", key, "0", "-1")
        conversation.ask("DEL", key, f"{key}:fence")
    seen = [int(term) for term in terms if isinstance(term, bytes)] if isinstance(terms, list) else []
    is_wrong = seen != sorted(seen)
    in_order = " ".join(map(str, seen))
    killed, stopped, cut = election.took_over_ms[1:]
    return Case(
        label=f"{lock.text} checked" if is_checked else lock.text,
        strategy=lock.text,
        expected=Expected.RIGHT if is_checked else Expected.WRONG,
        went_wrong=is_wrong,
        sentence=f"late writes of old leaders were accepted after newer ones: by terms {in_order}"
        if is_wrong
        else f"no write of an old leader was accepted: by terms {in_order}",
        figures=(
            Figure("candidates", "candidates", len(actors)),
            Figure("after_kill_ms", "next leader after a kill", killed),
            Figure("after_stop_ms", "next leader after a stop", stopped),
            Figure("after_cut_ms", "next leader after a cut", cut),
            Figure("late_accepted", "late writes accepted", sum(election.late)),
            Figure("late_refused", "late writes refused", len(election.late) - sum(election.late)),
            Figure("terms", "writes by term", in_order),
        ),
        clients=tuple(election.rows),
    )


def _harm_leaders(election: _Election) -> None:
    """Three leaders are harmed, one after another, each after it has written as the leader."""
    began = time.monotonic()
    election.await_next(began)
    killed = election.leader
    since = time.monotonic()
    killed.signal(signal.SIGKILL)
    election.rows.append(killed_row(killed.pid, began, locked=True, error="killed while it led"))
    election.await_next(since)

    stopped = election.leader
    since = time.monotonic()
    stopped.signal(signal.SIGSTOP)
    election.await_next(since)
    stopped.signal(signal.SIGCONT)
    _write_late(election, stopped, 2, since)

    cut = election.leader
    since = time.monotonic()
    for cable in election.cables[election.leaders[-1]]:
        cable.is_cut = True
    election.await_next(since)
    _write_late(election, cut, 3, since)


def _write_late(election: _Election, actor: Actor, term: int, since: float) -> None:
    is_accepted = election.write(actor, term)
    election.late.append(is_accepted)
    row = client_row(since, locked=True, error=None if is_accepted else REFUSED)
    election.rows.append(replace(row, process_id=actor.pid))


def _has_fence(lock: ChosenLock) -> bool:
    return lock.entry is not None and Promise.FENCE in lock.entry.promises


def _unfit(lock: ChosenLock) -> str:
    entry = lock.entry
    if entry is not None and entry.replicas(lock.arguments):
        return "it needs a primary with replicas, and here each candidate has a link of its own to each server"
    return not_of_redis_alone(lock)


LEADER = Experiment(
    name="leader",
    summary="A leader is killed, stopped and cut off",
    steps=(
        "{candidates} processes ask for one lock with a ttl of {ttl}; who holds it leads, and writes its term.",
        "The first leader is killed, the second is stopped (SIGSTOP), the third is cut off from the lock's servers.",
        "The latter two go on writing as leaders when the next one has written.",
        About("checked", "Checked: with their fence."),
    ),
    learn="An election gives no certainty that the old leader is silent: only a fence makes its late writes harmless.",
    run=_run,
    controls=("mutex",),
    strategies=("fenced",),
    unfit=_unfit,
    parameters=(
        Parameter("candidates", Count(4, 64), "5", "Processes that want to lead."),
        Parameter("ttl", Lease(), "1s", "The lease of a leader."),
    ),
)
