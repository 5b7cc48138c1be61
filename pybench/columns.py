"""Every column of the records, once: its name, type and unit, how a cell's trials are summed up, and what it means.

The schema of `trials.parquet`, the summary, thresholds and the data dictionary of the manual are made from this table.
To add a column, add its entry here, and its value where a trial is recorded (`records/trial.py`).

Promises: the order is that of the files.
Does not do: axes of the matrix, which are columns too; see `pybench.matrix.axes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pybench.formats import Format

Type = Literal["string", "int64", "float64", "bool"]

CELL_COLUMNS: Mapping[str, Type] = {
    "cell": "string",
    "strategy": "string",
    "args": "string",
    "backend": "string",
    "server": "string",
    "concurrency": "int64",
    "keys": "int64",
    "hold": "string",
    "retry": "string",
}
"""Those that say which cell a row is of, before the columns of the matrix's further axes."""


class Over(StrEnum):
    """How the trials of a cell make one figure."""

    MEDIAN = "median"
    """Of the complete trials; n/a where not more than half of them have it, of quantiles."""
    SUM = "sum"
    """Of all trials, interrupted ones too."""
    MOST = "highest"
    """Of the complete trials."""
    QUANTILE = "median, or pooled"
    """Of the complete trials where most of them have it, else of the samples of all together."""
    OWN = "see its meaning"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `trials.parquet`, of `summary.csv`, or of both."""

    name: str
    type: Type
    meaning: str
    """For the data dictionary; n/a cases included."""
    unit: str = ""
    over: Over | None = None
    """None where the figures of several trials make none together."""
    in_summary: bool = False
    in_trials: bool = True
    format: Format = Format.TEXT
    """How every table writes its figures."""

    @property
    def is_number(self) -> bool:
        """Whether a threshold can be set on it, where the summary has it."""
        return self.type in ("int64", "float64")


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning)


def _count(name: str, meaning: str, *, over: Over | None = Over.SUM, summary: bool = False) -> Column:
    return Column(name, "int64", meaning, over=over, in_summary=summary, format=Format.COUNT)


def _figure(
    name: str,
    meaning: str,
    unit: str = "",
    *,
    over: Over = Over.MEDIAN,
    summary: bool = True,
    format: Format | None = None,
) -> Column:
    return Column(name, "float64", meaning, unit, over, summary, format=format or _FORMATS[unit])


def _summed_up(name: str, kind: Type, meaning: str, unit: str = "") -> Column:
    written = Format.COUNT if kind == "int64" else _FORMATS[unit] if kind == "float64" else Format.TEXT
    return Column(name, kind, meaning, unit, Over.OWN, in_summary=True, in_trials=False, format=written)


_FORMATS = {
    "1/s": Format.RATE,
    "µs": Format.TIME_US,
    "ms": Format.TIME_MS,
    "s": Format.TIME_S,
    "B": Format.BYTES,
    "": Format.RATIO,
}
"""By unit, where a column's entry names no other."""


def _quantiles(stem: str, meaning: str) -> Iterator[Column]:
    for part in ("p50", "p99", "p999"):
        yield _figure(f"{stem}_{part}_us", meaning, "µs", over=Over.QUANTILE)


def _phase(*names: str, of: str) -> Iterator[Column]:
    for name in names:
        yield _figure(name, of, "µs", over=Over.OWN, summary=False)


_WHOLE = ", in the whole trial, warm-up included"
_BOUND = (
    "where the quantile's rank falls among the acquires that still waited when the window closed: a bound that it is "
    "not below; n/a otherwise"
)
_POOLED = "whether the quantile is that of the samples of all trials together, because single trials have too few"

_IDENTITY = (
    _text("exclusion", "what the strategy promises: `nothing`, `while-nobody-outlives` (its lease) or `always`"),
    _text("promises", "what it promises besides: `fence`, `fifo`, `wake-up`, or nothing"),
    _text(
        "judged_by", "what the verdict goes by: `belief`, `effects` (what was written) or `guard` (the row's answer)"
    ),
    _count("trial", "number of the trial, from 1", over=None),
    _count("block", "block of the run's order, from 1: each holds every cell once", over=None),
    _text("started_at", "UTC, ISO 8601"),
    _text("status", "`complete`, `interrupted` or `disturbed`"),
    _text("disturbance", "what befell the servers of a disturbed trial; n/a in others"),
)

