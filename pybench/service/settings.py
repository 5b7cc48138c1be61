"""The settings of a service, as one value that its processes share.

Promises: `shown` has no password. `to_json` has the passwords: it goes through a pipe to a worker, and nowhere else.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

StockKind = Literal["redis", "postgres"]
LogLevel = Literal["debug", "info", "warning", "error"]

MOST_WORKERS = 64
MOST_WAITING = 2_000
"""Requests at once in one process, by default. A lock client has room for 16,384."""


@dataclass(frozen=True, slots=True)
class Place:
    """One server: the URL that its clients take, and what is shown of it."""

    url: str
    """With its password."""
    address: str | None
    """Without credentials; None for a server that pybench started, whose address tells nobody anything."""
    replicas: int = 0
    """Replicas that followed it when the service started."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What every process of a service has to know."""

    redis: Place | None
    redlock: tuple[Place, ...]
    postgres: Place | None
    prefix: str
    """Of every key on Redis."""
    schema: str
    """On Postgres, for the stock if it lives there."""
    lock_schema: str
    """On Postgres, for locks that are rows of a table; empty: there is none."""
    stock: StockKind = "redis"
    row_lock: bool = False
    constraint: bool = False
    work_ns: int = 5_000_000
    """How long a request works while it holds its lock, unless it says."""
    breaker: int = 0
    """Failures in a row that open the breaker; 0: there is none."""
    connections: int = 16
    """How many locks at once a strategy has that needs a connection for each, in each process."""
    most_waiting: int = MOST_WAITING
    """Requests at once in each process."""
    workers: int = 1
    log_level: LogLevel = "info"

    @property
    def table(self) -> str | None:
        """The table of locks that are rows, as statements say it."""
        return f'"{self.lock_schema}"."locks"' if self.lock_schema else None

    def to_json(self) -> str:
        """For a worker, with passwords."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        for name in ("redis", "postgres"):
            read[name] = None if read[name] is None else Place(**read[name])
        read["redlock"] = tuple(Place(**place) for place in read["redlock"])
        return cls(**read)
