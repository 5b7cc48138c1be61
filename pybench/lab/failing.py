"""What an experiment raises when something fails, in words for the user.

Promises: a server that ended by itself is named before anything that follows from its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pybench.errors import OutOfTime, ServerError
from pybench.lock_client import LockError

if TYPE_CHECKING:
    from pybench.servers import ServerPool


@contextmanager
def explained(name: str, pool: ServerPool, require_time: Callable[[], None]) -> Iterator[None]:
    """Raise ServerError or OutOfTime for what goes wrong in the block, which is the experiment `name` on `pool`.

    `require_time` raises OutOfTime once the case has had its time.
    """
    try:
        yield
    except LockError as error:
        pool.check()
        raise ServerError(f"{name}: {error.message}", hint=error.hint) from error
    except (ServerError, OutOfTime):
        # What the server itself said at its end is the better message.
        pool.check()
        # A wait for a reply ends with the case, and then the server is not to blame.
        require_time()
        raise
    except _lost_server() as error:
        pool.check()
        raise ServerError(f"{name}: {error}", hint="does the server still run? its log may say why") from error


def _lost_server() -> tuple[type[Exception], ...]:
    """What connections of experiments raise when their server is lost; loaded only when something was raised."""
    from psycopg import OperationalError
    from redis import RedisError

    return OSError, OperationalError, RedisError
