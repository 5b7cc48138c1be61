"""Every column of the records: its name, type, unit and meaning, and how the trials of a cell are summarised.

The schema of `trials.parquet`, the summary, the thresholds and the data dictionary of the manual are made from this
table. To add a column, add its entry here, and its value in `records/trial.py`.

Promises: the order is that of the files.
Does not do: axes of the matrix, which are columns, too; see `pybench.matrix.cells`.
"""

from __future__ import annotations

from pybench.column import Column, Over
from pybench.column import count as _count
from pybench.column import figure as _figure
from pybench.column import phase as _phase
from pybench.column import quantiles as _quantiles
from pybench.column import summed_up as _summed_up
from pybench.column import text as _text
from pybench.formats import Format

_WHOLE = ", in the whole trial including the warm-up"
_BOUND = (
    "lower limit of the quantile, if its rank falls among the acquires that still waited when the window closed; n/a "
    "otherwise"
)
_POOLED = "whether the quantile comes from the samples of all trials together, because single trials have too few"

_IDENTITY = (
    _text("exclusion", "the promise of exclusion: `nothing`, `while-nobody-outlives` (its lease) or `always`"),
    _text("promises", "further promises: `fence`, `fifo`, `wake-up`, or none"),
    _figure(
        "rtt_ms",
        "mean of the round-trip times that the axis `rtt` adds, over draws and servers; a quorum waits for a majority "
        "only, so its calls may take less",
        "ms",
    ),
    _text(
        "judged_by",
        "evidence of the verdict: `belief`, `effects` (values of the rows), `guard` (accepted writes), or `part` "
        "(beliefs, of which each of several processes with shared keys saw only its own)",
    ),
    _count("trial", "number of the trial, from 1", over=None),
    _count("block", "block of the run's order, from 1; a block has every cell once", over=None),
    _text("started_at", "start of the trial: UTC, ISO 8601"),
    _text("status", "`complete`, `interrupted` or `disturbed`"),
    _text("disturbance", "the event on a server that disturbed the trial; n/a for other trials"),
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
    *_phase("release_p50_us", "release_p99_us", of="release: from its send to its reply"),
    *_phase("send_delay_p99_us", of="send delay of the load generator: from the intended to the real time of a send"),
    _figure(
        "handoff_p50_us",
        "handoff: from the release of a key to its next grant, if another client waited all the time",
        "µs",
        over=Over.QUANTILE,
    ),
    _summed_up("handoff_p50_pooled", "bool", _POOLED),
)

_LIMIT = (
    _figure(
        "limit_per_s",
        "the limit: the highest rate of an open loop that the lock sustained in three confirmations; n/a without a "
        "search, where no rate was confirmed, and where a probe was unsafe",
        "1/s",
    ),
    _summed_up("limit_low_per_s", "float64", "lower end of the interval of the limit", "1/s"),
    _figure(
        "limit_high_per_s",
        "the lowest rate that failed above the limit; in the summary the upper end of the interval of the limit",
        "1/s",
        over=Over.OWN,
    ),
    Column(
        "limited_by",
        "string",
        "what that rate exceeded: `throughput` (fewer than 98 % of the arrivals were granted), `growing waits`, "
        "`dropped arrivals`, `load generator`, or a threshold",
        over=Over.OWN,
        in_summary=True,
    ),
    _count("search_probes", "probes of the search, without those of the curve"),
)

_STEADINESS = (
    Column(
        "steady",
        "bool",
        "whether the figures were steady when the window opened; n/a for a warm-up of fixed length",
        over=Over.OWN,
        in_summary=True,
    ),
    _figure("warmup_s", "length of a warm-up until steady; n/a for one of fixed length", "s", summary=False),
    _figure(
        "autocorrelation",
        "lag-1 autocorrelation of the grants in the steps of the window: near 0 the steps are independent of each "
        "other, near 1 a step resembles the one before, so that the window holds less evidence than its length "
        "suggests; n/a for fewer than 10 steps, for steps that are all equal, and with `stages`",
        format=Format.INDEX,
    ),
)

