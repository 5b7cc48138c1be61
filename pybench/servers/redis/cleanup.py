"""Remove the keys of a run, and no others: UNLINK over SCAN, never FLUSHDB."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from pybench.errors import ServerError
from pybench.numbers import format_seconds
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.conversation import Reply
from pybench.servers.redis.server import Server

KEYS_A_STEP = 1000
CLEANUP_S = 60.0


class Removed(NamedTuple):
    """How many keys were removed."""

    keys: int
    locks: int
    """Those of them that are locks themselves. The names of their companion keys are longer."""


def remove_keys(server: Server, prefix: str, *, seconds: float = CLEANUP_S) -> int:
    """Remove every key that begins with `prefix`; how many there were. Raises ServerError, as `remove_locks`."""
    return remove_locks(server, prefix, seconds=seconds).keys


def remove_locks(server: Server, prefix: str, *, seconds: float = CLEANUP_S) -> Removed:
    """Remove every key that begins with `prefix`; how many there were, and how many of them were locks.

    Raises ServerError, also when there are too many keys on the server to look through in `seconds`.
    """
    assert prefix, "an empty prefix would remove what is not ours"
    pattern = glob_escaped(prefix.encode()) + b"*"
    deadline = time.monotonic() + seconds
    patience = min(seconds, ANSWER_S) or ANSWER_S
    lock = re.compile(re.escape(prefix.encode()) + rb"\{\d+\}")
    removed = locks = 0
    cursor = b"0"
    keys: list[bytes] = []
    with server.conversation(seconds=patience) as conversation:
        while True:
            conversation.allow(patience)
            # One round trip removes the last batch and finds the next.
            unlink = [(b"UNLINK", *keys)] if keys else []
            scan = (b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"%d" % KEYS_A_STEP)
            *unlinked, found = conversation.ask_all([*unlink, scan])
            removed += sum(count for count in unlinked if isinstance(count, int))
            cursor, keys = _step(server, found)
            locks += sum(lock.fullmatch(key) is not None for key in keys)
            if cursor == b"0" or time.monotonic() > deadline:
                break
        if cursor == b"0" and keys:
            count = conversation.ask(b"UNLINK", *keys)
            removed += count if isinstance(count, int) else 0
    if cursor != b"0":
        raise ServerError(
            f"{server.endpoint}: {removed} keys of the run removed, and more are left after {format_seconds(seconds)}",
            hint=f"redis-cli --scan --pattern '{pattern.decode(errors='replace')}' lists them",
        )
    return Removed(removed, locks)


def _step(server: Server, found: Reply) -> tuple[bytes, list[bytes]]:
    """The next cursor and the keys of one reply to SCAN."""
    match found:
        case [bytes(cursor), [*keys]]:
            return cursor, [key for key in keys if isinstance(key, bytes)]
    raise ServerError(
        f"{server.endpoint} does not answer SCAN as Redis does",
        hint="is it Redis or Valkey itself? its log may say more",
    )


def glob_escaped(text: bytes) -> bytes:
    """`text` as a pattern that matches only itself."""
    return re.sub(rb"([\\*?\[\]^-])", rb"\\\1", text)
