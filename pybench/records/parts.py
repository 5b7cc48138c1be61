"""What one trial counted, as plain data that can be sent to another process and merged with that of others.

A `TrialPart` has the fields of the core's `TrialResult`, so that `trial_record` takes either. Parts are trials that ran
at the same time with clients of their own: one on each of several machines, or several processes of one machine.

Promises: merging loses no count. Histograms are summed bucket by bucket. The bytes are compressed JSON, never pickles,
so that decoding runs no code.
Does not do: judging; see `analysis.verdicts`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np

from pybench import _core
from pybench.analysis.violation_sentences import PROCESS
from pybench.errors import RecordError
from pybench.records.merged_faults import merged_faults, merged_periods

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.core_results import ErrorReply, FaultOutcome, NodeVotes, PeriodFigures, Recorded, Violation

MOST_VIOLATIONS = 100
"""How many violations a trial describes; the totals count all of them."""

HIGHEST = ("longest_streak", "longest_wait_ns", "longest_stall_ns", "window_ns")
"""Totals of which a merged trial has the highest; all others are summed, except those in `EARLIEST`."""
EARLIEST = ("began_ns", "first_cut_ns", "window_start_ns")

STEP_NS = 100_000_000
"""A step of the time line, in a window of at most 3,000 steps."""
COMMAND_STEP_NS = 10_000_000
"""A step of the commands, in a window of at most 3,000 steps."""

_TIMES = ("at_ns", "first_granted_ns", "first_until_ns", "first_ended_ns")
_TIMES_OF_SECOND = ("second_granted_ns", "second_until_ns", "second_ended_ns")

OF_CLIENTS = (
    *("grants", "attempts", "refused", "errors", "waits", "wait_sum_ns", "wait_max_ns"),
    *("wait_p50_ns", "wait_p90_ns", "wait_p99_ns"),
)
"""The columns of the clients: their counts, `waits` of which the quantiles are, and their waits."""
KILLED = "killed"
"""A further column of trials with worker processes: whether the client died with its process."""

_COLUMNS = ("timeline", "clients", "writes", "commands")
_HDR: tuple[Literal["reply_hdr"], Literal["validity_hdr"]] = ("reply_hdr", "validity_hdr")
_Count = Literal["asked", "granted", "refused", "errors", "late", "decided"]
_VOTES: tuple[_Count, ...] = ("asked", "granted", "refused", "errors", "late", "decided")

Columns = dict[str, "NDArray[np.uint64 | np.float64]"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """One HDR histogram of a phase and an outcome; see `_core.HistogramRow`."""

    phase: str
    outcome: str
    count: int
    hdr: bytes


@dataclass(frozen=True, slots=True)
class TrialPart:
    """The counts of one trial, with the fields of `_core.TrialResult`."""

    totals: dict[str, int]
    histograms: list[Histogram]
    stopped: bool = False
    jain: float | None = None
    timeline: Columns = field(default_factory=dict)
    clients: Columns = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    finding: str | None = None
    errors: list[ErrorReply] = field(default_factory=list)
    writes: Columns = field(default_factory=dict)
    commands: Columns = field(default_factory=dict)
    nodes: list[NodeVotes] = field(default_factory=list)
    periods: list[PeriodFigures] = field(default_factory=list)
    faults: FaultOutcome | None = None
    recorded: Recorded | None = None
    """Its recording, for this process alone: `encode` leaves it out."""

    @classmethod
    def of(cls, result: Outcome, *, clients: int | None = None) -> Self:
        """The part of a trial with this `result`.

        With `clients` it has only the first ones, since the others never worked; Jain's index is then theirs.
        """
        kept: Columns = {name: column[:clients] for name, column in result.clients.items()}
        return cls(
            totals=dict(result.totals),
            histograms=[Histogram(row.phase, row.outcome, row.count, row.hdr) for row in result.histograms],
            stopped=result.stopped,
            jain=result.jain if clients is None else jain(kept["grants"]),
            timeline=dict(result.timeline),
            clients=kept,
            violations=list(result.violations),
            finding=result.finding,
            errors=list(result.errors),
            writes=dict(result.writes),
            commands=dict(result.commands),
            nodes=list(result.nodes),
            periods=list(result.periods),
            faults=result.faults,
        )

    def encode(self) -> bytes:
        """The part as bytes for `decode`."""
        plain = {
            "totals": self.totals,
            "histograms": [(row.phase, row.outcome, row.count, _text(row.hdr)) for row in self.histograms],
            "stopped": self.stopped,
            "jain": self.jain,
            "violations": self.violations,
            "finding": self.finding,
            "errors": self.errors,
            "nodes": [{**node, **{name: _text(node[name]) for name in _HDR}} for node in self.nodes],
            "periods": [{**period, "hdr": _text(period["hdr"])} for period in self.periods],
            "faults": self.faults,
            **{name: _plain(getattr(self, name)) for name in _COLUMNS},
        }
        return zlib.compress(json.dumps(plain).encode(), level=1)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The part that `encode` made these bytes of. Raises RecordError for other bytes."""
        try:
            plain: dict[str, Any] = json.loads(zlib.decompress(data))
            histograms = [Histogram(phase, outcome, n, _bytes(hdr)) for phase, outcome, n, hdr in plain["histograms"]]
            fields: dict[str, Any] = {
                **{name: plain[name] for name in ("totals", "stopped", "jain", "violations", "finding", "errors")},
                "nodes": [{**node, **{name: _bytes(node[name]) for name in _HDR}} for node in plain["nodes"]],
                # Parts of older versions have no faults.
                "periods": [{**period, "hdr": _bytes(period["hdr"])} for period in plain.get("periods", ())],
                "faults": plain.get("faults"),
                **{name: _columns(plain[name]) for name in _COLUMNS},
            }
            return cls(histograms=histograms, **fields)
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise RecordError(
                f"the counts of a trial that another process sent cannot be read: {error}",
                hint="run the same version of pybench in all processes",
            ) from error


