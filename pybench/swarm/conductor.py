"""The tests of a native swarm: who drives which trial, what was reported, and how each test ends.

One conductor lives in Locust's master, or in the standalone process. In each test it assigns a trial with keys of its
own to each process that makes load, a *site*; or, with shared keys, one set of keys to all of them. It alone talks to
the servers: it makes and removes tables and keys, and reads final values.

Promises: whatever happens to a site, what it had reported is kept. Errors of one site are told, and end no other.
Does not do: sending messages; see `messages` and `wiring`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pybench import _core
from pybench.analysis import error_replies
from pybench.errors import PybenchError, RecordError, ServerError
from pybench.masking import without
from pybench.planning.trial_spec import trial_seed, trial_spec
from pybench.records.parts import TrialPart
from pybench.running.aftermath import not_connected
from pybench.swarm.driver import Assignment
from pybench.swarm.preparation import Notes, Preparation, Prepared, room_sentence
from pybench.swarm.recording import Outcome, record
from pybench.swarm.site import Origin, Site, State
from pybench.swarm.tally import Tally, summed

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell
    from pybench.records import RunFolder
    from pybench.running.observer import Observer
    from pybench.running.trial_servers import Side
    from pybench.swarm.settings import Settings

logger = logging.getLogger(__name__)

PARTING_S = 1.0
"""The time limit for removing keys after a failure."""
FAILED_RECORD = RecordError("the record of the test could not be written", hint="the log has the reason")

Apart = Callable[[Callable[[], Any]], Any]


@dataclass(slots=True)
class Test:
    """One test, from its start until its run folder is written."""

    number: int
    prepared: Prepared
    observer: Observer
    folder: RunFolder
    watch: Notes
    started_ns: int
    """When it started, by our wall clock."""
    sites: dict[str, Site] = field(default_factory=dict)
    """By Locust's id of the worker."""
    admitted: list[str] = field(default_factory=list)
    """The ids of all processes that got a trial, or are about to, in their order."""
    shared: tuple[list[Side], str] | None = None
    """With shared keys the servers of all sites, and the prefix of their keys; None before the first site."""
    ends: bool = False
    """Whether it has been stopped: no site joins any more."""
    outcome: Outcome | None = None

    @property
    def running(self) -> list[Site]:
        """The sites that are not over."""
        return [site for site in self.sites.values() if not site.is_over]

    def tally(self) -> Tally:
        """What all sites have reported."""
        return summed(site.tally for site in self.sites.values())


