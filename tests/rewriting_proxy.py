"""A proxy that changes commands on their way to a real server: clients then meet a server that excludes nobody.

Promises: a command is read whole, wherever its bytes are cut, and what no rule changes goes on byte for byte. Replies
are not touched, so a rule must put a command in place whose reply the client expects.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from pybench.servers.proxy import Proxy
from pybench.servers.redis.endpoint import Endpoint

Command = list[bytes]
Rule = Callable[[Command], Command]
"""What is sent on in place of a command: that itself where the rule changes nothing."""


def without_nx(command: Command) -> Command:
    """`SET key token NX PX ttl` takes the key from whoever has it."""
    if command[0].upper() != b"SET":
        return command
    return [*command[:3], *(word for word in command[3:] if word.upper() != b"NX")]


def without_owner(command: Command) -> Command:
    """The native compare-and-delete deletes whatever is there."""
    return [b"DEL", command[1]] if command[0].upper() in (b"DELIFEQ", b"DELEX") else command


def without_release(command: Command) -> Command:
    """The compare-and-delete, by script or native, is answered as done, and does nothing."""
    deletes = command[0].upper() in (b"DELIFEQ", b"DELEX", b"EVALSHA")
    return [b"EVAL", b"return 1", b"0"] if deletes else command


class RewritingProxy(Proxy):
    """All commands of all clients go through `rule` while `is_on` is set."""

    def __init__(self, target: Endpoint, rule: Rule) -> None:
        super().__init__(target)
        self._rule = rule
        self.is_on = threading.Event()
        self._rests: dict[socket.socket, bytes] = {}

    def of_client(self, client: socket.socket, data: bytes) -> None:
        commands, self._rests[client] = split(self._rests.get(client, b"") + data)
        super().of_client(client, b"".join(self._rewritten(command) for command in commands))

    def gone(self, client: socket.socket) -> None:
        self._rests.pop(client, None)

    def _rewritten(self, command: Command) -> bytes:
        return joined(self._rule(command) if self.is_on.is_set() and command else command)


def split(data: bytes) -> tuple[list[Command], bytes]:
    """The whole commands at the beginning of `data`, and the bytes behind them."""
    commands: list[Command] = []
    begin = 0
    while (read := _command(data, begin)) is not None:
        command, begin = read
        commands.append(command)
    return commands, data[begin:]


def joined(command: Command) -> bytes:
    """As RESP has it: an array of bulk strings."""
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)


def _command(data: bytes, at: int) -> tuple[Command, int] | None:
    """The command that begins at `at`, and where the next one does; None while it is not whole."""
    head = _number(data, at, b"*")
    if head is None:
        return None
    count, at = head
    words: Command = []
    for _ in range(count):
        head = _number(data, at, b"$")
        if head is None or len(data) < head[1] + head[0] + 2:
            return None
        length, at = head
        words.append(data[at : at + length])
        at += length + 2
    return words, at


def _number(data: bytes, at: int, kind: bytes) -> tuple[int, int] | None:
    """The number of the line at `at`, and where the next line begins; None while the line is not whole."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    assert data[at : at + 1] == kind, f"a client sent no command: {data[at : at + 80]!r}"
    return int(data[at + 1 : end]), end + 2
