"""What a Redis server does while a trial runs: its CPU time, commands, slow commands and blocked clients.

Promises: those of `sampling`. A sample is four short commands on a connection of its own, which are not counted among
the server's commands. What the user may not read is missing. No setting is changed.
"""

from __future__ import annotations

import contextlib
import time
from contextlib import ExitStack

from pybench.errors import ServerError
from pybench.servers import sampling
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.conversation import Conversation, Refusal, fields
from pybench.servers.redis.server import Server
from pybench.servers.sampling import Sample

_INFO = [("INFO", "cpu"), ("INFO", "stats"), ("INFO", "clients")]


class RedisSampler(sampling.Sampler):
    """Samples of `server`."""

    expected = (ServerError, Refusal)

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._stack = ExitStack()
        self._conversation: Conversation | None = None
        self._asked = 0
        self._may_read_slow_log = True

    def open(self) -> None:
        """Open the connection. Raises ServerError."""
        self._conversation = self._stack.enter_context(self._server.conversation())

    def sample(self) -> Sample:
        """Take one. Raises ServerError, and Refusal for a user who may not call INFO."""
        conversation = self._conversation
        assert conversation is not None, "it is opened first"
        conversation.allow(ANSWER_S)
        told = conversation.ask_all(_INFO)
        at_ns = time.monotonic_ns()
        info = {name: value for section in told for name, value in fields(section).items()}
        # The reply to INFO counts the INFO before it, but not itself.
        own = self._asked + 1
        self._asked += len(_INFO)
        counters: dict[str, float] = {}
        levels: dict[str, float] = {}
        with contextlib.suppress(KeyError, ValueError):
            counters["cpu_us"] = (float(info["used_cpu_user"]) + float(info["used_cpu_sys"])) * 1e6
        with contextlib.suppress(KeyError, ValueError):
            counters["commands"] = int(info["total_commands_processed"]) - own
        with contextlib.suppress(KeyError, ValueError):
            levels["waiting"] = int(info["blocked_clients"])
        slow = self._slow_commands(conversation)
        if slow is not None:
            counters["slow"] = slow
        return Sample(at_ns, counters, levels)

    def _slow_commands(self, conversation: Conversation) -> int | None:
        """How many commands have ever come into the slow log: its entries are numbered, and the oldest are dropped."""
        if not self._may_read_slow_log:
            return None
        self._asked += 1
        try:
            entries = conversation.ask("SLOWLOG", "GET", "1")
        except Refusal:
            self._may_read_slow_log = False
            return None
        if not isinstance(entries, list):
            return None
        newest = entries[0] if entries else None
        number = newest[0] if isinstance(newest, list) and newest else -1
        return number + 1 if isinstance(number, int) else None

    def cut(self) -> None:
        """Shut the socket down."""
        if self._conversation is not None:
            self._conversation.shut_down()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(ServerError):
            self._stack.close()