_COST = (
    _figure("attempts_per_grant", "attempts, those of failed acquires included / grants"),
    _figure("commands_per_grant", "commands sent / grants"),
    _figure("bytes_per_grant", "bytes sent and received / grants", "B", summary=False),
    _figure("contention_rate", "refused attempts / attempts", format=Format.SHARE),
    _figure(
        "no_quorum_per_1000", "no quorum: of 1,000 attempts, those that got some servers while no client had a quorum"
    ),
    _figure("renewals_per_grant", "renewals of a lease in the window / grants"),
    _figure(
        "utilisation",
        "sum of the nominal holds / (window x keys x permits), at most 1; n/a where holds overlapped, readers shared a "
        "key, or `judged_by` is `effects`",
        format=Format.SHARE,
    ),
    _figure(
        "efficiency",
        "grants/s / highest rate of one key, which is permits / (hold + one idle call with its `rtt`); at most 1; n/a "
        "for several keys and where `utilisation` is n/a",
        summary=False,
        format=Format.SHARE,
    ),
    _figure(
        "client_cpu_us_per_grant",
        "CPU time of the load threads, and of the checker's thread if it has one / grants",
        "µs",
    ),
    _figure(
        "server_cpu_us_per_grant",
        "CPU time of all processes of the servers and replicas, from before to after the trial / all grants of the "
        "trial",
        "µs",
    ),
    _figure(
        "server_cpu_share",
        "CPU time of the servers and replicas / wall time; 1 is one core",
        summary=False,
        format=Format.SHARE,
    ),
)

_FAIRNESS = (
    _figure(
        "jain",
        "Jain's index of the grants per client: 1 when all clients got equally many, 1/n when one client got all",
        format=Format.INDEX,
    ),
    _figure(
        "clients_served",
        "average number of clients in a cycle that ended with a grant, by Little's law: grants/s x (mean response + "
        "mean hold + mean release + mean think), at most `concurrency`, with `stages` their mean; closed loop only",
    ),
    _count(
        "starved_clients",
        "clients that asked and had no grant in the window, none of a killed process; n/a for stages of clients",
        over=Over.MOST,
        summary=True,
    ),
    _figure(
        "longest_wait_us",
        "the longest wait of a client or a queued arrival from its due time, granted or not",
        "µs",
        over=Over.MOST,
    ),
    _figure("wait_std_us", "standard deviation of the clients' mean responses", "µs", summary=False),
    _count(
        "longest_streak",
        "most consecutive grants of one key to one client while another client waited",
        over=Over.MEDIAN,
    ),
    _count("overtakes", "grants made while a client with an earlier request waited", over=Over.MEDIAN),
)

_OUTCOMES = (
    _count("grants", "grants in the window", summary=True),
    _count("contended_grants", "grants in the window that a rival could have overlapped", summary=True),
    _count("refused", "acquires that ended without a grant because another client held the lock"),
    _count("timeouts", "acquires that ended because `max_wait` had passed"),
    _count("errors", "acquires that ended with an error reply"),
    _count("lost", 'holds that ended after their lease, or whose release was answered "not held"'),
    _count("unknown", "acquires whose reply was lost: the client may hold the lock on the server"),
    _count("unfinished", "acquires that still waited when the window closed"),
    _count("error_reply_count", f"error replies of the servers{_WHOLE}"),
    _text("error_replies", "JSON: the error replies by phase and code, see [error replies](#error-replies)"),
)

