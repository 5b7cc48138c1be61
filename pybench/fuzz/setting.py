"""What is the same in all worlds of a search, and which part of one world is played.

The seed of a world draws everything that is not given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from pybench import _core
from pybench.errors import InputError
from pybench.matrix.durations import MS, format_duration, parse_duration, parse_lease
from pybench.notation import BadValue, parse_count, split_list, suggestion
from pybench.strategies import CATALOGUE, Lease
from pybench.strategies.parse import parse_strategy, strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybench.core_specs import FuzzSpec, PartSpec
    from pybench.strategies.entry import Arguments

FAULTS = ("delay", "cut", "pause", "client-kill", "kill", "restart", "forget", "failover", "clock")
"""The faults of worlds, by the core's names."""

MOST_CLIENTS = 64
SHORTEST_LENGTH = 1_000
"""In ns. No fault finds a moment in a shorter world."""
LONGEST_LENGTH = 3_600_000 * MS
"""In ns. A longer world would keep Ctrl-C waiting for minutes: a world is searched as a whole."""
LONGEST_HOLD = LONGEST_LENGTH // 6
"""In ns, of a lease too. Without other options a hold is up to 1.5 leases, and a world as long as four holds."""
MOST_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Worlds:
    """The worlds of one lock under one setting."""

    strategy: str
    arguments: Arguments
    faults: tuple[str, ...]
    core: _core.Fuzz
    words: tuple[str, ...]
    """The options that give this setting again."""

    @property
    def lock(self) -> str:
        """The canonical text of the strategy."""
        return strategy_text(self.strategy, self.arguments)

    @property
    def has_lease(self) -> bool:
        """Whether the lock ends with a lease, and not with its holder's session."""
        return CATALOGUE[self.strategy].lease is not Lease.NONE


@dataclass(frozen=True, slots=True)
class Part:
    """What is left of a world; None leaves all."""

    clients: tuple[int, ...] | None = None
    faults: tuple[int, ...] | None = None
    requests: int | None = None
    """How many requests each client makes: the first so many."""
    earlier_ns: int = 0
    """How much earlier the faults strike."""

    def spec(self) -> PartSpec:
        """For the core."""
        return {
            "clients": None if self.clients is None else list(self.clients),
            "faults": None if self.faults is None else list(self.faults),
            "requests": self.requests,
            "earlier_ns": self.earlier_ns,
        }

    def words(self) -> list[str]:
        """The options of `replay` that give this part again."""
        words = []
        if self.clients is not None:
            words += ["--only-clients", _numbers_text(self.clients)]
        if self.faults is not None:
            words += ["--only-faults", _numbers_text(self.faults)]
        if self.requests is not None:
            words += ["--requests", str(self.requests)]
        if self.earlier_ns:
            words += ["--earlier", format_duration(self.earlier_ns)]
        return words


@dataclass(frozen=True, slots=True)
class _Given:
    """The options as they were given, parsed one by one."""

    words: list[str] = field(default_factory=list)

    def count(self, option: str, text: str | None, *, highest: int) -> int | None:
        if text is None:
            return None
        value = _parsed(option, lambda: parse_count(text, highest=highest))
        self.words.extend([option, str(value)])
        return value

    def duration(self, option: str, text: str | None, *, lowest: int = 1, highest: int = LONGEST_LENGTH) -> int | None:
        if text is None:
            return None
        value = _parsed(option, lambda: parse_duration(text))
        if value <= 0:
            raise InputError(f"{option} {text} is no length", hint="such as 100ms or 2s")
        if value < lowest:
            raise InputError(f"{option}: {text} is too short", hint=f"at least {format_duration(lowest)}")
        _require_at_most(option, text, value, highest)
        self.words.extend([option, format_duration(value)])
        return value

    def lease(self, option: str, text: str | None) -> int | None:
        if text is None:
            return None
        value = _parsed(option, lambda: parse_lease(text))
        _require_at_most(option, text, value * MS, LONGEST_HOLD)
        self.words.extend([option, format_duration(value * MS)])
        return value


