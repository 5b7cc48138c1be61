"""The record of one trial: the columns of `trials.parquet`, computed from the counts of the core.

Promises: a figure that is not available is None, never 0. Figures are not rounded.
Does not do: writing; see `folder`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pybench import _core
from pybench.analysis import censored_quantiles, error_replies, histograms, stats, verdicts, violation_sentences
from pybench.analysis.censored_quantiles import Waits
from pybench.analysis.disturbances import DISTURBED, counted, proven
from pybench.analysis.guard_effects import guard_effects
from pybench.analysis.steadiness import steadiness_columns
from pybench.analysis.terms import Terms
from pybench.analysis.ttl_advice import holds, outlived_share
from pybench.columns import EFFECT_COLUMNS
from pybench.quota import Throttled
from pybench.records import detail_rows
from pybench.records.fault_rows import Carried, fault_columns, fault_rows
from pybench.records.schema import SCHEMA
from pybench.records.served import served_columns, wake_up_columns
from pybench.records.telemetry import Watched, telemetry_rows
from pybench.records.use import use_columns
from pybench.strategies import CATALOGUE, Judge, Lease

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.disturbances import Trouble
    from pybench.analysis.outcome import Counted, Outcome
    from pybench.core_results import Violation
    from pybench.matrix.cells import Cell
    from pybench.strategies import Strategy

OF_GRANTS = "granted"
UNFINISHED = "waiting"

NO_LIMIT: dict[str, Any] = dict.fromkeys(("limit_per_s", "limit_high_per_s", "limited_by", "search_probes"))
"""The columns of a trial without a search; `running.searching` sets those of a search."""
NO_PROBE: dict[str, Any] = {"judged_by_probe": None, "probe_reason": None}
"""The columns of the probe in a new record; the verdict is computed again when the record is read."""


class Labelled(Protocol):
    """A server with a label for the record."""

    @property
    def label(self) -> str:
        """The product and version of the server."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """The full record of a trial. Rows of all files but `trials.parquet` are without cell and trial."""

    cell: str
    trial: int
    row: dict[str, Any]
    """The columns of `trials.parquet`."""
    latency: list[dict[str, Any]]
    timeline: list[dict[str, Any]]
    violations: list[dict[str, Any]]
    clients: list[dict[str, Any]] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    telemetry: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)


def trial_record(
    cell: Cell,
    *,
    trial: int,
    block: int,
    started_at: datetime,
    result: Outcome,
    servers: Sequence[Labelled],
    server_cpu_us: float | None,
    strategy: Strategy,
    server_calls: Mapping[str, int] | None = None,
    database_figures: Mapping[str, Any] | None = None,
    final_values: NDArray[Any] | None = None,
    left_over_keys: int | None = None,
    shares_core: bool | None = None,
    wall_s: float | None = None,
    round_trip_us: float | None = None,
    trouble: Trouble | None = None,
    watched: Watched | None = None,
    throttled: Throttled = Throttled(),  # noqa: B008 - it cannot change
    carried: Sequence[Carried] = (),
    guard_server: Labelled | None = None,
) -> TrialRecord:
    """The record of one trial.

    `server_cpu_us` is the CPU time of all processes of `servers` during `wall_s`, which begins before the trial and
    ends after it. `server_calls` and `database_figures` are their counts in this time, including those of other
    clients. `final_values` has the final value of each row. `left_over_keys` is the number of keys left after all
    releases, and `shares_core` says whether a given server ran on the core of a load thread; both are None where
    unknown. `round_trip_us`, the time of one idle call, gives the efficiency. Of `trouble` the record keeps the text,
    and the violations that count in spite of it. `watched` are samples of the servers and of this machine,
    `carried` what became of the faults. `guard_server` is the server of the guarded resource, if the cell has one.
    """
    totals, findings = counted(result.totals, result.violations, trouble)
    effects = _effects(cell, result, strategy.judged_by, final_values)
    # A stopped trial gives its clients no time to finish.
    left = {"abandoned": 0 if result.stopped else totals["abandoned"], "left_over_keys": left_over_keys}
    woken = wake_up_columns(cell, result, strategy)
    counts, terms = {**totals, **effects, **left, **woken}, Terms.of(strategy, cell)
    status = "interrupted" if result.stopped else "complete" if trouble is None else DISTURBED
    judgement = proven(verdicts.judge(counts, terms, control_caught=True), status)
    grants_per_s = _per(totals["grants"], totals["window_ns"] / 1e9)
    row = {
        "cell": cell.id,
        "server": ", ".join(dict.fromkeys(server.label for server in servers)),
        **(cell.columns() | {"rtt_ms": cell.rtt.mean_ms(strategy.servers(cell.args))}),
        **terms.columns(),
        "trial": trial,
        "block": block,
        "started_at": started_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        "status": status,
        "disturbance": None if trouble is None else trouble.error.message,
        "grants_per_s": grants_per_s,
        **judgement_columns(judgement, grants_per_s),
        **NO_PROBE,
        **_latencies(result.histograms),
        **(NO_LIMIT | steadiness_columns(cell, result) | _costs(totals, server_cpu_us, wall_s)),
        **_counted_by_servers(server_calls, database_figures, totals),
        **(_error_replies(result, servers, guard_server) | throttled.columns()),
        **_fairness(totals, result, strategy),
        **(served_columns(cell, result) | use_columns(cell, strategy, totals, round_trip_us)),
        **_counts(cell, strategy, result, totals),
        **(left | woken | effects | {"shares_core": shares_core}),
        **fault_columns(carried, result, one_holder=_has_one_holder(cell, strategy)),
        "violations": verdicts.violations(counts, terms),
        "first_finding": result.finding,
    }
    rows = fault_rows(carried, result.totals.get("window_start_ns", 0))
    record = TrialRecord(cell.id, trial, row, [], [], violation_rows(findings, terms, counts), faults=rows)
    return record if status == DISTURBED else _with_rows(record, result, watched)


def _with_rows(record: TrialRecord, result: Outcome, watched: Watched | None) -> TrialRecord:
    """`record` with the rows that a disturbed trial does not have."""
    return replace(
        record,
        latency=_latency_rows(result.histograms),
        timeline=_timeline(result.timeline),
        clients=detail_rows.client_rows(result.clients),
        commands=detail_rows.command_rows(result.commands),
        nodes=detail_rows.node_rows(result.nodes),
        telemetry=[] if watched is None else telemetry_rows(watched, result),
    )


def _latency_rows(rows: Sequence[Counted]) -> list[dict[str, Any]]:
    return [{"phase": row.phase, "outcome": row.outcome, "count": row.count, "hdr": row.hdr} for row in rows]


def _error_replies(result: Outcome, servers: Sequence[Labelled], guard_server: Labelled | None) -> dict[str, Any]:
    guard = None if guard_server is None else guard_server.label
    return {
        error_replies.COLUMN: error_replies.encode(result.errors, [server.label for server in servers], guard),
        error_replies.COUNT_COLUMN: sum(row["count"] for row in result.errors),
    }


def judgement_columns(judgement: verdicts.Judgement, grants_per_s: float | None) -> dict[str, Any]:
    """The columns of a verdict, and of the figures that depend on it."""
    return {
        "safe_grants_per_s": verdicts.safe_rate(judgement.verdict, grants_per_s),
        "bound_per_million": judgement.bound_per_million,
        "verdict": judgement.verdict.value,
        "promise_broken": judgement.promise_broken,
    }


def _counted_by_servers(
    calls: Mapping[str, int] | None, figures: Mapping[str, Any] | None, totals: Mapping[str, int]
) -> dict[str, str | None]:
    """The commands of Redis, and the counts of a database together with the grants of the whole trial."""
    database = None if figures is None else {**figures, "grants": totals["all_grants"]}
    return {
        "commandstats": None if calls is None else json.dumps(dict(calls), sort_keys=True),
        "database_figures": None if database is None else json.dumps(database, sort_keys=True),
    }


def _effects(cell: Cell, result: Outcome, judged_by: Judge, final_values: NDArray[Any] | None) -> dict[str, int | None]:
    """The writes of a trial and their results: `EFFECT_COLUMNS`."""
    if cell.guard:
        is_atomic = CATALOGUE[cell.strategy].needs_guard
        found = guard_effects(cell.guard, result.totals, result.writes, final_values, is_atomic=is_atomic)
        return {**dict.fromkeys(EFFECT_COLUMNS), **found}
    if judged_by in (Judge.BELIEF, Judge.PART):
        return dict.fromkeys(EFFECT_COLUMNS)
    written = {name: result.totals[name] for name in ("acknowledged_writes", "unknown_writes", "stale_writes")}
    if final_values is None:
        return {**dict.fromkeys(EFFECT_COLUMNS), **written}
    lost, surplus, _ = _core.judge_rows(result.writes["acknowledged"], result.writes["unknown"], final_values)
    return {
        **dict.fromkeys(EFFECT_COLUMNS),
        **written,
        "final_value": int(final_values.sum()),
        "lost_updates": lost,
        "surplus_updates": surplus,
    }


def violation_rows(findings: Sequence[Violation], terms: Terms, counts: verdicts.Counts) -> list[dict[str, Any]]:
    """A row with a sentence for each violation; for kinds that are only counted, one row for each kind."""
    rows: list[dict[str, Any]] = [
        {"schema": SCHEMA, "sentence": violation_sentences.sentence(violation), **violation}
        for violation in findings
        if verdicts.is_violation(violation, terms)
    ]
    for kind in verdicts.UNSEEN:
        count = counts[verdicts.KINDS[kind].column]
        if count:
            rows.append({"schema": SCHEMA, "sentence": violation_sentences.count_sentence(kind, count), "kind": kind})
    return rows


def _latencies(rows: Sequence[Counted]) -> dict[str, float | None]:
    # Queue, service and response are those of grants; the other phases are taken whatever the outcome.
    queue = _buckets(rows, "queue", OF_GRANTS)
    response, service = (
        Waits(_buckets(rows, phase, OF_GRANTS), _buckets(rows, phase, UNFINISHED)) for phase in ("response", "service")
    )
    acquires = {name: response.quantile_us(q) for name, q in censored_quantiles.ACQUIRE.items()}
    whole = {phase: _buckets(rows, phase, None) for phase in ("release", "handoff", "send_delay")}
    simple = {
        "queue_p99_us": (queue, 0.99),
        "release_p50_us": (whole["release"], 0.5),
        "release_p99_us": (whole["release"], 0.99),
        "send_delay_p99_us": (whole["send_delay"], 0.99),
        "handoff_p50_us": (whole["handoff"], 0.5),
    }
    return {
        **{column: figure for name, found in acquires.items() for column, figure in found.columns(name).items()},
        "service_p50_us": service.quantile_us(0.5).value,
        "service_p99_us": service.quantile_us(0.99).value,
        "hold_p50_us": Waits(*holds(rows)).quantile_us(0.5).value,
        **{name: _us(stats.quantile(*buckets, q)) for name, (buckets, q) in simple.items()},
    }


def _buckets(rows: Sequence[Counted], phase: str, outcome: str | None) -> histograms.Buckets:
    return histograms.merged(
        [row.hdr for row in rows if row.phase == phase and (outcome is None or row.outcome == outcome)]
    )


def _costs(totals: Mapping[str, int], server_cpu_us: float | None, wall_s: float | None) -> dict[str, float | None]:
    grants = totals["grants"]
    known = server_cpu_us is not None
    return {
        "attempts_per_grant": _per(totals["attempts"], grants),
        "commands_per_grant": _per(totals["commands"], grants),
        "bytes_per_grant": _per(totals["bytes_out"] + totals["bytes_in"], grants),
        "contention_rate": _per(totals["refused_attempts"], totals["attempts"]),
        "no_quorum_per_1000": _per(totals["no_quorum"] * 1e3, totals["attempts"]),
        "renewals_per_grant": _per(totals["renewals"], grants),
        "client_cpu_us_per_grant": _per(totals["client_cpu_ns"] / 1e3, grants),
        # The CPU time covers the whole trial, so it is divided by all grants of the trial.
        "server_cpu_us_per_grant": _per(server_cpu_us, totals["all_grants"]) if known else None,
        "server_cpu_share": _per(server_cpu_us, wall_s * 1e6) if known and wall_s is not None else None,
    }


def _has_one_holder(cell: Cell, strategy: Strategy) -> bool:
    """Whether a key has one holder at a time, so that nobody is granted it beside a client that died."""
    return not strategy.holds_nothing and strategy.permits(cell.args) == 1 and not cell.read_share


def _fairness(totals: Mapping[str, int], result: Outcome, strategy: Strategy) -> dict[str, Any]:
    clients = result.clients
    served = clients["grants"] > 0
    waits_ns = clients["wait_sum_ns"][served] / clients["grants"][served]
    granted = totals["grants"] > 0
    # A lock that excludes nobody has no queue, so there is nothing to overtake.
    queued = strategy.judged_by is not Judge.EFFECTS
    return {
        "jain": result.jain,
        "wait_std_us": float(np.std(waits_ns)) / 1e3 if len(waits_ns) else None,
        "longest_wait_us": _per(totals.get("longest_wait_ns"), 1e3) if granted else None,
        "longest_streak": totals["longest_streak"] if queued else None,
        "overtakes": totals["overtakes"] if queued else None,
        # A lock that acknowledges no place in a queue has no inversions.
        "fifo_inversions": totals["fifo_inversions"] if strategy.acknowledges_places else None,
    }


def _counts(cell: Cell, strategy: Strategy, result: Outcome, totals: Mapping[str, int]) -> dict[str, Any]:
    is_open = cell.rate_per_s is not None
    as_counted = (
        *("grants", "contended_grants", "refused", "timeouts", "errors", "lost", "unknown"),
        "unfinished",
        *("double_grants", "double_grants_after_overrun", "sessions_lost", "lease_overruns"),
        *("stalls", "starved", "denied_releases", "findings", "lease_freed_grants"),
        *("stale_fences", "outlived", "lapsed", "renewals", "no_quorum", "conflicts", "reconnects", "lost_calls"),
    )
    return {
        **{name: totals[name] for name in as_counted},
        "outlived_share": None if strategy.lease is Lease.NONE else outlived_share(result.histograms),
        "orphan_s": totals["orphan_ns"] / 1e9,
        "arrivals": totals["arrivals"] if is_open else None,
        "drops": totals["drops"] if is_open else None,
        "window_s": totals["window_ns"] / 1e9,
        "longest_stall_ms": _per(totals.get("longest_stall_ns"), 1e6),
    }


def _timeline(columns: Mapping[str, NDArray[np.uint64 | np.float64]]) -> list[dict[str, Any]]:
    counts = ("start_ns", "grants", "refused", "errors")
    quantiles = (("p50_ns", 0.5), ("p99_ns", 0.99))
    rows = []
    for step in range(len(columns["start_ns"])):
        row: dict[str, Any] = {name: int(columns[name][step]) for name in counts}
        for name, q in quantiles:
            row[name] = int(columns[name][step]) if stats.enough(row["grants"], q) else None
        # Only a load in stages differs from step to step.
        row["offered"] = float(columns["offered"][step]) if "offered" in columns else None
        rows.append(row)
    return rows


def _per(amount: float | None, of: float) -> float | None:
    return amount / of if amount is not None and of > 0 else None


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3
