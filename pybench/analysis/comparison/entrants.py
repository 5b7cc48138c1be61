"""The loads of a run, the cells at each load, and which cells are not ranked and why.

A lock that lets several clients hold a key at once gets more grants for this reason. It is ranked only where no ranked
lock of the run allows fewer holders. A lock that is judged by its writes allows any number of holders.
A run with one lock and several retry policies compares the policies: here each policy takes the place of a lock.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pybench.analysis.comparison.claims import Figure, Out, axis_value
from pybench.analysis.verdicts import Verdict
from pybench.matrix.cells import BY_COLUMN, HAS_NONE, LOAD_COLUMNS
from pybench.matrix.conditions import AxisValue, Conditions, say_condition, say_conditions
from pybench.matrix.search_modes import recorded_mode
from pybench.matrix.stages import recorded_stages
from pybench.notation import BadValue
from pybench.numbers import missing
from pybench.strategies import CATALOGUE, Arguments, Exclusion, Judge, parse_strategy

Row = Mapping[Hashable, Any]
"""A row of `summary.csv`."""

KEEPS_UP = 0.98
"""A lock that grants a smaller share of the arrivals of an open loop does not keep up."""

_POLICY = "retry"
BASE_LINE = "none"
"""The strategy that takes no lock."""
_PROMISES = (Exclusion.NOTHING, Exclusion.WHILE_NOBODY_OUTLIVES, Exclusion.ALWAYS)
"""From the weakest promise to the strongest."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One cell at its load."""

    cell: str
    lock: str
    strategy: str
    row: Row
    out: Out | None
    holders: float

    def figure(self, column: str) -> float | None:
        """The figure in `column`; None where the record has no finite figure."""
        return _finite(self.row.get(column))


@dataclass(frozen=True, slots=True)
class LoadCells:
    """The cells at one load, and the load itself."""

    text: str
    conditions: Conditions
    values: Conditions
    offered_per_s: float | None
    entrants: tuple[Entrant, ...]

    @property
    def wait_figure(self) -> Figure:
        """The p99 response; the longest wait where a lock that keeps up has trials with too few grants for a p99."""
        waits = [one for one in self.entrants if one.out is None and self.has_kept_up(one)]
        if all(_has_p99(one.row) for one in waits) or any(one.figure(Figure.LONGEST_WAIT) is None for one in waits):
            return Figure.RESPONSE
        return Figure.LONGEST_WAIT

    @property
    def is_search(self) -> bool:
        """Whether each cell searches for its limit: then the rates differ between the locks."""
        return recorded_mode(dict(self.values).get("mode")).is_search

    def has_kept_up(self, one: Entrant) -> bool:
        """Whether `one` grants at least 98 % of the arrivals of an open loop; False in a closed loop."""
        rate = one.figure("safe_grants_per_s")
        return self.offered_per_s is not None and rate is not None and rate >= KEEPS_UP * self.offered_per_s


def _has_p99(row: Row) -> bool:
    """Whether each trial of the cell has a p99, as a value or as a lower bound."""
    known = [row.get(name) for name in (Figure.RESPONSE.value, "acquire_p99_at_least_us")]
    pooled = row.get("acquire_p99_pooled")
    return not all(missing(value) for value in known) and (missing(pooled) or not pooled)


