"""Every axis of a matrix: how its values are read and written, its default, what it means.

To add an axis, add its entry here and its field to `Cell`. Matrix, schema, cell names and plan read this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pybench.matrix.durations import MS, S, format_lease, format_rate, parse_lease, parse_rate
from pybench.matrix.values import Connections, Distribution, KeyChoice, Retry
from pybench.notation import BadValue, format_number, parse_choice, parse_count, parse_number, shown
from pybench.strategies import CATALOGUE, parse_strategy, strategy_text

DEFAULT_BACKEND = "redis"
MOST_THREADS = 64
MOST_KEYS_PER_GRANT = 8
MOST_NESTED_ENTRIES = 16
BACKEND_NAME = r"[a-z][a-z0-9_-]{0,31}"
PLACE = rf"^{BACKEND_NAME}(\+{BACKEND_NAME})?$"
"""One backend, or a Redis one and a Postgres one."""

_LENGTH = {
    "anyOf": [{"const": 0}, {"type": "string"}],
    "examples": ["0", "2ms", "exp(2ms)", "lognormal(2ms, 0.8)", "quantiles(p50=50ms, p99=2s)"],
}
_RETRY_KINDS = ["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]
_RETRY_FIELDS = {
    "kind": {"enum": _RETRY_KINDS, "default": "full-jitter"},
    "base": {"anyOf": [{"const": 0}, {"type": "string"}], "description": "The first pause.", "default": "1ms"},
    "factor": {"type": "number", "description": "How much longer each next pause may be.", "default": 2},
    "cap": {"type": "string", "description": "The longest pause.", "default": "50ms"},
    "max_attempts": {"type": "integer", "minimum": 1, "description": "Attempts; as many as max_wait allows."},
    "max_wait": {"type": "string", "description": "No attempt begins later than this.", "default": "10s"},
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. `default` is None where there is none: for `strategy`, and for `rate`, which makes a loop open."""

    name: str
    parse: Callable[[object], Any]
    """Raises BadValue."""
    text: Callable[[Any], str]
    """The canonical text of a parsed value."""
    default: Any
    meaning: str
    schema: dict[str, Any]
    """JSON Schema of one value."""


def _text_of(value: Any) -> str:  # noqa: ANN401 - the table holds values of many types
    return str(value.text)


def _count(name: str, default: int, highest: int, meaning: str) -> Axis:
    def parse(value: object) -> int:
        return parse_count(value, highest=highest)

    schema = {"type": "integer", "minimum": 1, "maximum": highest}
    return Axis(name, parse, str, default, meaning, schema)


def _words(name: str, words: tuple[str, ...], meaning: str, default: str | None = None) -> Axis:
    def parse(value: object) -> str:
        return parse_choice(value, words)

    return Axis(name, parse, str, default or words[0], meaning, {"enum": list(words)})


def _share(value: object) -> float:
    return parse_number(value, lowest=0, highest=1)


