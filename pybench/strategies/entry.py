"""What the catalogue says of one strategy: its texts, its arguments, and the facts that plans and verdicts are made by.

Promises: plain data, and functions of an entry and its arguments alone. Does not know any strategy by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto

from pybench.notation import format_number, parse_choice, parse_count, parse_number

Scalar = int | float | str | bool
Arguments = tuple[tuple[str, Scalar], ...]
"""Arguments off their defaults, sorted by name."""


class Exclusion(StrEnum):
    """How far a strategy promises that no more hold a lock at a time than may; records keep the text."""

    NOTHING = "nothing"
    WHILE_NOBODY_OUTLIVES = "while-nobody-outlives"
    """While no client crashes between its commands and none works past its lease."""
    ALWAYS = "always"
    """Of belief always, and of work as long as it ends inside the lease."""


class Promise(StrEnum):
    """What a strategy promises beside exclusion; records keep the text."""

    FENCE = "fence"
    """Each grant of a key comes with a higher number than all before."""
    FIFO = "fifo"
    """Whoever was acknowledged first in the queue is granted first."""
    WAKE_UP = "wake-up"
    """A release wakes a client that waits, by a message."""


class Judge(StrEnum):
    """What a verdict on a strategy goes by; records keep the text."""

    BELIEF = "belief"
    """Who believed to hold the lock, and when."""
    EFFECTS = "effects"
    """What the work wrote: nobody is kept out, and a write that was in conflict is refused and done again."""
    GUARD = "guard"
    """What the resource accepted: two may be at work, and the write of the one that came first is refused."""


class Lease(Enum):
    """What becomes of the matrix's `ttl`."""

    NONE = auto()
    MILLISECONDS = auto()
    WHOLE_SECONDS = auto()
    """Rounded up: the command that sets it takes seconds."""


class Family(StrEnum):
    """Where the lock lives; `pybench strategies` lists by it."""

    CONTROL = "the control"
    ONE_SERVER = "one Redis or Valkey server"
    SEVERAL_SERVERS = "several Redis or Valkey servers"
    DATABASE = "one Postgres server"
    BOTH = "a Redis or Valkey server and a Postgres server"