def loads_of(rows: Sequence[Row], late: AbstractSet[str] = frozenset()) -> list[LoadCells]:
    """The loads of a run, in the order of their axes: concurrency varies fastest.

    In the cells of `late`, all of open loops, the load generator was late. Their responses measure the generator, so
    these cells are not ranked.
    """
    if not rows:
        return []
    labels, by_policy = contenders(rows), _compares_policies(rows)
    axes = [axis for axis in load_axes(rows) if not (by_policy and axis == _POLICY)]
    groups: dict[tuple[AxisValue, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(axis_value(row.get(axis)) for axis in axes), []).append(row)
    varied = [place for place in range(len(axes)) if len({values[place] for values in groups}) > 1]
    varied = [place for place in varied if not set_by_stages(axes[place], rows)]
    places = [_places([values[place] for values in groups]) for place in range(len(axes))]
    order = sorted(groups, key=lambda values: [places[axis][values[axis]] for axis in reversed(range(len(axes)))])
    holders = {str(row["cell"]): most_holders(row) for row in rows}
    fewest = min((holders[str(row["cell"])] for row in rows if _disqualified(row, late) is None), default=1.0)
    found = []
    for values in order:
        conditions = tuple((axes[place], values[place]) for place in varied)
        entrants = tuple(_entrant(row, labels, holders, fewest, late) for row in groups[values])
        pairs = tuple(zip(axes, values, strict=True))
        found.append(
            LoadCells(say_conditions(conditions), conditions, pairs, offered_rate(groups[values][0]), entrants)
        )
    return found


def _entrant(
    row: Row, labels: Mapping[str, str], holders: Mapping[str, float], fewest: float, late: AbstractSet[str]
) -> Entrant:
    cell = str(row["cell"])
    out = _disqualified(row, late)
    if out is None and holders[cell] > fewest:
        out = Out.EXCLUDES_NOBODY if math.isinf(holders[cell]) else Out.SHARED
    return Entrant(cell, labels[cell], str(row["strategy"]), row, out, holders[cell])


def _disqualified(row: Row, late: AbstractSet[str]) -> Out | None:
    """Why the cell of `row` is not ranked, whatever the other cells are."""
    verdict = row.get("verdict")
    if verdict == Verdict.UNSAFE:
        return Out.UNSAFE
    if verdict == Verdict.VOID:
        return Out.VOID
    if _finite(row.get("grants")) == 0 and _finite(row.get("trials")):
        return Out.NO_GRANTS
    if verdict != Verdict.SAFE:
        return Out.UNDECIDED
    rate = _finite(row.get("safe_grants_per_s"))
    if rate is None or rate <= 0:
        return Out.NO_GRANTS if _finite(row.get("trials")) else Out.NO_TRIAL
    if recorded_mode(row.get("mode")).is_search and _finite(row.get("limit_per_s")) is None:
        return Out.NO_LIMIT
    return Out.LATE if str(row["cell"]) in late else None


def _finite(value: Any) -> float | None:  # noqa: ANN401 - a field of a frame's row
    if missing(value) or isinstance(value, str):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def load_axes(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """The columns of the axes that divide `rows` into loads.

    An axis that some cells lack counts only where the other cells differ in it: a database lacks the persistence of
    Redis, and a closed loop lacks arrivals.
    """
    found = [column for column in LOAD_COLUMNS if column in rows[0]]
    values = {column: {axis_value(row.get(column)) for row in rows} - {HAS_NONE, None} for column in found}
    partial = {column for column in found if BY_COLUMN[column].of_servers or BY_COLUMN[column].only_open}
    return [column for column in found if len(values[column]) > 1 or column not in partial]


def set_by_stages(column: str, rows: Sequence[Mapping[Any, Any]]) -> bool:
    """Whether the stages of all `rows` set the load axis `column`, which then tells nothing beside them."""
    if column not in ("concurrency", "rate_per_s"):
        return False
    found = {text: recorded_stages(text) for text in {axis_value(row.get("stages")) for row in rows}}
    return all(stages and stages.is_open == (column == "rate_per_s") for stages in found.values())


def _places(values: Sequence[AxisValue]) -> dict[AxisValue, int]:
    """The position of each value of an axis: None first, numbers ascending, other values in order of appearance."""
    distinct = list(dict.fromkeys(values))
    numbers = [value for value in distinct if isinstance(value, int | float)]
    if all(value is None or value in numbers for value in distinct):
        distinct = [*([None] if None in distinct else []), *sorted(numbers)]
    return {value: place for place, value in enumerate(distinct)}


def offered_rate(row: Mapping[Any, Any]) -> float | None:
    """The arrivals a second of a row of the summary, with stages their mean; None in a closed loop."""
    stages = recorded_stages(row.get("stages"))
    return stages.mean if stages.is_open else _finite(row.get("rate_per_s"))


def offered_clients(row: Mapping[Any, Any]) -> float:
    """The clients of a row of the summary, with stages of clients their mean number over the window."""
    stages = recorded_stages(row.get("stages"))
    return stages.mean if stages and not stages.is_open else float(row["concurrency"])


def most_holders(row: Mapping[Any, Any]) -> float:
    """How many clients may work on one key at once."""
    # A strategy of a record that this version does not know is taken for a lock with one holder.
    known = CATALOGUE.get(str(row["strategy"]))
    if known is None:
        return 1
    return math.inf if known.judged_by is Judge.EFFECTS else known.permits(_arguments(row))


def promise(row: Mapping[Any, Any]) -> int:
    """How far the lock of `row` promises exclusion, as a level: a higher level is a stronger promise."""
    known = CATALOGUE.get(str(row["strategy"]))
    if known is None:
        return 0
    if known.judged_by is Judge.GUARD:
        # Of two clients at work the guard refuses one: a different promise from exclusion, and as strong.
        return _PROMISES.index(Exclusion.ALWAYS)
    return _PROMISES.index(known.with_arguments(_arguments(row)).exclusion)


def servers(row: Mapping[Any, Any]) -> int | None:
    """How many servers the lock of `row` needs, replicas included."""
    known, arguments = CATALOGUE.get(str(row["strategy"])), _arguments(row)
    return known.servers(arguments) + known.replicas(arguments) if known else None


def commands(row: Mapping[Any, Any]) -> int | None:
    """How many commands an uncontended grant of one key sends."""
    known = CATALOGUE.get(str(row["strategy"]))
    return known.commands_of_a_grant(_arguments(row)) if known else None


def _arguments(row: Mapping[Any, Any]) -> Arguments:
    args = row.get("args")
    if missing(args) or not args:
        return ()
    try:
        return parse_strategy(f"{row['strategy']}({args})")[1]
    except BadValue:
        return ()


def lock_name(row: Mapping[Any, Any]) -> str:
    """A strategy with its arguments, as in a matrix; old records may lack the arguments."""
    args = row.get("args")
    return str(row["strategy"]) if missing(args) or not args else f"{row['strategy']}({args})"


def lock_labels(rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Cell -> the name of its lock, with the backend where the run has the lock on several backends."""
    backends: dict[str, set[str]] = {}
    for row in rows:
        backends.setdefault(lock_name(row), set()).add(str(row.get("backend")))
    labels: dict[str, str] = {}
    for row in rows:
        name = lock_name(row)
        labels[str(row["cell"])] = f"{name} on {row['backend']}" if len(backends[name]) > 1 else name
    return labels


def contenders(rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Cell -> the name under which it is compared: its lock, or its retry policy where the run compares policies."""
    labels = lock_labels(rows)
    if not _compares_policies(rows):
        return labels

    def before(row: Mapping[Any, Any]) -> str:
        return f"{labels[str(row['cell'])]} with " if row["strategy"] == BASE_LINE else ""

    return {str(row["cell"]): f"{before(row)}{say_condition(_POLICY, axis_value(row[_POLICY]))}" for row in rows}


def _compares_policies(rows: Sequence[Mapping[Any, Any]]) -> bool:
    """Whether the run has one lock besides `none`, under several retry policies."""
    locks = {(lock_name(row), row.get("backend")) for row in rows if row["strategy"] != BASE_LINE}
    return len(locks) == 1 and len({row.get(_POLICY) for row in rows}) > 1
