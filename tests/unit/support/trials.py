"""Trials made by hand, in the shape in which the core returns them."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from pybench.matrix.cells import Cell
from pybench.matrix.values import Distribution
from pybench.records import TrialRecord, trial_record
from pybench.strategies import CATALOGUE

SECOND = 1_000_000_000
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CAUGHT = [{"backend": "redis", "caught": True}]
MISSED = [{"backend": "redis", "caught": False}]


def histogram(values_ns) -> bytes:
    recorded = HdrHistogram(1, 3_600 * SECOND, 3)
    for value in values_ns:
        recorded.record_value(value)
    return b64decode(recorded.encode())


GRANT_TIMES = range(100_000, 300_000, 100)
ROWS = [
    SimpleNamespace(phase=phase, outcome="granted", count=len(GRANT_TIMES), hdr=histogram(GRANT_TIMES))
    for phase in ("queue", "service", "response", "hold", "release", "handoff", "send_delay")
]


def totals(**counts: int) -> dict[str, int]:
    nothing = dict.fromkeys(
        (
            *(
                "attempts",
                "refused_attempts",
                "refused",
                "timeouts",
                "errors",
                "lost",
                "unknown",
                "unfinished",
                "longest_stall_ns",
            ),
            *(
                "commands",
                "bytes_out",
                "bytes_in",
                "writes",
                "reads",
                "arrivals",
                "drops",
                "client_cpu_ns",
                "overtakes",
            ),
            *("longest_streak", "longest_wait_ns", "nominal_hold_ns", "all_commands", "double_grants"),
            *("double_grants_after_overrun", "lease_overruns", "outlived", "reconnects", "lost_calls", "abandoned"),
            *("no_quorum", "renewals", "lapsed", "stale_fences", "fifo_inversions", "orphan_ns", "sessions_lost"),
            *("stalls", "starved", "denied_releases", "findings", "lease_freed_grants"),
            *("conflicts", "acknowledged_writes", "unknown_writes", "stale_writes"),
            *("sold_out", "refused_writes", "abandoned_works", "stale_writes_accepted"),
        ),
        0,
    )
    grants = counts.get("grants", 2_000)
    usual = {
        "began_ns": 0,
        "window_ns": 2 * SECOND,
        "grants": grants,
        "contended_grants": grants // 2,
        "all_grants": grants,
    }
    return {**nothing, **usual, **counts}


@dataclass
class FakeResult:
    """What `_core.TrialResult` has."""

    totals: dict[str, int] = field(default_factory=totals)
    stopped: bool = False
    jain: float | None = 1.0
    histograms: list[Any] = field(default_factory=lambda: ROWS)
    timeline: dict[str, Any] = field(
        default_factory=lambda: {
            "start_ns": np.array([0, 100_000_000], dtype=np.uint64),
            "grants": np.array([1_500, 500], dtype=np.uint64),
            "refused": np.array([0, 3], dtype=np.uint64),
            "errors": np.array([0, 0], dtype=np.uint64),
            "p50_ns": np.array([200_000, 0], dtype=np.uint64),
            "p99_ns": np.array([300_000, 0], dtype=np.uint64),
        }
    )
    clients: dict[str, Any] = field(
        default_factory=lambda: {
            "grants": np.array([1_000, 1_000], dtype=np.uint64),
            "attempts": np.array([1_000, 1_000], dtype=np.uint64),
            "refused": np.array([0, 3], dtype=np.uint64),
            "errors": np.array([0, 0], dtype=np.uint64),
            "waits": np.array([1_000, 999], dtype=np.uint64),
            "wait_sum_ns": np.array([1_000_000, 3_000_000], dtype=np.uint64),
            "wait_max_ns": np.array([9_000, 9_000], dtype=np.uint64),
            "wait_p50_ns": np.array([900, 2_900], dtype=np.uint64),
            "wait_p90_ns": np.array([2_000, 4_000], dtype=np.uint64),
            "wait_p99_ns": np.array([8_000, 8_500], dtype=np.uint64),
        }
    )
    violations: list[Any] = field(default_factory=list)
    finding: str | None = None
    errors: list[Any] = field(default_factory=list)
    writes: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, Any] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    periods: list[Any] = field(default_factory=list)
    faults: Any = None


def violation(**fields: object) -> dict[str, Any]:
    usual = {
        "kind": "double-grant",
        "key": "pybench:669f8291:18:{1}",
        "at_ns": 12_031_000_000,
        "overlap_ns": 35_200_000,
        "first_client": 3,
        "first_granted_ns": 11_031_000_000,
        "first_until_ns": 13_971_000_000,
        "first_fence": None,
        "first_ended_ns": 12_066_200_000,
        "second_client": 7,
        "second_granted_ns": 12_031_000_000,
        "second_until_ns": 14_971_000_000,
        "second_fence": None,
        "second_ended_ns": None,
    }
    return {**usual, **fields}


def cell(strategy: str = "mutex", **fields: object) -> Cell:
    usual = {"args": (), "concurrency": 2, "hold": Distribution("fixed", (1_000_000,))}
    named = " ".join(f"{name}={value}" for name, value in fields.items())
    return Cell(id=f"{strategy} {named}".strip(), strategy=strategy, **{**usual, **fields})


def record(
    of: Cell | None = None, *, trial: int = 1, result: FakeResult | None = None, **fields: object
) -> TrialRecord:
    of = of or cell()
    server = SimpleNamespace(label="redis 8.0 (path)")
    usual = {"block": trial, "started_at": NOON, "servers": [server], "server_cpu_us": None}
    usual |= {"strategy": CATALOGUE[of.strategy]}
    return trial_record(of, trial=trial, result=result or FakeResult(), **{**usual, **fields})


def manifest(**fields: object) -> dict[str, Any]:
    return {
        "schema": 5,
        "status": "running",
        "name": "run",
        "started_at": "2026-01-01T12:00:00+00:00",
        "finished_at": None,
        "seed": 1,
        "matrix": {"given": None, "expanded": {"backends": {}}},
        "cells": [],
        "order": [],
        "servers": [],
        "control": CAUGHT,
        "command": [],
        "versions": {},
        "machine": {},
        **fields,
    }