class Conductor:
    """The tests of one process, one after another."""

    def __init__(self, preparation: Preparation, origin: Origin, apart: Apart) -> None:
        self.preparation = preparation
        self.origin = origin
        self.test: Test | None = None
        self.problem: PybenchError | None = None
        """Why the latest test could not start, or what ended it."""
        self._apart = apart
        self._tests = 0
        self._ready: tuple[Prepared, Observer, RunFolder, Notes] | None = None

    def make_ready(self, settings: Settings, *, users: int, processes: int) -> None:
        """Do all that `begin` would do before its test, so that the test begins at once. Raises PybenchError."""
        watch = Notes()
        prepared = self.preparation.prepare(settings, users=users, processes=processes)
        self._ready = (prepared, *self.preparation.check(prepared, watch), watch)

    def begin(self, settings: Settings, *, users: int, processes: int) -> Test:
        """Check the servers, the checker and the lock, and make the run folder. Raises PybenchError."""
        self.problem = None
        self.test = None
        try:
            if self._ready is None or self._ready[0].settings != settings:
                self.make_ready(settings, users=users, processes=processes)
        except PybenchError as error:
            self.problem = error
            raise
        assert self._ready is not None, "the test was made ready"
        (prepared, observer, folder, watch), self._ready = self._ready, None
        self._tests += 1
        self.test = Test(self._tests, prepared, observer, folder, watch, time.time_ns())
        return self.test

    def admit(self, id_: str, origin: Origin) -> Assignment | None:
        """The trial of a process that is there at the start, or joins later; None where it has one, or none is due.

        Raises ServerError where its tables cannot be made.
        """
        test = self.test
        if test is None or test.ends or id_ in test.admitted:
            return None
        # Noted first: what follows waits for servers, and the same process may be seen again meanwhile.
        test.admitted.append(id_)
        number = len(test.admitted)
        cell = test.prepared.cell
        sides, prefix = self._keys_for(test, cell)
        spec = trial_spec(
            cell,
            [side.spec() for side in sides],
            cores=test.prepared.placement.drivers,
            key_prefix=prefix,
            client_name=f"pybench-{test.observer.run_id}",
            seed=trial_seed(test.prepared.matrix.seed, number),
            warmup_ns=0,
            duration_ns=None,
            least_belief_ns=test.observer.least_belief_ns(cell),
        )
        assignment = Assignment(test.number, plain(spec), test.prepared.settings.clients_per_user)
        test.sites[id_] = Site(f"worker {number}", id_, origin, assignment, cell, sides, time.time_ns())
        return assignment

    def _keys_for(self, test: Test, cell: Cell) -> tuple[list[Side], str]:
        """The servers of a new site, with its table there, and the prefix of its keys."""
        if test.shared is not None:
            return test.shared
        servers = self.preparation.servers_of(test.prepared, test.observer, cell)
        own = test.observer.new_sides(cell, servers), test.observer.key_prefix
        if test.prepared.settings.shared_keys:
            test.shared = own
        for side in own[0]:
            side.prepare()
        for side in own[0]:
            side.begin()
        return own

    def report(self, id_: str, message: Mapping[str, Any]) -> None:
        """A report of a site; one of an earlier test, or of an unknown site, is ignored."""
        site = self._site(id_, message)
        if site is None or site.part is not None:
            return
        site.take(message, time.time_ns())
        if site.state is State.LOST:
            site.state, site.left_ns = State.RUNNING, None
        if site.wanted > site.clients and self.test is not None:
            self._note(room_sentence(self.test.prepared, site.clients, site.name))
        if site.missed_plants:
            missed = ", ".join(site.missed_plants)
            self._note(f"the checker of {site.name} missed planted faults ({missed}): its counts prove nothing (VOID)")

    def ended(self, id_: str, message: Mapping[str, Any]) -> None:
        """The end of the trial of a site, with all that it counted, or with the error for which it has no counts."""
        site = self._site(id_, message)
        if site is None or site.part is not None:
            return
        if message["part"] is not None:
            site.part = TrialPart.decode(message["part"])
            error_replies.mask(site.part.errors, self._secrets())
            site.tally.replace_by(site.part)
            site.most_clients = max(site.most_clients, len(site.part.clients.get("grants", ())))
            site.state = State.RUNNING  # It may have been called lost too early.
            site.end(State.LEFT if message["leaves"] else State.FINISHED, time.time_ns())
            if message["leaves"] and self.test is not None and not self.test.ends:
                self._note(f"{site.name} left the test; what it counted is kept")
        else:
            self.failed(site, message)

    def failed(self, site: Site, message: Mapping[str, Any]) -> None:
        """The trial of `site` could not run, or was broken off."""
        error = self._error_of(site, message)
        site.error = error.message
        site.end(State.FAILED, time.time_ns())
        self.problem = self.problem or error
        self._note(f"{site.name} on {site.origin.host}: {error.message}" + (f" ({error.hint})" if error.hint else ""))

    def lost(self, id_: str) -> None:
        """The site has gone silent."""
        site = None if self.test is None else self.test.sites.get(id_)
        if site is not None and not site.is_over:
            site.end(State.LOST, time.time_ns())
            self._note(
                f"{site.name} on {site.origin.host} was lost: what it had reported is kept, and what it did after that "
                "is unknown"
            )

    def finish(self) -> Outcome | None:
        """Judge the test and write its run folder, once all sites are over; None where no test runs.

        Keys and tables are removed whatever happens.
        """
        test = self.test
        if test is None or test.outcome is not None:
            return None if test is None else test.outcome
        test.ends = True
        for id_ in test.sites:
            self.lost(id_)
        try:
            test.outcome = record(test, self.problem, self._apart)
        except PybenchError as error:
            self.problem = self.problem or error
            test.outcome = Outcome.failed(error, test.folder.path)
        finally:
            # Once only, even if what went wrong here is our own fault.
            if test.outcome is None:
                test.outcome = Outcome.failed(FAILED_RECORD, test.folder.path)
            self._clear(test)
            test.folder.release()
        return test.outcome

    def close(self) -> None:
        """End the servers that pybench started."""
        self.preparation.close()

    def _clear(self, test: Test) -> None:
        for site in test.sites.values():
            for side in site.sides:
                with suppress(ServerError):
                    side.clear(seconds=PARTING_S)

    def _site(self, id_: str, message: Mapping[str, Any]) -> Site | None:
        if self.test is None or message["number"] != self.test.number:
            return None
        return self.test.sites.get(id_)

    def _note(self, text: str) -> None:
        if self.test is not None and text not in self.test.watch.texts:
            self.test.watch.note(text)

    def _secrets(self) -> frozenset[str]:
        return frozenset() if self.test is None else self.test.prepared.matrix.secrets

    def _error_of(self, site: Site, message: Mapping[str, Any]) -> ServerError:
        secrets = self._secrets()
        text = without(str(message["error"]), secrets)
        if message["refusal"] is not None:
            error = _core.ConnectError(text)
            error.refusal = tuple(message["refusal"])
            return not_connected(error, site.sides, site.cell.strategy, secrets=secrets)
        given = self.test is not None and all(not server.started_by_us for server in self.test.prepared.servers)
        if given or site.origin.boot == self.origin.boot:
            return ServerError(
                f"the connections of its trial failed: {text}", hint="check that the server runs and is reachable"
            )
        return ServerError(
            "it cannot reach the server, which pybench started on the master's machine for this machine only",
            hint="start the master with --redis URL or --postgres URL, an address that all workers can reach",
        )


def plain(spec: Any) -> dict[str, Any]:  # noqa: ANN401 - a specification for the core
    """`spec` with lists in place of tuples, as messages carry it."""
    return {name: _plain(value) for name, value in spec.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a specification holds
    match value:
        case dict():
            return plain(value)
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value