_SPEED = (
    _summed_up("trials", "int64", "complete trials of the cell"),
    _figure("grants_per_s", "grants in the window / its length", "1/s"),
    _summed_up("grants_per_s_low", "float64", "lower end of the interval of the median: one of the trials", "1/s"),
    _summed_up("grants_per_s_high", "float64", "upper end of that interval", "1/s"),
    _figure(
        "safe_grants_per_s",
        "grants/s where the verdict is SAFE, 0 where it is UNSAFE, n/a otherwise",
        "1/s",
        over=Over.OWN,
    ),
    *_quantiles("acquire", "response, from due to granted, of acquires that were due in the window"),
    *(_figure(f"acquire_{part}_at_least_us", _BOUND, "µs", over=Over.QUANTILE) for part in ("p50", "p99", "p999")),
    *(_summed_up(f"acquire_{part}_pooled", "bool", _POOLED) for part in ("p50", "p99", "p999")),
    *_phase("service_p50_us", "service_p99_us", of="service: from the first send of an acquire to its grant"),
    *_phase("queue_p99_us", of="queue: from due to the first send"),
    *_phase("hold_p50_us", of="hold: from grant to the send of the release"),
    *_phase("release_p50_us", "release_p99_us", of="release: from its send to its reply"),
    *_phase("lag_p99_us", of="send delay of the load generator: from when it meant to send until it did"),
    _figure(
        "handoff_p50_us",
        "hand-off: from the release of a key to its next grant, where somebody waited",
        "µs",
        over=Over.QUANTILE,
    ),
    _summed_up("handoff_p50_pooled", "bool", _POOLED),
)

_COST = (
    _figure("attempts_per_grant", "attempts, also of acquires that failed / grants"),
    _figure("commands_per_grant", "commands sent / grants"),
    _figure("bytes_per_grant", "bytes sent and received / grants", "B", summary=False),
    _figure("contention_rate", "refused attempts / attempts", format=Format.SHARE),
    _figure(
        "split_votes_per_1000", "attempts that got some servers while no client could get a majority, of each 1,000"
    ),
    _figure("renewals_per_grant", "renewals of a lease in the window / grants"),
    _figure(
        "utilisation",
        "sum of the nominal holds / (window x keys x permits), at most 1; n/a where holds overlapped, "
        "readers shared a key, or effects judge",
        format=Format.SHARE,
    ),
    _figure(
        "efficiency",
        "grants/s over the ceiling of one key, permits / (hold + one idle call), at most 1; n/a for "
        "several keys and where `utilisation` is",
        summary=False,
        format=Format.SHARE,
    ),
    _figure(
        "client_cpu_us_per_grant", "CPU of the load threads, and of the checker's where it has its own / grants", "µs"
    ),
    _figure(
        "server_cpu_us_per_grant",
        "CPU of all processes of the servers, replicas too, from before the trial to after "
        "it / all grants of the trial",
        "µs",
    ),
    _figure("server_cpu_share", "the same / wall time: 1 is one core", summary=False, format=Format.SHARE),
)

_FAIRNESS = (
    _figure(
        "jain",
        "Jain's index over the clients' grants: 1 when all got the same number, 1/n when one got all",
        format=Format.INDEX,
    ),
    _figure(
        "clients_served",
        "by Little's law, grants/s x (mean response + mean hold + mean release + mean think), at most `concurrency`: "
        "how many clients were at a time in a cycle that ended with a grant; closed loop only",
    ),
    _count("starved_clients", "clients that asked and had no grant in the window", over=Over.MOST, summary=True),
    _figure(
        "longest_wait_us",
        "the longest wait of a client or a queued arrival, granted or not, from when it was due",
        "µs",
        over=Over.MOST,
    ),
    _figure("wait_std_us", "standard deviation of the clients' mean responses", "µs", summary=False),
    _count("longest_streak", "most grants in a row of one key to one client while another waited", over=Over.MEDIAN),
    _count("overtakes", "grants made while a client waited that had sent earlier", over=Over.MEDIAN),
)

_OUTCOMES = (
    _count("grants", "grants in the window", summary=True),
    _count("contended_grants", "grants in the window that a rival could have overlapped", summary=True),
    _count("refused", "acquires that ended without a grant because another held the lock"),
    _count("timeouts", "acquires that ended because `max_wait` had passed"),
    _count("errors", "acquires that ended with an error reply"),
    _count("lost", "holds that ended after their lease, or whose release was answered that nothing was held"),
    _count("unknown", "acquires whose reply was lost: the lock may have been taken"),
    _count("unfinished", "acquires that still waited when the window closed"),
    _count("error_reply_count", f"error replies of the servers{_WHOLE}"),
    _text("error_replies", "JSON: the error replies by phase and code, see [error replies](#error-replies)"),
)

