"""The axis `mode` and warm-ups until steady: their notation, the cells they make, and what a plan says of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench.errors import InputError
from pybench.matrix import expand, matrix_from_mapping, matrix_from_options
from pybench.matrix.durations import MS, S
from pybench.matrix.search_modes import MEASURE, SearchMode, recorded_mode
from pybench.matrix.warmups import Warmup
from pybench.notation import BadValue
from pybench.planning.plan import make_plan, quickened
from pybench.planning.searches import ARRIVALS, bounds_of

modes = st.builds(
    SearchMode,
    st.sampled_from(["saturate", "curve"]),
    st.none() | st.floats(0.001, 1e7).map(lambda rate: float(f"{rate:.4g}")),
    st.floats(0.005, 0.5).map(lambda share: float(f"{share:.3g}")),
)


@given(st.just(MEASURE) | modes)
def test_a_mode_is_read_back_from_its_text(mode: SearchMode):
    assert SearchMode.parse(mode.text) == recorded_mode(mode.text) == mode


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("saturat", "is not a mode", "did you mean saturate?"),
        ("measure(start=1/s)", "takes no arguments", "saturate"),
        ("curve(500/s)", "has no name", "curve(start=500/s)"),
        ("curve(first=500/s)", "has no field", "start"),
        ("curve(start=500)", "is not a rate", "500/s"),
        ("saturate(within=0.6)", "", "0.5"),
        (7, "is not a mode", "measure, saturate, curve"),
    ],
)
def test_a_wrong_mode_is_refused_with_what_to_type(text: object, message: str, hint: str):
    with pytest.raises(BadValue) as refused:
        SearchMode.parse(text)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_search_is_an_open_loop_without_a_rate_of_its_own():
    (cell,) = expand(matrix_from_options(strategy="mutex", mode="curve(start=500/s)", arrivals="poisson"))
    assert cell.id == "mutex arrivals=poisson mode=curve(start=500/s)"
    assert cell.is_open
    columns = cell.columns()
    assert (columns["rate_per_s"], columns["arrival_process"]) == (None, "poisson")
    probe = cell.at_rate(123.0)
    assert (probe.id, probe.rate_per_s, probe.mode) == (cell.id, 123.0, MEASURE)
    assert probe.to_core()["loop"]["rate_per_s"] == 123.0
    with pytest.raises(InputError, match="arrivals has an effect in an open loop only"):
        matrix_from_options(strategy="mutex", arrivals="poisson")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rate": "50/s"}, "mode saturate sets the rate itself; drop rate"),
        ({"stages": "0 -> 50/s over 2s"}, "mode saturate sets the rate itself; drop stages"),
        ({"think": "1ms"}, "think has no effect in an open loop"),
        (
            {"hold": "2s"},
            "clients and keys allow at most 0.5/s, and a search needs 20 arrivals in a window",
        ),
    ],
)
def test_a_search_that_cannot_be_is_refused(options: dict[str, str], reason: str):
    plan = make_plan(matrix_from_options(strategy="mutex", mode="saturate", **options))
    assert not plan.cells
    assert plan.refused[0].reason.startswith(reason)


def test_a_plan_says_how_many_probes_a_search_takes_and_how_long():
    searching, usual = (
        make_plan(matrix_from_options(strategy="mutex", hold="10ms", trials=2, mode=mode))
        for mode in ("curve", "measure")
    )
    assert searching.searches == ["searches for the limit of 1 cell: about 22 probes a trial, at most 58"]
    assert usual.searches == []
    assert searching.seconds > 10 * usual.seconds_per_trial
    assert searching.seconds < searching.seconds_at_most
    assert searching.seconds_at_most - searching.seconds == pytest.approx(2 * (58 - 22) * usual.seconds_per_trial)
    assert usual.seconds_at_most == usual.seconds
    assert searching.to_dict()["searches"] == searching.searches


def test_the_first_rate_differs_a_little_from_trial_to_trial():
    matrix = matrix_from_options(strategy="mutex", hold="10ms", duration="10s", mode="saturate")
    (cell,) = expand(matrix)
    starts = [bounds_of(cell, matrix, trial).start for trial in range(1, 30)]
    assert len(set(starts)) == len(starts)
    assert max(starts) <= 1.05 * min(starts)
    assert starts == [bounds_of(cell, matrix, trial).start for trial in range(1, 30)], "a resumed run has the same"
    window_s = 10
    assert all(bounds_of(cell, matrix, trial).least == ARRIVALS / window_s for trial in range(1, 30))


def test_a_given_first_rate_is_taken_even_above_what_the_plan_expects():
    matrix = matrix_from_options(strategy="mutex", hold="10ms", mode="saturate(start=5000/s)")
    (cell,) = expand(matrix)
    bounds = bounds_of(cell, matrix, 1)
    assert 5_000 / 1.05 <= bounds.start <= 5_000 < bounds.most


@pytest.mark.parametrize(
    ("given", "warmup", "text"),
    [
        ("500ms", Warmup(500 * MS), "500ms"),
        (0, Warmup(0), "0"),
        ("steady", Warmup(10 * S, until_steady=True), "steady"),
        ("steady(at_most=3500ms)", Warmup(3_500 * MS, until_steady=True), "steady(at_most=3.5s)"),
    ],
)
def test_a_warm_up_is_read_and_written(given: object, warmup: Warmup, text: str):
    assert Warmup.parse(given) == warmup
    assert warmup.text == text
    matrix = matrix_from_mapping({"axes": {"strategy": "mutex"}, "warmup": given})
    assert matrix.warmup == matrix_from_mapping(matrix.to_dict()).warmup == warmup


@pytest.mark.parametrize(
    "text", ["steady(at_most=2s)", "steady(at_most=10m)", "steady(most=3s)", "stedy", "steady(3s)", "steady(at_most=3)"]
)
def test_a_wrong_warm_up_is_refused(text: str):
    with pytest.raises(BadValue) as refused:
        Warmup.parse(text)
    assert refused.value.hint


def test_a_warm_up_until_steady_is_refused_with_stages_and_shortened_by_quick():
    matrix = matrix_from_options(strategy="mutex", warmup="steady", stages="0 -> 4 over 1s")
    assert "a warm-up until steady delays stages" in make_plan(matrix).refused[0].reason
    assert quickened(matrix).warmup == Warmup(3 * S, until_steady=True)
    assert quickened(matrix_from_options(strategy="mutex")).warmup == Warmup(100 * MS)
