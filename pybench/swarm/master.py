"""A native swarm over many processes: the master assigns a trial to each worker, and gathers what they count.

Promises: a worker that dies, joins late or leaves ends no test. The end of a test waits for each worker that is still
there, and for no other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import gevent
from locust.runners import STATE_INIT, STATE_MISSING, STATE_RUNNING, STATE_SPAWNING, MasterRunner

from pybench.errors import ServerError
from pybench.swarm import messages
from pybench.swarm.site import Origin
from pybench.swarm.starting import Starting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locust.env import Environment
    from locust.rpc import Message

LOOK_S = 1.0
"""How often the master looks which workers are still there, and asks for their clocks."""
END_WITHIN_S = 30.0
"""How long a worker may take to end its trial."""
ALIVE = (STATE_INIT, STATE_RUNNING, STATE_SPAWNING)


class Master(Starting):
    """The listeners of Locust's events in a master."""

    def __init__(self, environment: Environment, command: Sequence[str]) -> None:
        assert isinstance(environment.runner, MasterRunner), "a master has a runner of its own"
        self.runner = environment.runner
        self._origins: dict[str, Origin] = {}
        # In greenlets of their own: some wait for servers, and the runner's must not.
        for name, listener in (
            (messages.HELLO, self._on_hello),
            (messages.END, self._on_end),
            (messages.PONG, self._on_pong),
        ):
            self.runner.register_message(name, listener, concurrent=True)
        environment.events.worker_report.add_listener(self._on_report)
        super().__init__(environment, command, binds=False)
        gevent.spawn(self._look)

    def processes(self) -> int:
        """The workers that are there; before they are, those that are expected."""
        return max(self.runner.worker_count, int(self.options.get("expect_workers") or 1))

    def starts(self, **_: object) -> None:
        """A test starts: each worker that is there gets its trial before its first users."""
        self.begin()
        for id_, node in list(self.runner.clients.items()):
            if node.state in ALIVE:
                self._assign(id_)

    def stops(self, **_: object) -> None:
        """The test has stopped, or the process ends: end the trials, and judge them, once."""
        with self.finishing:
            test = self.conductor.test
            if test is None or test.outcome is not None:
                return
            test.ends = True
            for site in test.running:
                self.runner.send_message(messages.STOP, {"number": test.number}, site.id)
            until = time.monotonic() + END_WITHIN_S
            while (left := test.running) and time.monotonic() < until:
                for site in left:
                    if site.id not in self.runner.clients or self.runner.clients[site.id].state == STATE_MISSING:
                        gevent.sleep(0.2)  # Its last message may be on its way to us.
                        self.conductor.lost(site.id)
                gevent.sleep(0.05)
            self.finish()

    def _assign(self, id_: str) -> None:
        """Give the worker its trial, if it has said where it runs, and has none."""
        origin = self._origins.get(id_)
        if origin is None:
            self.runner.send_message(messages.HELLO, None, id_)
            return
        try:
            assignment = self.conductor.admit(id_, origin)
        except ServerError as error:
            self.given_up(error)
            return
        if assignment is not None:
            self.runner.send_message(messages.ASSIGN, assignment.message(), id_)
            self._ping(id_)

    def _on_hello(self, msg: Message, **_: object) -> None:
        self._origins[msg.node_id] = Origin.read(msg.data)
        self._assign(msg.node_id)

    def _on_report(self, client_id: str, data: dict[str, Any], **_: object) -> None:
        report = data.get(messages.REPORT)
        if report is not None:
            self.conductor.report(client_id, report)

    def _on_end(self, msg: Message, **_: object) -> None:
        self.conductor.ended(msg.node_id, msg.data)
        test = self.conductor.test
        if test is not None and not test.ends and all(site.error is not None for site in test.sites.values()):
            self.stop_soon()

    def _on_pong(self, msg: Message, **_: object) -> None:
        received_ns = time.time_ns()
        test = self.conductor.test
        site = None if test is None else test.sites.get(msg.node_id)
        if site is not None:
            site.clock.learn(msg.data["sent_ns"], msg.data["theirs_ns"], received_ns)

    def _ping(self, id_: str) -> None:
        self.runner.send_message(messages.PING, {"sent_ns": time.time_ns()}, id_)

    def _look(self) -> None:
        """Ask workers for their clocks, and notice those that went silent."""
        while True:
            gevent.sleep(LOOK_S)
            test = self.conductor.test
            if test is None or test.ends:
                continue
            for id_, node in list(self.runner.clients.items()):
                if id_ not in test.sites and node.state in ALIVE:
                    self._assign(id_)
            for site in test.running:
                node = self.runner.clients.get(site.id)
                if node is None or node.state == STATE_MISSING:
                    self.conductor.lost(site.id)
                else:
                    self._ping(site.id)