_VIOLATIONS = (
    _count("violations", f"the violations of all kinds{_WHOLE}", summary=True),
    _count("double_grants", f"grants of a key that another still held by right{_WHOLE}"),
    _count("double_grants_after_overrun", "double grants after an earlier holder had outlived its lease"),
    _count("sessions_lost", f"grants of a key whose holder had not yet learned that its session had ended{_WHOLE}"),
    _count("lease_overruns", f"overlaps with work that went on past its lease{_WHOLE}"),
    _count("stale_fences", f"grants with a fence that is not above an earlier one{_WHOLE}"),
    _count(
        "fifo_inversions",
        f"grants to a client while one waited whose place in the queue was acknowledged before "
        f"that client asked{_WHOLE}; n/a where no place is acknowledged, there 0 in the summary",
        summary=True,
    ),
    _count("stalls", f"keys that were wanted and free for longer than anything explains{_WHOLE}"),
    _count(
        "starved", "clients that waited for at least half of the window, to its end, and were passed at least 20 times"
    ),
    _count("denied_releases", f'releases inside their lease that were answered "not held"{_WHOLE}'),
    _count("abandoned", "clients that had not come to rest when the trial ended"),
    _count("left_over_keys", "keys that were left on the servers after the trial"),
    _count("wake_ups", f"messages of releases that reached a client that waited{_WHOLE}"),
    _count("missed_wake_ups", "contended grants of a trial in which no message woke anybody though all should have"),
    _count("findings", "orders of events that the checker holds for impossible: such a trial is UNDECIDED"),
    _count(
        "lease_freed_grants",
        "grants in the window that came only because the lease of an earlier holder had ended, "
        "although that one had released",
        summary=True,
    ),
    _count("outlived", f"holders that released after their lease{_WHOLE}"),
    _count("lapsed", f"holders that were told that their lock is lost{_WHOLE}", summary=True),
    _figure(
        "outlived_share",
        "share of the holds whose release was sent after the end of their lease, or that the end of "
        "the trial cut short after it; n/a without a lease",
        format=Format.SHARE,
    ),
    _count("renewals", "renewals of a lease in the window"),
    _count("split_votes", "attempts in the window that got some servers while no client could get a majority"),
    _count(
        "conflicts",
        "attempts in the window that the database ended because of what others did: a changed version, a "
        "serialization failure, a deadlock",
        summary=True,
    ),
)

_EFFECTS = (
    _count("acknowledged_writes", f"writes that were acknowledged{_WHOLE}; n/a where belief judges"),
    _count("unknown_writes", f"writes of which no answer came, or an error{_WHOLE}; n/a where belief judges"),
    _count(
        "stale_writes",
        f"writes that the guard refused because a later holder had come{_WHOLE}; n/a where belief "
        "judges, there 0 in the summary",
        summary=True,
    ),
    _count("final_value", "what all rows held together after the trial; n/a where nobody read it", over=None),
    _count("lost_updates", "acknowledged writes that the rows lacked after the trial"),
    _count("surplus_updates", "writes that the rows had too many"),
)

_RUN = (
    _count("arrivals", "arrivals in the window; open loop only"),
    _count("drops", "arrivals that were dropped because `max_in_flight` was reached; open loop only"),
    _count("reconnects", "connections that broke and were opened again"),
    _count("lost_calls", "calls that no reply came to"),
    _figure(
        "orphan_s",
        f"how long keys may have lived of which no client knew: a connection broke before the reply{_WHOLE}",
        "s",
        over=Over.SUM,
    ),
    _figure("window_s", "length of the window", "s", summary=False),
    _figure(
        "longest_stall_ms",
        "longest time in the window in which the load generator did not run though it meant to",
        "ms",
        over=Over.MOST,
        summary=False,
    ),
    _count(
        "throttled_periods",
        "periods in which a CPU quota of the control group stopped processes; n/a where nothing tells",
    ),
    _figure("throttled_ms", "how long it stopped them", "ms", over=Over.SUM, summary=False),
    Column(
        "shares_core",
        "bool",
        "whether a given server on this machine ran on the core of a load thread when the trial "
        "ended; n/a where nobody can tell",
    ),
    _text(
        "commandstats", "JSON: how often the servers, without replicas, carried out each command, other clients' too"
    ),
    _text(
        "database_figures",
        "JSON: what the database counted and showed, see [database figures](#database-figures); n/a without one",
    ),
)

_VERDICT = (
    _figure(
        "bound_per_million",
        "with 95 % confidence at most so many violations per million contended grants: the rule "
        "of three; of SAFE trials and cells only",
        over=Over.OWN,
        format=Format.PER_MILLION,
    ),
    Column(
        "verdict",
        "string",
        "SAFE, UNSAFE, UNDECIDED or VOID; of a cell the worst of its trials",
        over=Over.OWN,
        in_summary=True,
    ),
    Column("promise_broken", "bool", "whether the strategy broke what it promises"),
    _text("first_finding", "the first finding, in words"),
    Column(
        "judged_by_probe", "bool", "whether the verdict is that of the lock's probe", over=Over.OWN, in_summary=True
    ),
    _text("probe_reason", "what the probe saw, where it decides"),
)

GROUPS = {
    "The trial": _IDENTITY,
    "Speed": _SPEED,
    "Cost": _COST,
    "Fairness": _FAIRNESS,
    "Outcomes": _OUTCOMES,
    "Violations": _VIOLATIONS,
    "Effects": _EFFECTS,
    "The run": _RUN,
    "Verdict": _VERDICT,
}
COLUMNS = {column.name: column for group in GROUPS.values() for column in group}
"""By name, in the order of the files."""

SUMMARY_FIGURES = tuple(column.name for column in COLUMNS.values() if column.in_summary)
EFFECT_COLUMNS = tuple(column.name for column in _EFFECTS)
"""Of what was written; n/a where belief judges."""


def summed(over: Over, *, in_summary: bool) -> tuple[str, ...]:
    """The columns that are summed up so, those of the summary or those that it has no room for."""
    return tuple(column.name for column in COLUMNS.values() if column.over is over and column.in_summary is in_summary)