@dataclass(frozen=True, slots=True)
class Placed:
    """A part among others: the name of its process, and how long after the first of them it began."""

    part: TrialPart
    name: str
    shift_ns: int = 0


def merge(parts: Sequence[Placed], *, shared_keys: bool = False) -> TrialPart:
    """The trial that all `parts` were together. `parts` must not be empty.

    Clients are numbered through in the order of `parts`, and each violation names its process. The window goes from the
    earliest begin to the latest end. Steps of the time line are summed by their time; quantiles cannot be merged, so a
    step has the highest of its parts. Of `shared_keys` the writes are summed key by key; otherwise each part has keys
    of its own, which are listed one part after another.
    """
    placed = [replace(one, part=replace(one.part, totals=dict(one.part.totals))) for one in parts]
    counts = [len(one.part.clients.get("grants", ())) for one in placed]
    clients = _joined([one.part.clients for one in placed])
    violations = [
        _of_process(violation, one, first_client)
        for one, first_client in zip(placed, np.cumsum([0, *counts]).tolist(), strict=False)
        for violation in one.part.violations
    ]
    findings = [f"{one.name}: {one.part.finding}" for one in placed if one.part.finding is not None]
    writes = [one.part.writes for one in placed]
    timelines = [(one.part.timeline, one.shift_ns) for one in placed]
    commands = [(one.part.commands, one.shift_ns) for one in placed]
    return TrialPart(
        totals=_totals(placed),
        histograms=merged_histograms([row for one in placed for row in one.part.histograms]),
        stopped=any(one.part.stopped for one in placed),
        jain=jain(clients["grants"]) if clients else None,
        timeline=_steps(timelines, ("grants", "refused", "errors"), ("p50_ns", "p99_ns"), STEP_NS),
        clients=clients,
        violations=sorted(violations, key=lambda one: one["at_ns"])[:MOST_VIOLATIONS],
        finding=findings[0] if findings else None,
        errors=_errors([row for one in placed for row in one.part.errors]),
        writes=_summed(writes) if shared_keys else _joined(writes),
        commands=_steps(commands, ("commands",), (), COMMAND_STEP_NS),
        nodes=_nodes([node for one in placed for node in one.part.nodes]),
        periods=merged_periods([one.part.periods for one in placed]),
        faults=merged_faults([one.part.faults for one in placed]),
    )


def with_tuples(spec: Mapping[str, Any]) -> dict[str, Any]:
    """`spec`, a trial's specification that was plain data, with its lists of pairs as tuples again."""
    return {
        name: [tuple(pair) for pair in value]
        if name in ("points", "fault_periods")
        else with_tuples(value)
        if isinstance(value, Mapping)
        else [with_tuples(one) if isinstance(one, Mapping) else one for one in value]
        if isinstance(value, list)
        else value
        for name, value in spec.items()
    }


def jain(grants: NDArray[Any]) -> float | None:
    """Jain's fairness index over the grants of clients, from 1/n to 1; None without a grant."""
    each = grants.astype(np.float64)
    squares = float((each**2).sum())
    return float(each.sum()) ** 2 / (len(each) * squares) if squares else None