_VIOLATIONS = (
    _count("violations", f"the violations of all kinds{_WHOLE}", summary=True),
    _count("double_grants", f"grants of a key while another holder still believed{_WHOLE}"),
    _count("double_grants_after_overrun", "double grants after an earlier holder had outlived its lease"),
    _count("sessions_lost", f"grants of a key whose holder did not yet know that its session had ended{_WHOLE}"),
    _count("lease_overruns", f"grants of a key while an earlier holder was at work past its lease{_WHOLE}"),
    _count("stale_fences", f"grants whose fence is not higher than an earlier fence of the key{_WHOLE}"),
    _count(
        "fifo_inversions",
        f"grants to a client that asked after the place of a client that still waits was acknowledged{_WHOLE}; n/a for "
        "locks that acknowledge no places (0 in the summary)",
        summary=True,
    ),
    _count("stalls", f"stalled keys: a client waited, and no client was granted the key for too long{_WHOLE}"),
    _count(
        "starved",
        "clients that waited for at least half of the window, to its end, and were overtaken 20 times or more",
    ),
    _count("denied_releases", f'releases inside their lease that were answered "not held"{_WHOLE}'),
    _count("abandoned", "clients that were not idle when the time to finish after the trial was over"),
    _count("left_over_keys", "keys that were left on the servers after the trial"),
    _count("wake_ups", f"messages of releases that reached a waiting client{_WHOLE}"),
    _count("missed_wake_ups", "contended grants of a trial in which no release woke a client, though each should have"),
    _count("findings", "impossible orders of events that the checker met: such a trial is UNDECIDED"),
    _count(
        "lease_freed_grants",
        "grants in the window that came only because the lease of an earlier holder had ended, "
        "although that holder had released",
        summary=True,
    ),
    _count("outlived", f"holders that released after their lease{_WHOLE}"),
    _count("lapsed", f"holders that were notified that their lock was lost{_WHOLE}", summary=True),
    _figure(
        "outlived_share",
        "share of the holds whose release was sent after the end of their lease, or that ended with the trial after "
        "the end of their lease; n/a without a lease",
        format=Format.SHARE,
    ),
    _count("renewals", "renewals of a lease in the window"),
    _count("no_quorum", "no quorum: attempts in the window that got some servers while no client had a quorum"),
    _count(
        "conflicts",
        "attempts in the window that the database ended because of other clients: a changed version, a "
        "serialization failure, a deadlock",
        summary=True,
    ),
)

_EFFECTS = (
    _count("acknowledged_writes", f"writes that were acknowledged{_WHOLE}; n/a where nothing is written"),
    _count("unknown_writes", f"writes that got no reply, or an error{_WHOLE}; n/a where nothing is written"),
    _count(
        "stale_writes",
        f"writes refused because a later holder had a higher fence{_WHOLE}; n/a without fences (0 in the summary)",
        summary=True,
    ),
    _count("final_value", "sum of all rows after the trial; n/a if it was not read", over=None),
    _count("lost_updates", "acknowledged writes that the rows lacked after the trial"),
    _count("surplus_updates", "updates in the rows beyond all writes that were sent"),
    _count("oversold", "units sold beyond the stock: how far it is below 0 after the trial; `guard: stock` only"),
    _count(
        "sum_error",
        "units that appeared or vanished: how far accounts are from what the acknowledged transfers make of them; "
        "`guard: transfer` only",
    ),
    _count(
        "stale_writes_accepted",
        "writes that the guard accepted after a write with a higher fence; `guard: fenced-write` only",
    ),
    _count("sold_out", f"guarded works that found nothing left to take{_WHOLE}; n/a without a guard, as what follows"),
    _count("refused_writes", f"guarded writes that a constraint of the table refused{_WHOLE}"),
    _count("abandoned_works", f"guarded works that wrote nothing: an error, no reply, or the end of the lease{_WHOLE}"),
)

