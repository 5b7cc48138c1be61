"""Every column of the records: its name, type, unit and meaning, and how the trials of a cell are summarised.

The schema of `trials.parquet`, the summary, the thresholds and the data dictionary of the manual are made from this
table. To add a column, add its entry here, and its value in `records/trial.py`.

Promises: the order is that of the files.
Does not do: axes of the matrix, which are columns, too; see `pybench.matrix.cells`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Type = Literal["string", "int64", "float64", "bool"]


class Over(StrEnum):
    """How the figures of a cell's trials become one figure."""

    MEDIAN = "median"
    """The median over complete trials; a quantile is n/a unless more than half of them have it."""
    SUM = "sum"
    """The sum over all trials, including interrupted ones."""
    MOST = "highest"
    """The highest value over complete trials."""
    QUANTILE = "median, or pooled"
    """The median over complete trials where most of them have the quantile, else that of all samples together."""
    OWN = "see its meaning"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `trials.parquet`, of `summary.csv`, or of both."""

    name: str
    type: Type
    meaning: str
    """The text for the data dictionary, including when the figure is n/a."""
    unit: str = ""
    over: Over | None = None
    """None where the figures of several trials cannot be combined."""
    in_summary: bool = False
    in_trials: bool = True

    @property
    def is_number(self) -> bool:
        """Whether the column is numeric, so that a threshold can use it if the summary has it."""
        return self.type in ("int64", "float64")


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning)


def _count(name: str, meaning: str, *, summary: bool = False) -> Column:
    return Column(name, "int64", meaning, over=Over.SUM, in_summary=summary)


def _figure(name: str, meaning: str, unit: str = "", *, over: Over = Over.MEDIAN, summary: bool = True) -> Column:
    return Column(name, "float64", meaning, unit, over, summary)


def _summed_up(name: str, kind: Type, meaning: str, unit: str = "") -> Column:
    return Column(name, kind, meaning, unit, Over.OWN, in_summary=True, in_trials=False)


def _quantiles(stem: str, meaning: str) -> Iterator[Column]:
    for part in ("p50", "p99", "p999"):
        yield _figure(f"{stem}_{part}_us", meaning, "µs", over=Over.QUANTILE)


def _phase(*names: str, of: str) -> Iterator[Column]:
    for name in names:
        yield _figure(name, of, "µs", over=Over.OWN, summary=False)


_WHOLE = ", in the whole trial including the warm-up"
_BOUND = (
    "lower bound of the quantile, where its rank falls among acquires that still waited when the window closed; n/a "
    "otherwise"
)
_POOLED = (
    "whether the quantile is that of the samples of all trials together, because single trials have too few samples"
)

_IDENTITY = (
    _text(
        "exclusion",
        "when the strategy promises exclusion: never (`nothing`), while no holder outlives its lease "
        "(`while-nobody-outlives`), or `always`",
    ),
    _text("promises", "further promises of the strategy: `fence`, `fifo`, `wake-up`, or none"),
    _text(
        "judged_by",
        "what judges the lock: `belief` (of the holders), `effects` (final values of the writes) or `guard` (refusals "
        "of stale writes)",
    ),
    Column("trial", "int64", "number of the trial, from 1"),
    Column("block", "int64", "block of the run's order, from 1; a block has every cell once"),
    _text("started_at", "start of the trial: UTC, ISO 8601"),
    _text("status", "`complete`, `interrupted` or `disturbed`"),
    _text("disturbance", "the disturbance of the servers in a disturbed trial; n/a in others"),
)

_SPEED = (
    _summed_up("trials", "int64", "complete trials of the cell"),
    _figure("grants_per_s", "grants in the window / length of the window", "1/s"),
    _summed_up("grants_per_s_low", "float64", "lower end of the interval of the median; the value of one trial", "1/s"),
    _summed_up(
        "grants_per_s_high", "float64", "upper end of the interval of the median; the value of one trial", "1/s"
    ),
    _figure(
        "safe_grants_per_s",
        "grants/s where the verdict is SAFE, 0 where it is UNSAFE, n/a otherwise",
        "1/s",
        over=Over.OWN,
    ),
    *_quantiles("acquire", "response, from the due time to the grant, of acquires due in the window"),
    *(_figure(f"acquire_{part}_at_least_us", _BOUND, "µs", over=Over.QUANTILE) for part in ("p50", "p99", "p999")),
    *(_summed_up(f"acquire_{part}_pooled", "bool", _POOLED) for part in ("p50", "p99", "p999")),
    *_phase("service_p50_us", "service_p99_us", of="service: from the first send of an acquire to its grant"),
    *_phase("queue_p99_us", of="queue: from the due time to the first send"),
    *_phase("hold_p50_us", of="hold: from grant to the send of the release"),
    *_phase("release_p50_us", "release_p99_us", of="release: from the send of the release to its reply"),
    *_phase("lag_p99_us", of="send delay of the load generator: from the planned time of a send to the send"),
    _figure(
        "handoff_p50_us",
        "hand-off: from the release of a key to the next grant of the key, where a client waited",
        "µs",
        over=Over.QUANTILE,
    ),
    _summed_up("handoff_p50_pooled", "bool", _POOLED),
)

_COST = (
    _figure("attempts_per_grant", "attempts, including those of failed acquires / grants"),
    _figure("commands_per_grant", "commands sent / grants"),
    _figure("bytes_per_grant", "bytes sent and received / grants", "B", summary=False),
    _figure("contention_rate", "refused attempts / attempts"),
    _figure(
        "split_votes_per_1000",
        "no quorum: attempts per 1,000 that got some servers while no client could get a majority",
    ),
    _figure("renewals_per_grant", "renewals of a lease in the window / grants"),
    _figure(
        "utilisation",
        "sum of the nominal holds / (window x keys x permits), at most 1; n/a where holds overlapped, readers shared a "
        "key, or `judged_by` is `effects`",
    ),
    _figure(
        "efficiency",
        "grants/s / highest rate of one key, which is permits / (hold + one idle call); at most 1; n/a for several "
        "keys and where `utilisation` is n/a",
        summary=False,
    ),
    _figure(
        "client_cpu_us_per_grant",
        "CPU time of the load threads, and of the checker if it has its own thread / grants",
        "µs",
    ),
    _figure(
        "server_cpu_us_per_grant",
        "CPU time of all processes of the servers and replicas, from before to after the trial / all grants of the "
        "trial",
        "µs",
    ),
    _figure("server_cpu_share", "CPU time of the servers and replicas / wall time; 1 is one core", summary=False),
)

_FAIRNESS = (
    _figure(
        "jain",
        "Jain's index of the grants per client: 1 when all clients got equally many, 1/n when one client got all",
    ),
    _figure(
        "clients_served",
        "average number of clients in a cycle that ended with a grant, by Little's law: grants/s x (mean response + "
        "mean hold + mean release + mean think), at most `concurrency`; closed loop only",
    ),
    Column(
        "starved_clients", "int64", "clients that asked and had no grant in the window", over=Over.MOST, in_summary=True
    ),
    _figure(
        "longest_wait_us",
        "the longest wait of a client or a queued arrival from its due time, granted or not",
        "µs",
        over=Over.MOST,
    ),
    _figure("wait_std_us", "standard deviation of the clients' mean responses", "µs", summary=False),
    Column(
        "longest_streak",
        "int64",
        "most consecutive grants of one key to one client while another client waited",
        over=Over.MEDIAN,
    ),
    Column("overtakes", "int64", "grants made while a client with an earlier request waited", over=Over.MEDIAN),
)

_OUTCOMES = (
    _count("grants", "grants in the window", summary=True),
    _count(
        "contended_grants",
        "grants in the window on which a broken lock could have shown an overlap, because another client competed",
        summary=True,
    ),
    _count("refused", "acquires that ended without a grant because another client held the lock"),
    _count("timeouts", "acquires that ended without a grant after `max_wait`"),
    _count("errors", "acquires that ended with an error reply"),
    _count("lost", 'holds that ended after their lease, or whose release had the reply "not held"'),
    _count("unknown", "acquires whose reply was lost; the lock may have been granted"),
    _count("unfinished", "acquires that still waited when the window closed"),
    _count("error_reply_count", f"error replies of the servers{_WHOLE}"),
    _text("error_replies", "JSON: the error replies by phase and code, see [error replies](#error-replies)"),
)

_VIOLATIONS = (
    _count("violations", f"the violations of all kinds{_WHOLE}", summary=True),
    _count("double_grants", f"grants of a key that another client still held within its lease{_WHOLE}"),
    _count("double_grants_after_overrun", "double grants after an earlier holder had outlived its lease"),
    _count("sessions_lost", f"grants of a key whose holder had not yet learned that its session had ended{_WHOLE}"),
    _count("lease_overruns", f"overlaps with a holder that worked past its lease{_WHOLE}"),
    _count("stale_fences", f"grants whose fence is not above that of an earlier grant{_WHOLE}"),
    _count(
        "fifo_inversions",
        f"grants to a client while another client waited whose place in the queue had been acknowledged before the "
        f"first client asked{_WHOLE}; n/a (0 in the summary) for a lock that acknowledges no places",
        summary=True,
    ),
    _count("stalls", f"times when a wanted key stayed free for too long{_WHOLE}"),
    _count(
        "starved",
        "clients that waited for at least half of the window, until its end, and were overtaken at least 20 times",
    ),
    _count("denied_releases", f'releases within their lease that had the reply "not held"{_WHOLE}'),
    _count("abandoned", "clients that had not finished by the deadline after the trial"),
    _count("left_over_keys", "keys left on the servers after the replies to all releases"),
    _count("wake_ups", f"wake-up messages that reached a waiting client{_WHOLE}"),
    _count(
        "missed_wake_ups",
        "contended grants of a trial without any wake-up message, although every release should send one",
    ),
    _count("findings", "impossible orders of events that the checker saw; such a trial is UNDECIDED"),
    _count(
        "lease_freed_grants",
        "grants in the window that came only after the end of the previous holder's lease, although that holder had "
        "released",
        summary=True,
    ),
    _count("outlived", f"holders that released after their lease{_WHOLE}"),
    _count("lapsed", f"holders that were notified of the loss of their lock{_WHOLE}", summary=True),
    _figure(
        "outlived_share",
        "share of the holds whose release was sent after the end of their lease, or that ended with the trial after "
        "the end of their lease; n/a without a lease",
    ),
    _count("renewals", "renewals of a lease in the window"),
    _count(
        "split_votes", "no quorum: attempts in the window that got some servers while no client could get a majority"
    ),
    _count(
        "conflicts",
        "attempts in the window that the database ended because of another transaction: a changed version, a "
        "serialization failure, a deadlock",
        summary=True,
    ),
)

_EFFECTS = (
    _count("acknowledged_writes", f"acknowledged writes{_WHOLE}; n/a where `judged_by` is `belief`"),
    _count(
        "unknown_writes", f"writes without a reply, or with an error reply{_WHOLE}; n/a where `judged_by` is `belief`"
    ),
    _count(
        "stale_writes",
        f"writes that the guard refused because a later holder had written{_WHOLE}; n/a (0 in the summary) where "
        "`judged_by` is `belief`",
        summary=True,
    ),
    Column("final_value", "int64", "sum of all rows after the trial; n/a where it was not read"),
    _count("lost_updates", "acknowledged writes missing from the rows after the trial"),
    _count("surplus_updates", "writes in the rows beyond those that clients sent"),
)

_RUN = (
    _count("arrivals", "arrivals in the window; open loop only"),
    _count("drops", "arrivals that were dropped because `max_in_flight` was reached; open loop only"),
    _count("reconnects", "connections that broke and were opened again"),
    _count("lost_calls", "calls without a reply"),
    _figure(
        "orphan_s",
        f"how long granted keys may have existed without their client's knowledge, because a connection broke before "
        f"the reply{_WHOLE}",
        "s",
        over=Over.SUM,
    ),
    _figure("window_s", "length of the window", "s", summary=False),
    _figure(
        "longest_stall_ms",
        "longest time in the window in which the load generator could not run",
        "ms",
        over=Over.MOST,
        summary=False,
    ),
    _count(
        "throttled_periods",
        "periods in which a CPU quota of the control group stopped processes; n/a where unknown",
    ),
    _figure(
        "throttled_ms",
        "how long a CPU quota of the control group stopped processes",
        "ms",
        over=Over.SUM,
        summary=False,
    ),
    Column(
        "shares_core",
        "bool",
        "whether a given server on this machine ran on the core of a load thread at the end of the trial; n/a where "
        "unknown",
    ),
    _text(
        "commandstats", "JSON: calls of each command on the servers without replicas, including those of other clients"
    ),
    _text(
        "database_figures",
        "JSON: counters and samples of the database, see [database figures](#database-figures); n/a without a database",
    ),
)

_VERDICT = (
    _figure(
        "bound_per_million",
        "highest rate of violations per million contended grants at 95 % confidence (rule of three); SAFE trials and "
        "cells only",
        over=Over.OWN,
    ),
    Column(
        "verdict",
        "string",
        "SAFE, UNSAFE, UNDECIDED or VOID; a cell has the worst verdict of its trials",
        over=Over.OWN,
        in_summary=True,
    ),
    Column("promise_broken", "bool", "whether the strategy broke a promise"),
    _text("first_finding", "the first impossible order of events, in words"),
    Column("judged_by_probe", "bool", "whether the lock's probe decided the verdict", over=Over.OWN, in_summary=True),
    _text("probe_reason", "the reason of the probe, where it decided the verdict"),
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
"""The columns by name, in the order of the files."""

SUMMARY_FIGURES = tuple(column.name for column in COLUMNS.values() if column.in_summary)
EFFECT_COLUMNS = tuple(column.name for column in _EFFECTS)
"""The columns about writes; n/a where `judged_by` is `belief`."""


def summed(over: Over, *, in_summary: bool) -> tuple[str, ...]:
    """The columns that are summarised by `over`, either those in the summary or those that are not in it."""
    return tuple(column.name for column in COLUMNS.values() if column.over is over and column.in_summary is in_summary)
