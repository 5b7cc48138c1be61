"""The kinds of faults: what each does, to what, for how long, and with which arguments. A kind is defined here alone.

A fault of a server is carried out by `running.faults`; one of connections or of a client by the core, in its transport
and in its clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

from pybench.matrix.durations import MS, S, format_duration, parse_duration
from pybench.notation import BadValue, parse_choice, parse_count, shown
from pybench.strategies import ServerKind

BREAK_MY_SERVERS = "break-my-servers"
"""The word of `allow` for faults of given servers. No file has it: who runs the file says so, each time."""
MOST_BYTES_PER_S = 10_000_000_000
LONGEST_LAG_NS = S
USUAL_LAG_NS = 100 * MS


class Target(StrEnum):
    """What a fault is done to."""

    REDIS = "redis"
    POSTGRES = "postgres"
    CLIENT = "client"
    PROCESS = "process"
    """A worker process, with all of its clients."""

    @property
    def server_kind(self) -> ServerKind | None:
        """The kind of server; None for a client and for a process."""
        return None if self in (Target.CLIENT, Target.PROCESS) else ServerKind(self.value)


class Lasting(Enum):
    """Whether a fault has a length."""

    MOMENT = auto()
    """It happens at one moment: `for` is refused."""
    AT_ONCE = auto()
    """Without `for` it is over at once."""
    TO_THE_END = auto()
    """Without `for` it lasts to the end of the window; a server is healthy again after the trial."""
    GIVEN = auto()
    """`for` is needed."""


class Does(Enum):
    """What a fault does, as far as promises depend on it."""

    NOTHING = auto()
    """Servers and clients go on, with their data and connections."""
    DISTURBS = auto()
    """Connections end, or somebody does not reply for a while. All data stay."""
    JUMPS = auto()
    """The server goes on, and lets leases end too early or too late."""
    ENDS = auto()
    """The server ends. What it keeps depends on its settings and on the fault."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a kind of fault."""

    parse: Callable[[object], int | str]
    schema: Mapping[str, Any]
    """JSON Schema of its values."""
    text: Callable[[Any], str] = str
    default: int | str | None = None
    """None where a fault without it has no value for it."""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    meaning: str
    """What is done, as a sentence."""
    lasting: Lasting
    does: Does
    targets: tuple[Target, ...]
    by_core: bool
    """Whether the core carries it out."""
    parameters: Mapping[str, Parameter]
    of_given: tuple[Target, ...] = ()
    """The given servers that it can be done to by their own commands; the others need the process of the server."""
    why_only: str = ""
    """Why it has no other targets, as a clause, where a user may wonder."""


def _positive(value: object) -> int:
    ns = parse_duration(value)
    if ns == 0:
        raise BadValue("0 changes nothing", hint="use for example 20ms")
    return ns


def _lag(value: object) -> int:
    ns = _positive(value)
    if ns > LONGEST_LAG_NS:
        raise BadValue(f"{shown(value)} is too long", hint=f"at most {format_duration(LONGEST_LAG_NS)}")
    return ns


def _jump(value: object) -> int:
    """Nanoseconds of `+10s` or `-10s`, in whole milliseconds."""
    text = value.strip() if isinstance(value, str) else value
    is_back = isinstance(text, str) and text.startswith("-")
    ns = _positive(text[1:] if isinstance(text, str) and text[:1] in ("+", "-") else text)
    if ns % MS:
        raise BadValue(f"{shown(value)} is not in whole milliseconds", hint="use for example +10s")
    return -ns if is_back else ns


def _jump_text(ns: int) -> str:
    return f"{'-' if ns < 0 else '+'}{format_duration(abs(ns))}"


_REDIS = (Target.REDIS,)
_SERVERS = (Target.REDIS, Target.POSTGRES)
_LINKED = (*_SERVERS, Target.CLIENT)
"""What a connection belongs to. The core, which harms connections, does not know the processes of a trial."""
_COUNT = ["integer", "string"]
_BY = Parameter(
    _positive,
    {"type": "string", "examples": ["20ms"], "description": "For delay and jitter; for clock +10s or -10s."},
    format_duration,
    needed=True,
)
_JUMP = Parameter(_jump, _BY.schema, _jump_text, needed=True)
_LAG = Parameter(
    _lag,
    {"type": "string", "default": "100ms", "description": "For failover: from the cut of the link to the kill."},
    format_duration,
    default=USUAL_LAG_NS,
)
_BYTES_PER_S = Parameter(
    lambda value: parse_count(value, highest=MOST_BYTES_PER_S),
    {"type": _COUNT, "examples": [10_000], "description": "For throttle."},
    needed=True,
)
_NTH = Parameter(
    lambda value: parse_count(value, highest=1_000_000_000),
    {"type": _COUNT, "examples": [3], "description": "For lose-reply: only this one; without it, each reply."},
)
_DATA = Parameter(
    lambda value: parse_choice(value, ("keep", "lose")),
    {"enum": ["keep", "lose"], "default": "keep", "description": "For restart."},
    default="keep",
)


