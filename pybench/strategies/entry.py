"""One entry of the catalogue: the strategy's texts, its arguments, and the facts that plans and verdicts need.

Promises: plain data, and functions of an entry and its arguments alone. Does not know any strategy by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto

from pybench.notation import format_number, parse_choice, parse_count, parse_number

Scalar = int | float | str | bool
Arguments = tuple[tuple[str, Scalar], ...]
"""The arguments that differ from their defaults, sorted by name."""


class Exclusion(StrEnum):
    """How far a strategy promises to limit the holders of a lock; records keep the text."""

    NOTHING = "nothing"
    WHILE_NOBODY_OUTLIVES = "while-nobody-outlives"
    """While no client crashes between its commands, and no client works past its lease."""
    ALWAYS = "always"
    """Beliefs never overlap; works do not overlap if each ends within its lease."""


class Promise(StrEnum):
    """Promises of a strategy besides exclusion; records keep the text."""

    FENCE = "fence"
    """Each grant of a key has a higher fence than all earlier grants."""
    FIFO = "fifo"
    """The client whose place in the queue was acknowledged first is granted first."""
    WAKE_UP = "wake-up"
    """A release wakes a waiting client by a message."""


class Judge(StrEnum):
    """The evidence that decides the verdict on a strategy; records keep the text."""

    BELIEF = "belief"
    """Which clients believed to hold the lock, and when."""
    EFFECTS = "effects"
    """The rows that the work wrote: no client is kept out, and a conflicting write is refused and repeated."""
    GUARD = "guard"
    """The writes that the resource accepted: two clients may work at once, and the earlier one is refused."""
    PART = "part"
    """Beliefs, of which each checker saw only a part: processes shared the keys. A record has it, and no strategy."""


class Lease(Enum):
    """How a strategy uses the matrix's `ttl`."""

    NONE = auto()
    MILLISECONDS = auto()
    WHOLE_SECONDS = auto()
    """The ttl is rounded up, because the command takes whole seconds."""


class Family(StrEnum):
    """The servers that hold the lock; `pybench strategies` groups its list by them."""

    CONTROL = "the control"
    ONE_STEP = "no lock: one step on the server of the resource"
    ONE_SERVER = "one Redis or Valkey server"
    SEVERAL_SERVERS = "several Redis or Valkey servers"
    DATABASE = "one Postgres server"
    BOTH = "a Redis or Valkey server and a Postgres server"