def _require_at_most(option: str, text: str, value: int, highest: int) -> None:
    if value > highest:
        raise InputError(f"{option}: {text} is too long", hint=f"at most {format_duration(highest)}")


def parse_worlds(
    strategy: str, *, clients: str | None, ttl: str | None, hold: str | None, length: str | None, faults: str | None
) -> Worlds:
    """The worlds that options describe. Raises InputError for a value that is none."""
    name, arguments = _parsed("the strategy", lambda: parse_strategy(strategy))
    entry = CATALOGUE[name].with_arguments(arguments)
    if entry.needs_guard:
        message = f"{name} takes no lock, and worlds have no guarded resource to judge it by"
        raise InputError(message, hint=f"measure it: pybench run -s {name} --guard counter")
    given = _Given()
    spec: FuzzSpec = {
        "strategy": name,
        "args": dict(entry.arguments_of_lock(arguments)),
        "exclusion": entry.exclusion.value,
        "faults": [],
        "clients": given.count("--clients", clients, highest=MOST_CLIENTS),
        "ttl_ms": given.lease("--ttl", ttl),
        "hold_ns": given.duration("--hold", hold, highest=LONGEST_HOLD),
        "until_ns": given.duration("--length", length, lowest=SHORTEST_LENGTH),
    }
    known = [fault for fault, _ in _made(spec).faults()]
    chosen = _faults(faults, name, known)
    if len(chosen) < len(known):
        given.words.extend(["--faults", ",".join(chosen) or "none"])
    return Worlds(name, arguments, tuple(chosen), _made({**spec, "faults": chosen}), tuple(given.words))


def parse_part(*, only_clients: str | None, only_faults: str | None, requests: str | None, earlier: str | None) -> Part:
    """The part that options describe. Raises InputError for a value that is none."""
    given = _Given()
    return Part(
        clients=_numbers("--only-clients", only_clients),
        faults=_numbers("--only-faults", only_faults),
        requests=given.count("--requests", requests, highest=1_000_000),
        earlier_ns=given.duration("--earlier", earlier) or 0,
    )


def parse_seed(name: str, text: str) -> int:
    """A seed. Raises InputError for what is none."""
    if not text.isascii() or not text.isdigit() or int(text) > MOST_SEED:
        raise InputError(f"{name} {text} is no seed", hint=f"a whole number from 0 to {MOST_SEED}")
    return int(text)


def parse_seeds(text: str, first: int) -> int:
    """How many seeds to search from `first`. Raises InputError for what is no count."""
    return _parsed("--seeds", lambda: parse_count(text, highest=MOST_SEED - first + 1))


def replay_command(worlds: Worlds, seed: int, part: Part) -> str:
    """The one line that plays this part of the world again."""
    return " ".join(map(quote, ["pybench", "replay", worlds.lock, str(seed), *worlds.words, *part.words()]))


def _made(spec: FuzzSpec) -> _core.Fuzz:
    try:
        return _core.Fuzz(spec)
    except ValueError as error:
        raise InputError(str(error), hint="see `pybench strategies` for what the lock needs") from error


def _faults(text: str | None, strategy: str, known: list[str]) -> list[str]:
    if text is None or text == "all":
        return known
    if text == "none":
        return []
    names = split_list(text)
    for name in names:
        if name not in FAULTS:
            raise InputError(f"--faults: there is no fault {name}", hint=suggestion(name, FAULTS))
        if name not in known:
            raise InputError(
                f"--faults: the worlds of {strategy} have no fault {name}", hint=f"they have {', '.join(known)}"
            )
    return [name for name in known if name in names]


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if text == "none":
        return ()
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise InputError(f"{option} {text} is no list of numbers", hint="such as 0,2, or none")
    return tuple(sorted({int(part) for part in parts}))


def _numbers_text(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers)) or "none"


Value = TypeVar("Value")


def _parsed(what: str, parse: Callable[[], Value]) -> Value:
    try:
        return parse()
    except BadValue as problem:
        raise InputError(f"{what}: {problem.message}", hint=problem.hint) from problem
