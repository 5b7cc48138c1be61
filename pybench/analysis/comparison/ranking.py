"""The comparison of the locks of a run: a pure function of its summary and its trials.

In a closed loop throughput places the locks of a load. In an open loop all locks that keep up have the same throughput.
The p99 response places these locks, or the longest wait where trials have too few grants for a p99. A lock that grants
less than 98 % of the arrivals is compared by throughput.
Where each lock searched for its limit, the limits place the locks: a higher limit needs an interval that lies above.
Where the load generator was late, responses do not measure the lock: such a cell of an open loop is not ranked.
The median over trials decides which lock is first; the tests of `pairs` decide which locks are tied with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pybench.analysis.comparison.choice import break_tie, choose
from pybench.analysis.comparison.claims import Comparison, Figure, LoadComparison, Out, Place, Standing
from pybench.analysis.comparison.entrants import Entrant, LoadCells, contenders, loads_of, promise
from pybench.analysis.comparison.rivals import Rivals, deciding, inverse, shown, tested_rivals, waiting_longer
from pybench.analysis.send_delay import late_cells

if TYPE_CHECKING:
    import pandas as pd


def compare_locks(summary: pd.DataFrame, trials: pd.DataFrame | None = None) -> Comparison:
    """Where every lock of a run stands at every load. `summary` as in `summary.csv`, `trials` as in `trials.parquet`.

    Columns that an older record lacks are unknown. Without `trials` no lock is ahead of another.
    """
    rows = summary.to_dict("records")
    labels = contenders(rows)
    locks = tuple(dict.fromkeys(labels.values()))
    late = late_cells(trials) if trials is not None and "arrivals" in trials else {}
    loads = loads_of(rows, late.keys())
    rivals = tested_rivals(loads, trials)
    placed = [_load(load, locks, rivals) for load in loads]
    compared = tuple(
        replace(found, best=choose([load], [found], rivals).locks) for load, found in zip(loads, placed, strict=True)
    )
    ranked = [one for load in loads for one in load.entrants if one.out is None]
    fewest = min((int(one.figure("trials") or 0) for one in ranked), default=0)
    promises = {one.lock: promise(one.row) for one in ranked}
    return Comparison(compared, locks, labels, choose(loads, compared, rivals), fewest, promises)


def _load(load: LoadCells, locks: Sequence[str], rivals: Rivals) -> LoadComparison:
    ranked = sorted((one for one in load.entrants if one.out is None), key=lambda one: _order(one, load))
    placed = _placed(ranked, load, rivals)
    first = {standing.cell for standing in placed if standing.rank == 1}
    group = [one for one in ranked if one.cell in first]
    out = [_out(one) for one in load.entrants if one.out is not None]
    here = {one.lock for one in load.entrants}
    absent = [_absent(lock) for lock in locks if lock not in here]
    return LoadComparison(
        text=load.text,
        conditions=load.conditions,
        values=load.values,
        offered_per_s=load.offered_per_s,
        standings=(*placed, *out, *absent),
        tie_breaks=tuple(break_tie(group, rivals, placed_by={one.figure for one in placed if one.rank == 1})),
    )


def _placed(ranked: Sequence[Entrant], load: LoadCells, rivals: Rivals) -> list[Standing]:
    """The standings of the locks of `ranked`, which are sorted from the best."""
    if len(ranked) < 2:
        return [_standing(one, None, Place.ALONE, 1, load, rivals) for one in ranked]
    # In an open loop waits have already placed the locks that keep up, and the waits of the others show overload.
    longer = waiting_longer(ranked, rivals) if load.offered_per_s is None and not load.is_search else {}
    ranks = _ranks(ranked, load, rivals)
    first = ranked[0]
    tied = sum(rank == 1 for rank in ranks.values())
    found = []
    for one in ranked:
        place = Place.BEHIND if ranks[one.cell] > 1 else Place.TIED if tied > 1 else Place.AHEAD
        beside = ranked[1] if one is first else first
        standing = _standing(one, beside, place, ranks[one.cell], load, rivals)
        shares = list(ranks.values()).count(ranks[one.cell]) > 1
        found.append(replace(standing, waits_longer=longer.get(one.cell), shares_rank=shares))
    # Tied locks stand together, whatever their medians are.
    return sorted(found, key=lambda standing: standing.rank or 0)


def _ranks(ranked: Sequence[Entrant], load: LoadCells, rivals: Rivals) -> dict[str, int]:
    """The rank of each cell: a lock shares the rank of the best remaining lock unless that is measurably better."""
    ranks: dict[str, int] = {}
    left = list(ranked)
    while left:
        best, rank = left[0], len(ranks) + 1
        tied = [one for one in left if one is best or not rivals.better(best, one, deciding(best, one, load))]
        ranks |= {one.cell: rank for one in tied}
        left = [one for one in left if one not in tied]
    return ranks


def _standing(
    one: Entrant, beside: Entrant | None, place: Place, rank: int, load: LoadCells, rivals: Rivals
) -> Standing:
    figure = deciding(one, beside or one, load)
    ratio = None
    if beside is not None:
        ratio = rivals.ratio(one, beside, figure)
        ratio = inverse(ratio) if ratio is not None and place is Place.BEHIND else ratio
    return Standing(
        lock=one.lock,
        strategy=one.strategy,
        cell=one.cell,
        place=place,
        rank=rank,
        figure=figure,
        value=shown(one, figure),
        beside=beside.lock if beside else None,
        other=shown(beside, figure) if beside else None,
        ratio=ratio,
        throughput=one.figure("safe_grants_per_s"),
        starved=rivals.starving.get(one.cell),
        unserved=rivals.unserved.get(one.cell),
        gives_up=rivals.gives_up(one),
    )


def _out(one: Entrant) -> Standing:
    holders = one.holders if one.out in {Out.SHARED, Out.EXCLUDES_NOBODY} else None
    return Standing(
        one.lock, one.strategy, one.cell, Place.OUT, None, None, None, None, None, None, out=one.out, holders=holders
    )


def _absent(lock: str) -> Standing:
    strategy = lock.split("(")[0].split(" on ")[0]
    return Standing(lock, strategy, None, Place.OUT, None, None, None, None, None, None, out=Out.NOT_MEASURED)


def _order(one: Entrant, load: LoadCells) -> tuple[bool, float]:
    """A sort key with the best first: locks that keep up come before locks that do not."""
    if load.is_search:
        return False, -(shown(one, Figure.LIMIT) or 0.0)
    if load.has_kept_up(one):
        wait = shown(one, load.wait_figure)
        # A lock with too few grants for a p99 comes after the locks that have a p99.
        return False, math.inf if wait is None else wait
    return load.offered_per_s is not None, -(one.figure("safe_grants_per_s") or 0.0)
