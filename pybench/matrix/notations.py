"""JSON Schemas of the matrix's own notations, and the parser of a backend or pair of backends."""

from __future__ import annotations

from typing import Any

from pybench.matrix.fault_kinds import KILLED_PROCESS, KINDS, PAUSED_CLIENT, PAUSED_PROCESS
from pybench.notation import BadValue, shown
from pybench.strategies import CATALOGUE

BACKEND_NAME = r"[a-z][a-z0-9_-]{0,31}"
PLACE: dict[str, Any] = {"type": "string", "pattern": rf"^{BACKEND_NAME}(\+{BACKEND_NAME})?$"}
"""The name of one backend, or of a Redis backend and a Postgres backend."""
LENGTH: dict[str, Any] = {
    "anyOf": [{"const": 0}, {"type": "string"}],
    "examples": ["0", "2ms", "exp(2ms)", "lognormal(2ms, 0.8)", "quantiles(p50=50ms, p99=2s)"],
}
ROUND_TRIP: dict[str, Any] = {
    "anyOf": [{"const": 0}, {"type": "string"}],
    "examples": ["0", "1ms", "lognormal(20ms, 0.3)", "per-server(0.5ms, 1ms, 20ms, 20ms, 80ms)"],
    "description": "One time for all servers, or per-server(...) with a time for each server. A list has several "
    "values of the axis, and not those of several servers.",
}
STAGES: dict[str, Any] = {
    "type": "string",
    "examples": ["0 -> 256 over 5s, 256 for 10s, 0 over 1s", "0 -> 5000/s over 10s", "none"],
    "description": "One text with all stages, separated by commas. A list has several values of the axis: quote each "
    "value in a list in brackets.",
}
_FAULT: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "examples": ["kill redis[0] at 1s for 500ms", "restart(data=lose) redis[1] at 2s"]},
        {
            "type": "object",
            "properties": {
                "at": {
                    "anyOf": [{"const": 0}, {"type": "string"}],
                    "description": "When it begins, from the opening of the window.",
                },
                "do": {
                    "type": "string",
                    "examples": list(KINDS),
                    "description": "\n".join(
                        f"{do}: {kind.meaning}"
                        for do, kind in (
                            *KINDS.items(),
                            ("pause client", PAUSED_CLIENT),
                            ("kill process", KILLED_PROCESS),
                            ("pause process", PAUSED_PROCESS),
                        )
                    ),
                },
                "target": {"type": "string", "examples": ["redis[0]", "postgres", "client[0]", "process[0]"]},
                "for": {
                    "anyOf": [{"const": 0}, {"type": "string"}],
                    "description": "How long it lasts; without it, most last to the end of the window.",
                },
                **{name: dict(one.schema) for kind in KINDS.values() for name, one in kind.parameters.items()},
            },
            "required": ["at", "do", "target"],
            "additionalProperties": False,
        },
    ]
}
FAULTS: dict[str, Any] = {
    "anyOf": [*_FAULT["anyOf"], {"type": "array", "items": _FAULT, "minItems": 1}],
    "examples": ["none", "kill redis[0] at 1s for 500ms"],
    "description": "One plan: a text with all faults, separated by commas, or a list of faults. Under axes a list has "
    "several plans.",
}
MODE: dict[str, Any] = {
    "type": "string",
    "pattern": "^\\s*(measure|(saturate|curve)\\s*(\\(.*\\))?)\\s*$",
    "examples": ["measure", "saturate", "curve(start=500/s, within=0.02)"],
}
KEY_CHOICE: dict[str, Any] = {
    "type": "string",
    "pattern": "^(uniform|single|zipf\\(.*\\))$",
    "examples": ["uniform", "zipf(1.1)"],
}
LEASE: dict[str, Any] = {"type": "string", "examples": ["10s", "50ms"]}
CONNECTIONS: dict[str, Any] = {
    "type": "string",
    "pattern": "^(per-client|shared\\([0-9]+\\))$",
    "examples": ["shared(4)", "per-client"],
}
RATE: dict[str, Any] = {"type": "string", "pattern": "^\\s*[0-9.]+\\s*/\\s*s$", "examples": ["5000/s"]}
_RETRY_KINDS = ["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]
_RETRY_FIELDS = {
    "kind": {"enum": _RETRY_KINDS, "default": "full-jitter"},
    "base": {"anyOf": [{"const": 0}, {"type": "string"}], "description": "The first pause.", "default": "1ms"},
    "factor": {
        "type": "number",
        "description": "The factor by which the longest pause grows from attempt to attempt.",
        "default": 2,
    },
    "cap": {"type": "string", "description": "The longest pause.", "default": "50ms"},
    "max_attempts": {
        "type": "integer",
        "minimum": 1,
        "description": "The most attempts; by default only max_wait limits them.",
    },
    "max_wait": {"type": "string", "description": "The time after which no further attempt begins.", "default": "10s"},
}
RETRY: dict[str, Any] = {
    "anyOf": [
        {"enum": _RETRY_KINDS},
        {"type": "string", "pattern": "^\\s*[a-z-]+\\s*\\(.*\\)\\s*$", "examples": ["fixed(base=1ms, max_wait=5s)"]},
        {"type": "object", "properties": _RETRY_FIELDS, "additionalProperties": False},
    ]
}


def parse_place(value: object) -> str:
    """The name of a backend or of a pair of backends, without spaces. Raises BadValue."""
    if not isinstance(value, str) or not value.strip():
        raise BadValue(f"{shown(value)} is not a backend", hint="use a name that is listed under backends")
    return "".join(value.split())


def strategy_schema() -> dict[str, Any]:
    """A strategy of the catalogue: its name, `name(argument=value)`, or a mapping of its name to its arguments."""
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
