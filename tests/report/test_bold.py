"""What is bold: no bold figure is worse than a ranked one that is not bold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybench.analysis.comparison import Figure, LoadComparison, Out, Place, Ratio, Standing
from pybench.report.rules import best_cells

RATIO = Ratio(1.1, 0.9, 1.3, 0.95, 5)


def standing(number, rank, value, figure=Figure.THROUGHPUT, *, compared=True, tied=1, out=None):
    place = Place.OUT if out else Place.BEHIND if rank != 1 else Place.TIED if tied > 1 else Place.AHEAD
    return Standing(
        lock=f"lock{number}",
        strategy=f"lock{number}",
        cell=f"lock{number}",
        place=place,
        rank=None if out else rank,
        figure=None if out else figure,
        value=None if out else value,
        beside=None,
        other=None,
        ratio=RATIO if compared and not out else None,
        out=out,
    )


def load(standings):
    return LoadComparison("", (), (), None, tuple(standings))


@st.composite
def loads(draw):
    """Ranks and values in any order, as ties by a test may have them, and locks without a rank."""
    figure = draw(st.sampled_from([Figure.THROUGHPUT, Figure.RESPONSE]))
    ranks = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    tied = ranks.count(1)
    values = [draw(st.floats(1, 1e6)) for _ in ranks]
    found = [
        standing(n, rank, value, figure, tied=tied) for n, (rank, value) in enumerate(zip(ranks, values, strict=True))
    ]
    outs = draw(st.lists(st.sampled_from([Out.UNSAFE, Out.SHARED, Out.EXCLUDES_NOBODY]), max_size=3))
    return load([*found, *(standing(100 + n, None, None, out=out) for n, out in enumerate(outs))])


@given(loads())
def test_no_ranked_value_that_is_not_bold_is_better_than_a_bold_one(given_load):
    best = best_cells(given_load)
    bold = [one for one in given_load.ranked if one.cell in best]
    plain = [one for one in given_load.ranked if one.cell not in best and one.rank != 1]
    assert all(one.rank == 1 for one in bold)
    for one in bold:
        sign = -1 if one.figure.least_is_best else 1
        assert all(sign * other.value <= sign * one.value for other in plain)


@given(loads())
def test_the_best_of_the_first_is_bold_unless_a_lock_behind_has_a_better_figure(given_load):
    first = given_load.first
    rivals = [one for one in given_load.standings if one.out not in (Out.SHARED, Out.EXCLUDES_NOBODY)]
    if not first or len(rivals) < 2:
        assert best_cells(given_load) == frozenset()
        return
    sign = -1 if first[0].figure.least_is_best else 1
    top = max(given_load.ranked, key=lambda one: sign * one.value)
    assert (top.cell in best_cells(given_load)) == (top.rank == 1)


def test_a_tie_with_a_lower_figure_than_a_lock_behind_is_not_bold():
    wide = load([standing(1, 1, 100.0, tied=2), standing(2, 1, 80.0, tied=2), standing(3, 3, 90.0)])
    assert best_cells(wide) == {"lock1"}


def test_what_nobody_compared_is_not_bold():
    pair = [standing(n, 1, 100.0 - n, tied=2, compared=False) for n in (1, 2)]
    assert best_cells(load(pair)) == frozenset()