def _backend(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue(f"{shown(value)} is not a backend", hint="say the name of one of backends")
    return "".join(value.split())


def _strategy_schema() -> dict[str, Any]:
    names = list(CATALOGUE)
    pattern = f"^\\s*({'|'.join(names)})\\s*(\\(.*\\))?\\s*$"
    arguments = {"type": ["object", "null"]}
    return {
        "anyOf": [
            {"enum": names},
            {"type": "string", "pattern": pattern},
            {
                "type": "object",
                "properties": dict.fromkeys(names, arguments),
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            },
        ]
    }


_RETRY_SCHEMA = {
    "anyOf": [
        {"enum": _RETRY_KINDS},
        {"type": "string", "pattern": "^\\s*[a-z-]+\\s*\\(.*\\)\\s*$", "examples": ["fixed(base=1ms, max_wait=5s)"]},
        {"type": "object", "properties": _RETRY_FIELDS, "additionalProperties": False},
    ]
}

_TABLE = (
    Axis(
        "strategy",
        parse_strategy,
        lambda value: strategy_text(*value),
        None,
        "The lock: a name, `name(argument=value)`, or a mapping of the name to its arguments.",
        _strategy_schema(),
    ),
    Axis(
        "backend",
        _backend,
        str,
        DEFAULT_BACKEND,
        "Where the locks live: a name of `backends`, or two of them, `redis+postgres`, for locks of both; every one "
        "that a lock can be on when none is named.",
        {"type": "string", "pattern": PLACE},
    ),
    _count("concurrency", 1, 1_000_000, "Clients at a time."),
    _count("keys", 1, 10_000_000, "Locks that the clients choose from."),
    Axis(
        "key_choice",
        KeyChoice.parse,
        _text_of,
        KeyChoice("uniform"),
        "Which lock comes next: `uniform`, `zipf(s)`, or always the first: `single`.",
        {"type": "string", "pattern": "^(uniform|single|zipf\\(.*\\))$", "examples": ["uniform", "zipf(1.1)"]},
    ),
    _count("keys_per_grant", 1, MOST_KEYS_PER_GRANT, "Locks that one grant takes, of those that take several."),
    _words("key_order", ("random", "sorted"), "In which order a client names the keys of one grant."),
    Axis(
        "read_share",
        _share,
        format_number,
        0.0,
        "The part of the grants that are for readers, of locks that readers share.",
        {"type": "number", "minimum": 0, "maximum": 1, "examples": [0.9]},
    ),
    _count("nesting", 1, MOST_NESTED_ENTRIES, "How often a holder enters, of locks that it may enter again."),
    Axis(
        "hold",
        Distribution.parse,
        _text_of,
        Distribution("fixed", (0,)),
        "How long a lock is held: `0`, `2ms`, `exp(2ms)`, `lognormal(2ms, 0.8)`, `uniform(1ms, 3ms)`, "
        "`quantiles(p50=50ms, p99=2s)`.",
        _LENGTH,
    ),
    Axis(
        "think",
        Distribution.parse,
        _text_of,
        Distribution("fixed", (0,)),
        "How long a client of a closed loop rests after its release; written as `hold`.",
        _LENGTH,
    ),
    Axis(
        "ttl",
        parse_lease,
        format_lease,
        10_000,
        "The lease, in whole milliseconds.",
        {"type": "string", "examples": ["10s", "50ms"]},
    ),
    Axis(
        "retry",
        Retry.parse,
        _text_of,
        Retry("full-jitter", MS, 2.0, 50 * MS, None, 10 * S),
        "When a refused client tries again: a kind, `kind(base=1ms, max_wait=5s)`, or a mapping.",
        _RETRY_SCHEMA,
    ),
    Axis(
        "connections",
        Connections.parse,
        _text_of,
        Connections("shared", 4),
        "`shared(n)` by all clients, never more than there are clients, or one `per-client`.",
        {"type": "string", "pattern": "^(per-client|shared\\([0-9]+\\))$", "examples": ["shared(4)", "per-client"]},
    ),
    _count("threads", 1, MOST_THREADS, "Threads that make the load."),
    _words("poll", ("block", "spin"), "How those threads wait: asleep, or asking again at once on a core each."),
    Axis(
        "rate",
        parse_rate,
        format_rate,
        None,
        "Arrivals a second. A rate makes the loop open: latency counts from the due time.",
        {"type": "string", "pattern": "^\\s*[0-9.]+\\s*/\\s*s$", "examples": ["5000/s"]},
    ),
    _words("arrivals", ("constant", "poisson"), "How the arrivals of an open loop are spread."),
    _count("max_in_flight", 10_000, 10_000_000, "Arrivals of an open loop that wait or run; more are dropped."),
    _words("after_lease", ("continue", "stop"), "What a holder does when its lease ends under it."),
    _words("appendfsync", ("off", "everysec", "always"), "Persistence of the servers that pybench starts."),
)

AXES: dict[str, Axis] = {axis.name: axis for axis in _TABLE}

OPEN_LOOP_AXES = ("arrivals", "max_in_flight")
"""They say something only beside a rate."""

OWN_COLUMNS = ("strategy", "backend", "concurrency", "keys", "hold", "retry")
"""Axes with a column in every table; the further ones have one in the tables of matrices that name them."""