class ServerKind(StrEnum):
    """The protocol of a server."""

    REDIS = "redis"
    POSTGRES = "postgres"

    @property
    def label(self) -> str:
        """The name as people write it."""
        return self.value.capitalize()

    @property
    def variable(self) -> str:
        """The environment variable that names a server of this kind if neither matrix nor option names one."""
        return f"PYBENCH_{self.name}_URL"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]

    def parse(self, value: object) -> Scalar:
        """The parsed value. Raises BadValue that names the nearest valid one."""
        return parse_choice(value, self.words)

    @property
    def text(self) -> str:
        """The allowed values, as the catalogue shows them."""
        return " or ".join(self.words)


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number in a range."""

    lowest: int
    highest: int

    def parse(self, value: object) -> Scalar:
        """The parsed value. Raises BadValue that names the nearest valid one."""
        return parse_count(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """The allowed values, as the catalogue shows them."""
        return f"{self.lowest} to {self.highest}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range."""

    lowest: float
    highest: float

    def parse(self, value: object) -> Scalar:
        """The parsed value. Raises BadValue that names the nearest valid one."""
        return parse_number(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """The allowed values, as the catalogue shows them."""
        return f"{format_number(self.lowest)} to {format_number(self.highest)}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a strategy."""

    name: str
    allowed: Choice | Count | Number
    default: Scalar
    meaning: str
    of_session: bool = False
    """Whether the argument is a setting of the database's sessions, which the core's lock does not receive."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of the catalogue; its texts are whole sentences for people.

    This module and `planning.trial_spec` give a meaning to parameters of these names: `nodes`, `replicas`, `permits`,
    `drift_factor`, `renew`, `max_hold_ms`, `session`, `wait`, `lock_timeout_ms`, `synchronous_commit`.
    """

    name: str
    summary: str
    commands: tuple[str, ...]
    """The commands of one uncontended grant of one key, in order; sent to each of `nodes` unless `spreads_keys`."""
    promise: str
    holds_under: str
    """The faults under which the promise holds, and those under which it does not."""
    when_to_use: str
    when_not: str
    exclusion: Exclusion
    lease: Lease
    family: Family = Family.ONE_SERVER
    server_kinds: tuple[ServerKind, ...] = (ServerKind.REDIS,)
    """The kinds of its servers, in the core's order; empty for a strategy that asks no server and runs on any."""
    judged_by: Judge = Judge.BELIEF
    lost_by: tuple[str, ...] = ()
    """Events after which two clients may hold the lock, as short noun phrases; the end of the lease is not listed."""
    needs_guard: bool = False
    """Whether it has no lock at all: the guarded work itself is one atomic step."""
    uses_rows: bool = False
    """Whether each key is a row of a table of the database."""
    promises: frozenset[Promise] = frozenset()
    acknowledges_places: bool = False
    """Whether the server acknowledges a client's place in a queue, so that the checker can see FIFO inversions."""
    extends_lease: bool = False
    """Whether a watchdog renews the lease while the lock is held."""
    shares: bool = False
    """Whether several readers may hold the lock at once: axis `read_share`."""
    nests: bool = False
    """Whether the holder may acquire the lock again: axis `nesting`."""
    spreads_keys: bool = False
    """Whether each key is on one of the servers, and not on all of them."""
    allows_for_drift: bool = True
    """Whether a holder subtracts a clock-skew margin from its lease."""
    takes_many_keys: bool = False
    """Whether one grant may take several keys: axis `keys_per_grant`."""
    owns_connection: bool = False
    """Whether each client has a connection of its own to the first server."""
    shares_connections: bool = True
    """Whether the strategy uses connections that clients share."""
    subscribes: bool = False
    """Whether a subscriber connection to the first server is opened for each connection that clients share."""
    deletes_on_release: bool = False
    """Whether no key with the lock's own name is left on its servers once every hold is released."""
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
        """How many of the servers are of `kind`."""
        if kind not in self.server_kinds:
            return 0
        return self._count("nodes", arguments, otherwise=1) if kind is ServerKind.REDIS else 1

    def replicas(self, arguments: Arguments) -> int:
        """How many replicas the server needs."""
        return self._count("replicas", arguments, otherwise=0)

    def with_arguments(self, arguments: Arguments) -> Strategy:
        """The entry under `arguments`: clients that share a session are promised nothing."""
        return replace(self, exclusion=Exclusion.NOTHING) if self._shares_session(arguments) else self

    def opens_own_connections(self, arguments: Arguments) -> bool:
        """Whether each client of a cell has a connection of its own to the first server."""
        return self.owns_connection and not self._shares_session(arguments)

    def opens_shared_connections(self, arguments: Arguments) -> bool:
        """Whether a cell opens connections that clients share."""
        return self.shares_connections or self._shares_session(arguments)

    def arguments_of_lock(self, arguments: Arguments) -> Arguments:
        """Those of `arguments` that the core's lock receives."""
        of_session = {parameter.name for parameter in self.parameters if parameter.of_session}
        return tuple((name, value) for name, value in arguments if name not in of_session)

    def permits(self, arguments: Arguments) -> int:
        """How many clients may hold one key at a time."""
        return self._count("permits", arguments, otherwise=1)

    def drift_factor(self, arguments: Arguments) -> float:
        """The clock-skew margin, as a share of the lease."""
        factor = self.argument("drift_factor", arguments)
        return 0.01 if factor is None else float(factor)

    def lease_ms(self, ttl_ms: int) -> int | None:
        """The lease that the server receives for a `ttl` of the matrix; None for a strategy without a lease."""
        match self.lease:
            case Lease.NONE:
                return None
            case Lease.MILLISECONDS:
                return ttl_ms
            case Lease.WHOLE_SECONDS:
                return -(-ttl_ms // 1_000) * 1_000

    @property
    def holds_nothing(self) -> bool:
        """Whether it does not lock, or its writes alone are checked: its clients hold nothing on a server."""
        return self.judged_by is Judge.EFFECTS or not self.server_kinds

    def renews(self, arguments: Arguments) -> bool:
        """Whether a holder renews its lease."""
        return self.extends_lease and self.argument("renew", arguments) != "off"

    def longest_hold_ms(self, ttl_ms: int, arguments: Arguments) -> int | None:
        """How long the lease covers one hold, renewals included; None when nothing ends the hold."""
        lease_ms = self.lease_ms(ttl_ms)
        if lease_ms is None or not self.renews(arguments):
            return lease_ms
        most_ms = self._count("max_hold_ms", arguments, otherwise=0)
        return max(lease_ms, most_ms) if most_ms else None

    def _shares_session(self, arguments: Arguments) -> bool:
        return self.argument("session", arguments) == "shared"

    def _count(self, name: str, arguments: Arguments, *, otherwise: int) -> int:
        value = self.argument(name, arguments)
        return otherwise if value is None else int(value)