class ServerKind(StrEnum):
    """What a server speaks."""

    REDIS = "redis"
    POSTGRES = "postgres"

    @property
    def label(self) -> str:
        """As people write it."""
        return self.value.capitalize()

    @property
    def variable(self) -> str:
        """What in the environment names a server of this kind where nothing else does."""
        return f"PYBENCH_{self.name}_URL"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_choice(value, self.words)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return " or ".join(self.words)


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number in a range."""

    lowest: int
    highest: int

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_count(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return f"{self.lowest} to {self.highest}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range."""

    lowest: float
    highest: float

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_number(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return f"{format_number(self.lowest)} to {format_number(self.highest)}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a strategy takes."""

    name: str
    allowed: Choice | Count | Number
    default: Scalar
    meaning: str
    of_session: bool = False
    """Whether it is a setting of the database's sessions, of which the lock itself knows nothing."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of the catalogue; its texts are whole sentences for people.

    Where its parameters are called `nodes`, `replicas`, `permits`, `drift_factor`, `renew`, `max_hold_ms`, `session`,
    `wait`, `lock_timeout_ms` or `synchronous_commit`, they mean what is
    made of them here and in `planning.trial_spec`.
    """

    name: str
    summary: str
    commands: tuple[str, ...]
    """What one uncontended grant of one key sends, in order; to each of its `nodes` unless `spreads_keys`."""
    promise: str
    holds_under: str
    """The faults under which the promise holds, and those under which it does not."""
    when_to_use: str
    when_not: str
    exclusion: Exclusion
    lease: Lease
    family: Family = Family.ONE_SERVER
    server_kinds: tuple[ServerKind, ...] = (ServerKind.REDIS,)
    """Of its servers, in the order in which the core counts them; none for what asks no server, and is on any."""
    judged_by: Judge = Judge.BELIEF
    lost_by: tuple[str, ...] = ()
    """Events after which two may hold it, as short noun phrases; what follows from its lease is not among them."""
    uses_rows: bool = False
    """Whether each key is a row of a table of the database."""
    promises: frozenset[Promise] = frozenset()
    acknowledges_places: bool = False
    """Whether its server says when a client has its place in a queue, so that it can be told who was passed."""
    extends_lease: bool = False
    """Whether a watchdog renews the lease while the lock is held."""
    shares: bool = False
    """Whether readers may hold it beside each other: `read_share`."""
    nests: bool = False
    """Whether its holder may enter again: `nesting`."""
    spreads_keys: bool = False
    """Whether each key is on one of the servers, and not on all of them."""
    allows_for_drift: bool = True
    """Whether a holder leaves a part of its lease to clocks that do not run alike."""
    takes_many_keys: bool = False
    """Whether one grant may be of several keys: `keys_per_grant`."""
    owns_connection: bool = False
    """Whether each client has a connection of its own to the first server."""
    shares_connections: bool = True
    """Whether anything goes over connections that clients share."""
    subscribes: bool = False
    """Whether there are as many connections to the first server as clients share once more, to subscribe over."""
    deletes_on_release: bool = False
    """Whether its servers have no key of the lock's own name once all that was taken is released."""
    parameters: tuple[Parameter, ...] = ()

    @property
    def commands_per_grant(self) -> int:
        """Commands that one uncontended grant sends, with default arguments."""
        return self.commands_of_a_grant(())

    def commands_of_a_grant(self, arguments: Arguments) -> int:
        """Commands that one uncontended grant of one key sends, to all servers together."""
        return len(self.commands) * (1 if self.spreads_keys else self._count("nodes", arguments, otherwise=1))

    def argument(self, name: str, arguments: Arguments) -> Scalar | None:
        """The value of the argument `name`, given or by default; None for a strategy that has no such argument."""
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        return {**defaults, **dict(arguments)}.get(name)

    def servers(self, arguments: Arguments) -> int:
        """How many servers, independent of each other, a cell needs."""
        return sum(self.servers_of_kind(kind, arguments) for kind in self.server_kinds) or 1

    def servers_of_kind(self, kind: ServerKind, arguments: Arguments) -> int:
        """How many of them are of `kind`."""
        if kind not in self.server_kinds:
            return 0
        return self._count("nodes", arguments, otherwise=1) if kind is ServerKind.REDIS else 1

    def replicas(self, arguments: Arguments) -> int:
        """How many replicas its server needs."""
        return self._count("replicas", arguments, otherwise=0)

    def with_arguments(self, arguments: Arguments) -> Strategy:
        """The same entry as it is with `arguments`: clients that share a session are promised nothing."""
        return replace(self, exclusion=Exclusion.NOTHING) if self._shares_session(arguments) else self

    def opens_own_connections(self, arguments: Arguments) -> bool:
        """Whether each client of a cell has a connection of its own to the first server."""
        return self.owns_connection and not self._shares_session(arguments)

    def opens_shared_connections(self, arguments: Arguments) -> bool:
        """Whether a cell opens connections that clients share."""
        return self.shares_connections or self._shares_session(arguments)

    def arguments_of_lock(self, arguments: Arguments) -> Arguments:
        """Those of `arguments` that the lock itself knows."""
        of_session = {parameter.name for parameter in self.parameters if parameter.of_session}
        return tuple((name, value) for name, value in arguments if name not in of_session)

    def permits(self, arguments: Arguments) -> int:
        """How many may hold one key at a time."""
        return self._count("permits", arguments, otherwise=1)

    def drift_factor(self, arguments: Arguments) -> float:
        """The part of the lease that a holder leaves to clocks that do not run alike."""
        factor = self.argument("drift_factor", arguments)
        return 0.01 if factor is None else float(factor)

    def lease_ms(self, ttl_ms: int) -> int | None:
        """The lease that the server really gets for a `ttl` of the matrix; None when there is none."""
        match self.lease:
            case Lease.NONE:
                return None
            case Lease.MILLISECONDS:
                return ttl_ms
            case Lease.WHOLE_SECONDS:
                return -(-ttl_ms // 1_000) * 1_000

    def longest_hold_ms(self, ttl_ms: int, arguments: Arguments) -> int | None:
        """How long its leases cover one hold, renewals counted in; None when nothing ends it."""
        lease_ms = self.lease_ms(ttl_ms)
        if lease_ms is None or not self.extends_lease or self.argument("renew", arguments) == "off":
            return lease_ms
        most_ms = self._count("max_hold_ms", arguments, otherwise=0)
        return max(lease_ms, most_ms) if most_ms else None

    def _shares_session(self, arguments: Arguments) -> bool:
        return self.argument("session", arguments) == "shared"

    def _count(self, name: str, arguments: Arguments, *, otherwise: int) -> int:
        value = self.argument(name, arguments)
        return otherwise if value is None else int(value)