_RUN = (
    _count("arrivals", "arrivals in the window; open loop only"),
    _count("drops", "arrivals that were dropped because `max_in_flight` was reached; open loop only"),
    _count("reconnects", "connections that broke and were opened again"),
    _count("lost_calls", "calls that got no reply"),
    _figure(
        "orphan_s",
        f"how long keys may have existed that no client knew of: a connection broke before the reply{_WHOLE}",
        "s",
        over=Over.SUM,
    ),
    _figure("window_s", "length of the window", "s", summary=False),
    _figure(
        "longest_stall_ms",
        "longest time in the window in which the load generator stood still although it had work",
        "ms",
        over=Over.MOST,
        summary=False,
    ),
    _count(
        "throttled_periods",
        "periods in which a CPU quota of the control group stopped processes; n/a if the system does not say",
    ),
    _figure("throttled_ms", "how long a CPU quota stopped processes", "ms", over=Over.SUM, summary=False),
    Column(
        "shares_core",
        "bool",
        "whether a given server on this machine ran on the core of a load thread when the trial ended; n/a if unknown",
    ),
    _text("commandstats", "JSON: how often the servers (without replicas) executed each command, for all clients"),
    _text(
        "database_figures",
        "JSON: counters and waits of the database, see [database figures](#database-figures); n/a without a database",
    ),
)

_PERIODS = {
    "before": "before the first fault",
    "during": "while a fault is planned to last",
    "after": "after the first fault, while none is planned to last",
}
_FAULTS = (
    _figure(
        "unavailable_ms",
        "longest time without a grant of any key, in whole steps of 100 ms that end after the first fault began, "
        "[reconnecting](faults.md#what-is-recorded) included; n/a without faults, as all that follows",
        "ms",
        over=Over.MOST,
    ),
    *(_figure(f"grants_{period}_per_s", f"grants/s {when}", "1/s") for period, when in _PERIODS.items()),
    *(
        _figure(f"acquire_{part}_{period}_us", f"{part} response of grants {when}", "µs")
        for part in ("p50", "p99")
        for period, when in _PERIODS.items()
    ),
    _count("orphans", "locks that clients held which crashed or were killed; n/a without such a fault"),
    _figure(
        "time_to_free_ms",
        "longest time from a holder's crash or death to the next grant of its key; n/a where keys have several holders",
        "ms",
        over=Over.MOST,
    ),
    _figure(
        "time_to_know_ms",
        "longest time from the end of a lease until its holder noticed, for grants that a fault disturbed; n/a without "
        "any",
        "ms",
        over=Over.MOST,
    ),
)

_VERDICT = (
    _figure(
        "bound_per_million",
        "highest rate of violations per million contended grants at 95 % confidence (rule of three); SAFE trials and "
        "cells only",
        over=Over.OWN,
        format=Format.PER_MILLION,
    ),
    Column(
        "verdict",
        "string",
        "SAFE, UNSAFE, UNDECIDED or VOID; a cell has the worst verdict of its trials",
        over=Over.OWN,
        in_summary=True,
    ),
    Column("promise_broken", "bool", "whether the strategy broke its promise"),
    _text("first_finding", "the first finding, as a sentence"),
    Column(
        "judged_by_probe", "bool", "whether the verdict is that of the lock's probe", over=Over.OWN, in_summary=True
    ),
    _text("probe_reason", "what the probe saw, if the probe decides the verdict"),
)

GROUPS = {
    "The trial": _IDENTITY,
    "Speed": _SPEED,
    "The limit": _LIMIT,
    "Steadiness": _STEADINESS,
    "Cost": _COST,
    "Fairness": _FAIRNESS,
    "Outcomes": _OUTCOMES,
    "Violations": _VIOLATIONS,
    "Effects": _EFFECTS,
    "The run": _RUN,
    "Faults": _FAULTS,
    "Verdict": _VERDICT,
}
COLUMNS = {column.name: column for group in GROUPS.values() for column in group}
"""The columns by name, in the order of the files."""

SUMMARY_FIGURES = tuple(column.name for column in COLUMNS.values() if column.in_summary)
EFFECT_COLUMNS = tuple(column.name for column in _EFFECTS)
"""The columns about writes; n/a where nothing is written."""


def summed(over: Over, *, in_summary: bool) -> tuple[str, ...]:
    """The columns that are summarised by `over`, either those in the summary or those that are not in it."""
    return tuple(column.name for column in COLUMNS.values() if column.over is over and column.in_summary is in_summary)
