"""The guarded resources of a trial on a Redis server: a number for each key, below the prefix of the trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.cleanup import CLEANUP_S, KEYS_A_STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.servers.redis.server import Server


def prepare_guarded(server: Server, prefix: str, keys: int, initial: int) -> None:
    """Set the resource of each of the `keys` keys to `initial`. Raises ServerError."""
    value = str(initial)
    with server.conversation(seconds=CLEANUP_S) as conversation:
        for names in _batches(prefix, keys):
            conversation.allow(ANSWER_S)
            conversation.ask("MSET", *(word for name in names for word in (name, value)))


def read_guarded(server: Server, prefix: str, keys: int) -> NDArray[np.int64] | None:
    """The value of each resource; None where the server has lost any of them. Raises ServerError."""
    values: list[int] = []
    with server.conversation(seconds=CLEANUP_S) as conversation:
        for names in _batches(prefix, keys):
            conversation.allow(ANSWER_S)
            found = conversation.ask("MGET", *names)
            known = [int(one) for one in found if isinstance(one, bytes)] if isinstance(found, list) else []
            if len(known) < len(names):
                return None
            values += known
    return np.array(values, dtype=np.int64)


def _batches(prefix: str, keys: int) -> Iterator[list[str]]:
    """The names of the resources, a batch for each command."""
    digits = len(str(keys - 1))
    for first in range(0, keys, KEYS_A_STEP):
        numbers = range(first, min(first + KEYS_A_STEP, keys))
        yield [f"{prefix}{{{number:0{digits}d}}}:guarded" for number in numbers]