def merged_histograms(rows: Sequence[Histogram]) -> list[Histogram]:
    """One histogram for each phase and outcome of `rows`: the sum of those."""
    alike: dict[tuple[str, str], list[Histogram]] = defaultdict(list)
    for row in rows:
        alike[row.phase, row.outcome].append(row)
    return [
        same[0]
        if len(same) == 1
        else Histogram(*of, sum(row.count for row in same), _core.merge_histograms([row.hdr for row in same]))
        for of, same in sorted(alike.items())
    ]


def _totals(placed: Sequence[Placed]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for one in placed:
        for name, value in one.part.totals.items():
            if name in HIGHEST:
                merged[name] = max(value, merged.get(name, 0))
            elif name in EARLIEST:
                merged[name] = min(value, merged.get(name, value))
            else:
                merged[name] = merged.get(name, 0) + value
    begin = min(one.shift_ns for one in placed)
    merged["window_ns"] = max(one.shift_ns + one.part.totals.get("window_ns", 0) for one in placed) - begin
    return merged


def _of_process(violation: Violation, placed: Placed, first_client: int) -> Violation:
    """`violation` with the number that its clients and the time that its grants have in the merged trial."""
    moved: dict[str, Any] = {**violation, PROCESS: placed.name}
    for name in ("first_client", "second_client"):
        if moved[name] is not None:
            moved[name] += first_client
    for name in (*_TIMES, *_TIMES_OF_SECOND):
        if moved.get(name) is not None:
            moved[name] += placed.shift_ns
    return cast("Violation", moved)


def _steps(
    lines: Sequence[tuple[Columns, int]], summed: Sequence[str], highest: Sequence[str], usual_ns: int
) -> Columns:
    """Each of `lines`, which began so many nanoseconds after the first, added up step by step."""
    lines = [(line, shift_ns) for line, shift_ns in lines if len(line.get("start_ns", ()))]
    length_ns = max((step_ns(line["start_ns"], usual_ns) for line, _ in lines), default=usual_ns)
    ends = [round(shift_ns / length_ns) + int(line["start_ns"][-1]) // length_ns + 1 for line, shift_ns in lines]
    count = max(ends, default=0)
    merged: Columns = {
        "start_ns": np.arange(count, dtype=np.uint64) * np.uint64(length_ns),
        **{name: np.zeros(count, dtype=np.uint64) for name in (*summed, *highest)},
    }
    for line, shift_ns in lines:
        place = (line["start_ns"] // np.uint64(length_ns)).astype(np.int64) + round(shift_ns / length_ns)
        for name in summed:
            np.add.at(merged[name], place, line[name])
        for name in highest:
            np.maximum.at(merged[name], place, line[name])
    return merged


def step_ns(starts_ns: NDArray[Any], usual_ns: int) -> int:
    """The length of the steps that begin then; `usual_ns` where a single step does not show it."""
    return int(starts_ns[1] - starts_ns[0]) if len(starts_ns) > 1 else usual_ns


def _nodes(rows: Sequence[NodeVotes]) -> list[NodeVotes]:
    merged: dict[int, NodeVotes] = {}
    for row in rows:
        before = merged.get(row["server"])
        if before is None:
            merged[row["server"]] = {**row}
            continue
        for name in _VOTES:
            before[name] += row[name]
        for hdr in _HDR:
            before[hdr] = _core.merge_histograms([before[hdr], row[hdr]])
    return [merged[server] for server in sorted(merged)]


def _errors(rows: Sequence[ErrorReply]) -> list[ErrorReply]:
    merged: dict[tuple[str, str, int], ErrorReply] = {}
    for row in rows:
        key = (row["phase"], row["code"], row["server"])
        before = merged.get(key)
        if before is None:
            merged[key] = {**row}
        else:
            before["count"] += row["count"]
            before["warmup"] += row["warmup"]
    return list(merged.values())


def _joined(columns: Sequence[Columns]) -> Columns:
    """One list after another, of those that are not empty."""
    filled = [one for one in columns if one]
    names = filled[0] if filled else ()
    return {name: np.concatenate([one[name] for one in filled]) for name in names}


def _summed(columns: Sequence[Columns]) -> Columns:
    filled = [one for one in columns if one]
    names = filled[0] if filled else ()
    return {name: np.sum([one[name] for one in filled], axis=0) for name in names}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _plain(columns: Columns) -> dict[str, tuple[str, str]]:
    """Little-endian bytes in Base64, whatever the byte order of this machine."""
    return {name: (column.dtype.kind, _text(_little(column).tobytes())) for name, column in columns.items()}


def _little(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(f"<{column.dtype.kind}8")


def _columns(plain: Mapping[str, tuple[str, str]]) -> Columns:
    return {name: np.frombuffer(_bytes(text), dtype=f"<{kind}8").copy() for name, (kind, text) in plain.items()}
