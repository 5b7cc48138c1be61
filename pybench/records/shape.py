"""The required entries of a manifest and their types.

Promises: a manifest that passes has all entries that readers use, so an edited or truncated file gives a clear error.
Other entries are not checked, since later versions add some.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError


class _Cell(BaseModel):
    id: str


class _Control(BaseModel):
    backend: str
    caught: bool


class _Probe(BaseModel):
    strategy: str
    args: str
    backend: str
    verdict: Literal["SAFE", "UNSAFE", "UNDECIDED", "VOID"]
    promise_broken: bool
    reason: str


class _Baseline(BaseModel):
    backend: str
    appendfsync: str
    poll: str
    round_trip_us: float | None
    round_trips_us: list[float | None] = Field(default_factory=list)
    client_cpu_us_per_grant: float | None


class _Server(BaseModel):
    label: str
    source: str
    address: str | None


class _Placement(BaseModel):
    drivers: list[int]
    servers: list[int]


class _Expanded(BaseModel):
    backends: dict[str, dict[str, Any]]


class _Matrix(BaseModel):
    given: str | None
    expanded: _Expanded


class _Manifest(BaseModel):
    status: Literal["running", "complete", "interrupted"]
    name: str
    started_at: datetime
    finished_at: datetime | None
    seed: int
    matrix: _Matrix
    cells: list[_Cell]
    order: list[list[int]]
    servers: list[_Server]
    placement: _Placement | None = None
    control: list[_Control]
    probes: list[_Probe] = Field(default_factory=list)
    baseline: list[_Baseline] = Field(default_factory=list)
    command: list[str]
    versions: dict[str, Any]
    machine: dict[str, Any]
    key_prefix: str | None = Field(default=None, pattern=r"^pybench:[0-9a-f]{8}:$")
    """A resumed run removes all keys with this prefix, so only a prefix of pybench is accepted."""


def wrong(manifest: Mapping[str, Any]) -> str | None:
    """The first problem of `manifest` in words; None without a problem."""
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place} is missing" if first["type"] == "missing" else f"{place}: {first['msg'].lower()}"
    return None
