"""Remove the keys of a run, and no others: UNLINK over SCAN, never FLUSHDB."""

from __future__ import annotations

import re
import time

from pybench.errors import ServerError
from pybench.servers.server import Server

KEYS_A_STEP = 1000
CLEANUP_S = 60.0


def remove_keys(server: Server, prefix: str, *, seconds: float = CLEANUP_S) -> int:
    """Remove every key that begins with `prefix`; how many there were.

    Raises ServerError, also when there are too many keys on the server to look through in `seconds`.
    """
    assert prefix, "an empty prefix would remove what is not ours"
    pattern = glob_escaped(prefix.encode()) + b"*"
    deadline = time.monotonic() + seconds
    removed = 0
    cursor = 0
    keys: list[bytes] = []
    with server.client() as client:
        while True:
            # Removing the last batch and finding the next costs one round trip together.
            with client.pipeline(transaction=False) as pipe:
                if keys:
                    pipe.unlink(*keys)
                pipe.scan(cursor, match=pattern, count=KEYS_A_STEP)
                *unlinked, (cursor, keys) = pipe.execute()
            removed += int(sum(unlinked))
            if cursor == 0:
                break
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{server.endpoint}: {removed} keys of the run removed, and more are left after {seconds:g} s",
                    hint=f"redis-cli --scan --pattern '{pattern.decode(errors='replace')}' lists them",
                )
        if keys:
            removed += int(client.unlink(*keys))
    return removed


def glob_escaped(text: bytes) -> bytes:
    """`text` as a pattern that matches only itself."""
    return re.sub(rb"([\\*?\[\]^-])", rb"\\\1", text)