def _of_server(
    meaning: str,
    lasting: Lasting,
    does: Does,
    targets: tuple[Target, ...] = _SERVERS,
    of_given: tuple[Target, ...] = (),
    why_only: str = "",
    **parameters: Parameter,
) -> Kind:
    return Kind(
        meaning, lasting, does, targets, by_core=False, parameters=parameters, of_given=of_given, why_only=why_only
    )


def _of_links(meaning: str, lasting: Lasting = Lasting.TO_THE_END, **parameters: Parameter) -> Kind:
    return Kind(meaning, lasting, Does.DISTURBS, _LINKED, by_core=True, parameters=parameters)


def _of_client(meaning: str, lasting: Lasting = Lasting.TO_THE_END) -> Kind:
    return Kind(meaning, lasting, Does.DISTURBS, (Target.CLIENT,), by_core=True, parameters={})


PAUSED_CLIENT = _of_client("The client acts on nothing, and its work may outlive its lease.", Lasting.GIVEN)
"""`pause` of a client; the same word for a server stops the server."""


def _of_process(meaning: str, lasting: Lasting) -> Kind:
    return Kind(meaning, lasting, Does.DISTURBS, (Target.PROCESS,), by_core=False, parameters={})


KILLED_PROCESS = _of_process("The process is killed (SIGKILL) with all that its clients hold.", Lasting.MOMENT)
PAUSED_PROCESS = _of_process("The process is stopped (SIGSTOP), and goes on later (SIGCONT).", Lasting.GIVEN)

KINDS: Mapping[str, Kind] = {
    "kill": _of_server("The server is killed (SIGKILL), and started again.", Lasting.TO_THE_END, Does.ENDS),
    "restart": _of_server(
        "The server is shut down in good order, and started again: with its data, or without (`data=lose`).",
        Lasting.AT_ONCE,
        Does.ENDS,
        data=_DATA,
    ),
    "failover": _of_server(
        "A replica loses its link, the primary is killed after `lag`, and the data of the replica take its place.",
        Lasting.AT_ONCE,
        Does.ENDS,
        _REDIS,
        lag=_LAG,
    ),
    "clock": _of_server(
        "The wall clock of the server jumps by the time `by`, and back after `for`.",
        Lasting.TO_THE_END,
        Does.JUMPS,
        _REDIS,
        why_only="pybench starts no Postgres under libfaketime, which moves the clock",
        by=_JUMP,
    ),
    "pause": _of_server(
        "The server is stopped (SIGSTOP), and goes on later (SIGCONT). Your own Redis: CLIENT PAUSE.",
        Lasting.TO_THE_END,
        Does.DISTURBS,
        of_given=_REDIS,
    ),
    "slow": _of_server("A script keeps the server busy.", Lasting.GIVEN, Does.DISTURBS, _REDIS, of_given=_REDIS),
    "client-kill": _of_server(
        "The server closes the connections of all clients.", Lasting.MOMENT, Does.DISTURBS, of_given=_SERVERS
    ),
    "script-flush": _of_server(
        "The server forgets all scripts.", Lasting.MOMENT, Does.NOTHING, _REDIS, of_given=_REDIS
    ),
    "delay": _of_links("Each round trip takes longer by the time `by`.", by=_BY),
    "jitter": _of_links("Each round trip takes longer by a random time of at most `by`.", by=_BY),
    "throttle": _of_links("Each direction of a connection carries `bytes_per_s` at most.", bytes_per_s=_BYTES_PER_S),
    "cut": _of_links("Connections are closed, and new ones are refused."),
    "blackhole": _of_links("Bytes of both sides are lost. Connections stay open."),
    "half-open": _of_links("Requests arrive, and replies are lost. Connections stay open."),
    "reset": _of_links("Connections are closed once.", Lasting.MOMENT),
    "lose-reply": _of_links(
        "The server executes the command, and its reply is lost with the connection: each reply, or the `nth` one.",
        nth=_NTH,
    ),
    "crash": _of_client("The client forgets its lock, and begins anew after `for`.", Lasting.AT_ONCE),
    "drop-renewals": _of_client("What the client sends to keep its lock is lost."),
}
"""By the name that a matrix uses."""


def kind_of(do: str, target: Target) -> Kind:
    """The kind of the fault `do` of `target`."""
    return _NAMESAKES.get((do, target), KINDS[do])


_NAMESAKES: Mapping[tuple[str, Target], Kind] = {
    ("pause", Target.CLIENT): PAUSED_CLIENT,
    ("kill", Target.PROCESS): KILLED_PROCESS,
    ("pause", Target.PROCESS): PAUSED_PROCESS,
}
