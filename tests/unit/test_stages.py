"""The axis `stages`: its notation, the axes that it sets, the plan of its cells, and their records."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.plans import planned, problems, refusal
from support.trials import SECOND, FakeResult, cell, record, totals

from pybench.analysis.acting_settings import acting_settings, gaps_are_longer
from pybench.analysis.comparison.entrants import loads_of, offered_clients, offered_rate
from pybench.analysis.overload import overload
from pybench.analysis.send_delay import under_test_is_limit
from pybench.errors import InputError
from pybench.matrix import expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.conditions import condition_texts, say_condition
from pybench.matrix.durations import LONGEST_DURATION_NS, MS, S
from pybench.matrix.stages import EXAMPLE, MOST_CLIENTS, NO_STAGES, Stage, Stages, recorded_stages
from pybench.notation import BadValue
from pybench.planning import control, probes
from pybench.planning.ending import ending_s
from pybench.planning.forecast import expected_per_s
from pybench.planning.plan import QUICK_STAGES_NS, TRIAL_OVERHEAD_NS, make_plan, quickened
from pybench.planning.trial_spec import trial_spec
from pybench.running.runner import slots_of
from pybench.strategies import ServerKind

RAMP = "0 -> 256 over 5s, 256 for 10s, 0 over 1s"
RATES = "0 -> 500/s over 4s, 100/s for 1s"

lengths = st.integers(1, LONGEST_DURATION_NS // 10)


def stages_of(values: st.SearchStrategy[float], *, is_open: bool) -> st.SearchStrategy[Stages]:
    stages = st.lists(st.builds(Stage, values, values, lengths), min_size=1, max_size=10)
    some = stages.map(lambda found: Stages(tuple(found), is_open=is_open))
    return some.filter(lambda found: found.highest > 0)


rates = st.one_of(st.just(0.0), st.floats(0.001, 10_000_000))
of_clients = stages_of(st.integers(0, MOST_CLIENTS).map(float), is_open=False)
any_stages = st.one_of(st.just(NO_STAGES), of_clients, stages_of(rates, is_open=True))


@given(any_stages)
def test_every_value_reads_back_from_its_canonical_text(value):
    assert Stages.parse(value.text) == value


@given(any_stages, any_stages)
def test_two_values_have_different_texts(one, other):
    assert (one.text == other.text) == (one == other)


@given(st.text(max_size=40) | st.text(max_size=20).map(lambda text: f"0 -> {text} over 1s, 3 for {text}"))
def test_no_text_makes_the_parser_fail_in_any_way_but_its_own(text):
    with contextlib.suppress(BadValue):
        Stages.parse(text)


@given(any_stages)
def test_a_value_is_one_element_of_a_list_and_one_value_of_an_option(value):
    assume(value.text != "3 for 1s")
    by_list = matrix_from_mapping({"axes": {"strategy": "mutex", "stages": [value.text, "3 for 1s"]}})
    by_option = matrix_from_options(strategy="mutex", stages=[value.text, "3 for 1s"])
    assert by_list.axes.stages == by_option.axes.stages == (value, Stages.parse("3 for 1s"))


def test_the_forms_of_a_stage_mean_the_same_load():
    ramp = Stages((Stage(0.0, 256.0, 5 * S), Stage(256.0, 256.0, 10 * S), Stage(256.0, 0.0, 1 * S)))
    assert Stages.parse(RAMP) == ramp
    assert Stages.parse("0->256 over 5s,256 over 10s, 256 -> 0 over 1000ms") == ramp
    assert ramp.text == RAMP == EXAMPLE
    assert ramp.stage_texts == ["0 -> 256 over 5s", "256 for 10s", "256 -> 0 over 1s"]
    assert Stages.parse("0 -> 500/s over 4s, 100/s for 1s").text == "0/s -> 500/s over 4s, 100/s for 1s"


def test_a_stage_may_begin_at_another_load_than_the_last_one_ended():
    assert Stages.parse("10 for 1s, 50 -> 20 over 2s").text == "10 for 1s, 50 -> 20 over 2s"


def test_the_mean_is_weighted_by_the_lengths_of_the_stages():
    ramp = Stages.parse(RAMP)
    assert (ramp.highest, ramp.length_ns) == (256.0, 16 * S)
    assert ramp.mean == pytest.approx((128 * 5 + 256 * 10 + 128) / 16)
    assert (NO_STAGES.highest, NO_STAGES.mean, NO_STAGES.length_ns) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["0 -> 3 over 1s"], f'a list in a list is not a value of stages; one value is one text: "{EXAMPLE}"'),
        (256, f'256 is not a load in stages; use for example "{EXAMPLE}"'),
        (
            "256 over 5s",
            'the first stage "256 over 5s" does not say where it begins; use 0 -> 256 over 5s, or 256 for 5s; in a '
            "list in brackets, quote each value",
        ),
        (
            "0 -> 256 for 5s",
            '"0 -> 256 for 5s" holds two values: for keeps one value, and over goes to another; use 0 -> 256 over 5s, '
            "or 256 for 5s",
        ),
        (
            "3 for 1s, ramp",
            f'"ramp" is not a stage; use for example "{EXAMPLE}"; each stage is given over or for a time',
        ),
        (
            "0.5 for 1s",
            '"0.5" is not a load; clients are a whole number, as in 256; arrivals per second have /s, as in 5000/s',
        ),
        (
            "0 -> 3 over 1s, 5/s for 1s",
            '"0 -> 3 over 1s, 5/s for 1s" mixes clients and arrivals per second; write all as clients (256), or all as '
            "rates (5000/s)",
        ),
        ("0 for 1s", f'"0 for 1s" offers no load; give a value above 0, as in {EXAMPLE}'),
        ("3 for 0", 'the stage "3 for 0" takes no time; give it a length, as in 256 over 5s'),
        ("3 for 5", '"5" has no unit; use 5s or 5ms'),
        ("0 -> 30/m over 1s", '"30/m" is not a rate; rates are per second: 0.5/s'),
        ("0 -> 2000000 over 1s", "2000000 is out of range; at most 1000000"),
        ("3 for 20h, 4 for 5h", 'the stages of "3 for 20h, 4 for 5h" are too long; at most 24h together'),
        (", ".join(["3 for 1s"] * 101), "101 stages are too many; at most 100"),
    ],
)
def test_what_is_no_load_in_stages_is_refused_with_what_to_write(value, told):
    assert refusal(Stages.parse, value) == told


def test_a_problem_is_named_where_it_stands_in_the_file(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("axes:\n  strategy: mutex\nfixed:\n  stages: 0 -> 256 over 5s, 256 for ever\n  concurrency: 64\n")
    with pytest.raises(InputError) as caught:
        load_matrix(path)
    assert 'm.yaml:4:11: fixed.stages: "ever" is not a duration' in caught.value.message
    path.write_text("axes:\n  strategy: mutex\nfixed:\n  stages: 0 -> 256 over 5s\n  concurrency: 64\n")
    with pytest.raises(InputError) as caught:
        load_matrix(path)
    assert caught.value.message.endswith(
        "m.yaml:5:16: fixed.concurrency: concurrency contradicts the stages 0 -> 256 over 5s, which set it to their "
        "highest value, 256; leave concurrency out (cells with a steady load belong under include)"
    )


def test_stages_set_the_clients_of_a_closed_loop_and_the_rate_of_an_open_one():
    (closed,) = expand(matrix_from_options(strategy="mutex", stages=RAMP))
    assert (closed.concurrency, closed.rate_per_s) == (256, None)
    assert closed.id == f"mutex stages={RAMP}"
    (opened,) = expand(matrix_from_options(strategy="mutex", stages=RATES, concurrency="16", arrivals="poisson"))
    assert (opened.concurrency, opened.rate_per_s, opened.arrival_process) == (16, 500.0, "poisson")
    assert opened.id == "mutex arrivals=poisson concurrency=16 stages=0/s -> 500/s over 4s, 100/s for 1s"
    assert closed.columns()["stages"] == RAMP
    assert cell().columns()["stages"] == "none"


def test_the_value_that_stages_set_may_be_given_and_makes_no_other_cell():
    (given_too,) = expand(matrix_from_options(strategy="mutex", stages=RAMP, concurrency="256"))
    (alone,) = expand(matrix_from_options(strategy="mutex", stages=RAMP))
    assert given_too == alone
    assert expand(matrix_from_options(strategy="mutex", stages=RATES, rate="500/s"))


def test_another_value_of_the_axis_that_stages_set_is_an_error():
    assert problems(strategy="mutex", stages=RAMP, concurrency="256,64").startswith("--concurrency: concurrency contra")
    assert problems(strategy="mutex", stages=RATES, rate="600/s").startswith(
        "--rate: rate contradicts the stages 0/s ->"
    )
    assert problems(strategy="mutex", stages=RAMP, rate="5/s") == (
        f"--rate: the stages {RAMP} are clients, and a rate makes the loop open; leave rate out, or write the stages "
        "in arrivals per second"
    )


def test_cells_with_a_steady_load_stand_beside_under_include():
    mapping = {
        "axes": {"strategy": "mutex", "stages": ["none", RAMP]},
        "include": [{"strategy": "mutex", "concurrency": 64}, {"strategy": "mutex", "stages": RATES, "concurrency": 9}],
    }
    cells = expand(matrix_from_mapping(mapping))
    assert [(one.concurrency, one.stages.text != "none") for one in cells] == [
        (1, False),
        (256, True),
        (64, False),
        (9, True),
    ]
    mapping["include"] = [{"strategy": "mutex", "stages": RAMP, "concurrency": 9}]
    with pytest.raises(InputError, match=r"include.concurrency: concurrency contradicts"):
        matrix_from_mapping(mapping)
    mapping = {
        "axes": {"strategy": "mutex"},
        "fixed": {"concurrency": 9},
        "include": [{"strategy": "mutex", "stages": RAMP}],
    }
    with pytest.raises(InputError, match=r"include.stages: concurrency contradicts"):
        matrix_from_mapping(mapping)


def test_words_of_an_open_loop_need_a_rate_or_stages_of_arrivals():
    assert "an effect in an open loop only" in problems(strategy="mutex", stages=RAMP, arrivals="poisson")
    assert matrix_from_options(strategy="mutex", stages=[RAMP, RATES], max_in_flight="99")


def test_exclude_finds_a_cell_by_its_stages_and_by_the_clients_that_they_set():
    mapping = {"axes": {"strategy": "mutex", "stages": ["none", RAMP]}, "exclude": [{"concurrency": 256}]}
    assert [one.id for one in expand(matrix_from_mapping(mapping))] == ["mutex"]
    mapping["exclude"] = [{"stages": RAMP}]
    assert [one.id for one in expand(matrix_from_mapping(mapping))] == ["mutex"]


def test_a_manifest_keeps_the_stages_so_that_a_run_can_be_resumed():
    matrix = matrix_from_options(strategy="mutex", stages=[RAMP, "none"], duration="1s")
    assert matrix_from_mapping(matrix.to_dict()) == matrix


def test_the_core_is_told_the_stages_and_their_highest_load():
    (closed,) = expand(matrix_from_options(strategy="mutex", stages="0 -> 8 over 5s, 8 for 1s"))
    (opened,) = expand(matrix_from_options(strategy="mutex", stages=RATES))
    assert spec_of(closed)["stages"] == [
        {"from": 0.0, "to": 8.0, "length_ns": 5 * S},
        {"from": 8.0, "to": 8.0, "length_ns": 1 * S},
    ]
    assert (spec_of(closed)["concurrency"], spec_of(closed)["loop"]) == (8, {"kind": "closed"})
    assert spec_of(opened)["loop"]["rate_per_s"] == 500.0
    assert "stages" not in spec_of(cell())


def spec_of(one):
    times = {"seed": 1, "warmup_ns": 0, "duration_ns": one.window_ns(2 * S)}
    return trial_spec(one, [{"kind": "redis"}], cores=[], key_prefix="p", client_name="c", **times)


def test_a_window_is_as_long_as_its_stages_whatever_the_duration_is():
    plan = planned(strategy="mutex", stages=[RAMP, "none"], duration="1s", warmup="500ms", trials=3)
    assert sorted({slot.planned_s for slot in slots_of(plan)}) == [1.5, 16.5]
    steady = planned(strategy="mutex", duration="1s", warmup="500ms", trials=3)
    end_s = ending_s(2, 2 * 3) - ending_s(1, 3)
    assert plan.seconds - steady.seconds == pytest.approx(3 * (16.5 + TRIAL_OVERHEAD_NS / S) + end_s)
    assert plan.seconds_per_trial == pytest.approx(16.5 + TRIAL_OVERHEAD_NS / S)


def test_a_quick_run_keeps_the_values_and_shortens_the_stages_everywhere():
    mapping = {
        "axes": {"strategy": ["mutex", "naive"], "stages": [RAMP, "3 for 1s"]},
        "exclude": [{"strategy": "naive", "stages": RAMP}],
        "thresholds": [{"where": {"stages": RAMP}, "check": "violations == 0"}],
    }
    matrix = quickened(matrix_from_mapping(mapping))
    shorter, short = matrix.axes.stages
    assert shorter.text == "0 -> 256 over 625ms, 256 for 1.25s, 0 over 125ms"
    assert short.text == "3 for 1s", "it is short enough"
    plan = make_plan(matrix)
    assert [one.id for one in plan.cells] == [
        f"mutex stages={shorter.text}",
        "mutex stages=3 for 1s",
        "naive stages=3 for 1s",
    ]
    assert plan.notes == []


@given(of_clients)
def test_shortened_stages_are_never_empty_and_about_as_long_as_asked(value):
    shorter = value.shortened_to(QUICK_STAGES_NS)
    assert [(one.begin, one.end) for one in shorter.stages] == [(one.begin, one.end) for one in value.stages]
    assert all(one.length_ns > 0 for one in shorter.stages)
    assert shorter.length_ns <= QUICK_STAGES_NS + len(value.stages) * MS


def test_a_forecast_counts_the_mean_load_and_the_length_of_the_stages():
    (opened,) = expand(matrix_from_options(strategy="mutex", stages="0 -> 400/s over 4s", concurrency="16", keys="100"))
    assert expected_per_s(opened) == pytest.approx(200.0)
    (tail,) = planned(strategy="mutex", stages="0 -> 400/s over 4s", concurrency="16", trials=5, duration="1h").tails
    assert tail.endswith("each trial of 4s is too short, so samples of all trials are merged")
    assert "stages (0/s -> 400/s over 4s)" in tail


def test_a_rate_that_round_trips_make_impossible_is_the_highest_of_the_stages():
    (warning,) = planned(
        strategy="mutex", stages="0 -> 500/s over 4s", concurrency="16", keys="1000", rtt="20ms"
    ).warnings
    assert warning.startswith("the highest rate of the stages, 500/s, cannot be kept: 16 clients of mutex at an rtt")


def test_the_checks_of_a_run_itself_have_a_steady_load():
    (one,) = expand(matrix_from_options(strategy="mutex", stages=RAMP))
    idle = control.round_trip_cell([one], "redis", ServerKind.REDIS)
    checks = [idle, *control.control_cells([one]), *probes.probe_cells([one])]
    assert not any(check.stages for check in checks)


def test_conditions_name_the_stages_once_and_not_the_clients_that_they_set():
    assert say_condition("stages", RAMP) == f"stages ({RAMP})"
    assert say_condition("stages", "none") == "no stages"
    told = condition_texts([("concurrency", 256), ("keys", 1), ("stages", RAMP)])
    assert told == ["1 key", f"stages ({RAMP})"]
    assert condition_texts([("concurrency", 16), ("rate_per_s", 500.0), ("stages", RATES)]) == [
        "16 clients",
        f"stages ({RATES})",
    ]
    assert condition_texts([("concurrency", 2), ("stages", "none")]) == ["2 clients", "no stages"]


def row(stages: str, **fields: object) -> dict[str, object]:
    usual = {"cell": stages, "strategy": "mutex", "args": "", "backend": "redis", "retry": "none", "verdict": "SAFE"}
    return {**usual, "concurrency": 256, "rate_per_s": None, "stages": stages, "safe_grants_per_s": 5.0, **fields}


def test_loads_of_different_stages_are_not_compared_and_named_by_their_stages_alone():
    rows = [row(RAMP), row("0 -> 64 over 1s", concurrency=64)]
    assert dict(loads_of(rows)[0].conditions) == {"stages": RAMP}, "their clients tell nothing beside them"
    loads = loads_of([*rows, row("none", concurrency=1)])
    assert [load.text for load in loads] == [f"stages ({RAMP})", "stages (0 -> 64 over 1s)", "1 client, no stages"]
    both = loads_of([row(RAMP), row("none", concurrency=1), row("none", concurrency=16, cell="16")])
    assert [load.text for load in both] == [f"stages ({RAMP})", "1 client, no stages", "16 clients, no stages"]


def test_what_was_offered_is_the_mean_of_the_stages():
    assert offered_rate(row(RATES, rate_per_s=500.0)) == pytest.approx((250 * 4 + 100) / 5)
    assert offered_rate(row("none", rate_per_s=500.0)) == 500.0
    assert offered_rate(row(RAMP)) is None
    assert offered_clients(row(RAMP)) == pytest.approx(208)
    assert offered_clients(row("none")) == 256
    assert offered_rate({"rate_per_s": 5.0}) == 5.0, "a record of an older schema"


def test_an_overload_is_told_by_the_mean_rate_and_does_not_claim_that_waits_grow_for_ever():
    slow = row(RATES, rate_per_s=500.0, grants_per_s=150.0)
    assert overload(slow) == "on average 220/s offered, 150/s granted: waits grew while more came than was granted"
    assert overload({**slow, "grants_per_s": 219.0}) is None, "at most 500/s were offered, on average 220/s"
    assert overload({**slow, "drops": 70}) == (
        "on average 220/s offered, 150/s granted: waits grew until 70 arrivals were dropped"
    )


def test_means_over_a_varying_load_do_not_show_that_the_generator_was_the_limit():
    idle = {"server_cpu_share": 0.4, "utilisation": 0.5, "contention_rate": 0.1}
    assert under_test_is_limit(**idle, varies=True)
    assert not under_test_is_limit(**idle)


def test_idle_connections_of_a_low_load_are_told():
    closed = {"strategy": "pg-advisory", "args": "", "hold": "0", "think": "0", "retry": "none"}
    closed |= {"connections": "per-client", "concurrency": 8}
    server = [{"label": "postgres 17", "product": "postgres", "settings": {"idle_session_timeout_ms": 3_000}}]
    (told,) = acting_settings(server, [{**closed, "stages": "0 -> 8 over 4s"}])
    assert "stages with fewer clients" in told
    assert not list(acting_settings(server, [{**closed, "stages": "8 for 4s"}]))
    assert not list(acting_settings(server, [{**closed, "stages": "0 -> 8 over 2s"}]))
    opened = {"rate_per_s": 500.0, "concurrency": 4, "connections": "per-client", "arrival_process": "constant"}
    assert not gaps_are_longer({**opened, "stages": "400/s -> 500/s over 4s"}, 100 * MS)
    assert gaps_are_longer({**opened, "stages": "10/s -> 500/s over 4s"}, 100 * MS)
    assert gaps_are_longer({**opened, "stages": "0 -> 500/s over 4s"}, 100 * MS)


def test_a_record_keeps_what_was_offered_in_each_step():
    result = FakeResult()
    assert [step["offered"] for step in record(result=result).timeline] == [None, None]
    result.timeline["offered"] = np.array([1.5, 4.0])
    kept = record(cell(stages=Stages.parse("0 -> 4 over 2s"), concurrency=4), result=result)
    assert [step["offered"] for step in kept.timeline] == [1.5, 4.0]
    assert kept.row["stages"] == "0 -> 4 over 2s"


def test_the_clients_served_are_at_most_the_mean_of_the_stages_and_none_is_called_starved():
    result = FakeResult(totals=totals(grants=2_000_000, window_ns=2 * SECOND))
    result.clients["grants"] = np.array([2_000, 0], dtype=np.uint64)
    steady = record(cell(concurrency=4), result=result).row
    assert (steady["clients_served"], steady["starved_clients"]) == (4.0, 1)
    varying = record(cell(stages=Stages.parse("0 -> 4 over 2s"), concurrency=4), result=result).row
    assert (varying["clients_served"], varying["starved_clients"]) == (2.0, None)


def test_a_text_of_another_version_counts_as_no_stages():
    assert recorded_stages("sine(3s)") is NO_STAGES
    assert recorded_stages(None) is NO_STAGES
    assert recorded_stages(RAMP).text == RAMP
