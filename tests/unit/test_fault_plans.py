"""The axis `faults`: its notation, the cells that it refuses, and what is promised under faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import planned, problems, refusal
from support.trials import CAUGHT, ROWS, FakeResult, cell, record, totals

from pybench.analysis import fault_promises
from pybench.analysis.probe_verdicts import overruled
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Judgement, Verdict, judge
from pybench.errors import InputError
from pybench.matrix import expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.conditions import say_condition
from pybench.matrix.durations import MS, S
from pybench.matrix.fault_kinds import KINDS, Does, Lasting, Target, kind_of
from pybench.matrix.faults import EXAMPLE, NO_FAULTS, Fault, Faults, recorded_faults
from pybench.planning import control, fault_rules, probes
from pybench.planning.needs import Demand, Group, Part, group_for, parts_of
from pybench.planning.plan import make_plan, quickened
from pybench.planning.trial_spec import trial_spec
from pybench.records.fault_rows import Carried, fault_columns, fault_rows
from pybench.strategies import CATALOGUE, ServerKind, parse_strategy

KILL = "kill redis[0] at 1s for 500ms"
BREAKING = {"redis": "redis://localhost:1", "break_my_servers": True}


def why_refused(**options: object) -> str:
    [refused] = planned(**options).refused
    return refused.reason


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    target = draw(st.sampled_from(Target))
    do = draw(st.sampled_from([name for name in KINDS if target in kind_of(name, target).targets]))
    kind = kind_of(do, target)
    values = {"by": st.integers(1, S), "bytes_per_s": st.integers(1, 10**9), "nth": st.integers(1, 9)}
    given_ = {name: draw(values[name]) for name in kind.parameters if name in values}
    if do == "clock":
        given_["by"] = draw(st.integers(1, 10**6)) * draw(st.sampled_from([MS, -MS]))
    if do == "restart" and target is Target.REDIS and draw(st.booleans()):
        given_["data"] = "lose"
    lengths = {
        Lasting.MOMENT: st.just(0),
        Lasting.AT_ONCE: st.integers(0, S),
        Lasting.TO_THE_END: st.one_of(st.none(), st.integers(1, S)),
        Lasting.GIVEN: st.integers(1, S),
    }
    length = draw(lengths[kind.lasting])
    index = draw(st.integers(0, 40))
    return Fault(draw(st.integers(0, 10 * S)), do, target, index, length, tuple(given_.items()))


@given(faults())
def test_the_text_of_a_fault_reads_back_to_it(fault: Fault):
    assert Fault.parse(fault.text) == fault
    assert Faults.parse(fault.text) == Faults((fault,))
    fields = {"at": f"{fault.at_ns}ns", "do": fault.do, "target": fault.target}
    fields |= {} if fault.for_ns is None or fault.kind.lasting is Lasting.MOMENT else {"for": f"{fault.for_ns}ns"}
    texts = {name: fault.kind.parameters[name].text(value) for name, value in fault.arguments}
    assert Fault.parse(fields | texts) == fault


def test_a_plan_is_in_the_order_of_time_and_one_text():
    plan = Faults.parse(
        [{"at": "1s", "do": "kill", "target": "redis[0]", "for": "500ms"}, "pause redis at 10ms for 5ms"]
    )
    assert plan.text == f"pause redis[0] at 10ms for 5ms, {KILL}"
    assert plan.names == ["pause redis[0]", "kill redis[0]"]
    assert Faults.parse("none") == NO_FAULTS
    assert NO_FAULTS.text == "none"
    assert Faults.parse(EXAMPLE).text == EXAMPLE


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("kil redis[0] at 1s", 'do: "kil" is not a kind of fault; did you mean kill?'.removeprefix("do: ")),
        ("kill redys[0] at 1s", "did you mean redis[0]?"),
        ("kill redis[0]", "is not a fault; use for example"),
        ("kill redis[0] at 5", "has no unit; use 5s or 5ms"),
        ("kill client[0] at 1s", "kill is not for client; it is for redis[0] or postgres[0]"),
        ("crash redis[0] at 1s", "crash is not for redis; it is for client[0]"),
        ("slow redis[0] at 1s", "slow needs a length"),
        ("pause client[0] at 1s", "pause needs a length"),
        ("script-flush redis[0] at 1s for 1s", "happens at one moment; remove `for`"),
        ("pause redis[0] at 1s for 0", "a pause of 0 does nothing"),
        ("delay redis[0] at 1s", "delay needs by; for example delay(by=20ms)"),
        ("restart(data=lost) redis[0] at 1s", '"lost" is not one of keep, lose; did you mean lose?'),
        ("restart(data=lose) postgres at 1s", "a Postgres that is started again has its data; leave data out"),
        ("kill(data=lose) redis[0] at 1s", 'kill has no argument "data"; write kill alone'),
        ({"at": "1s", "do": "kill", "target": "redis[0]", "fro": "1s"}, 'no field "fro"; did you mean for?'),
        ({"do": "kill", "target": "redis[0]"}, "a fault needs at"),
        ({"at": "1s", "do": "kill", "targt": "redis[0]"}, 'no field "targt"; did you mean target?'),
        ({"at": "1s", "do": "restart(data=lose)", "data": "lose", "target": "redis"}, "data is given twice"),
        ("kill redis[0] at 1s, pause redis[0] at 2s", "begins while kill redis[0] at 1s lasts"),
        (f"{KILL}, slow redis[0] at 1s for 1s", "lasts; let the earlier one end first"),
        ("client-kill redis[0] at 1s, script-flush redis[0] at 1s", "begin together"),
        ("clock redis[0] at 1s", "clock needs by; for example clock(by=+10s) redis[0] at 1s"),
        ("clock(by=1us) redis[0] at 1s", "is not in whole milliseconds"),
        ("clock(by=-0) redis[0] at 1s", "0 changes nothing"),
        ("failover(lag=2s) redis[0] at 1s", "is too long; at most 1s"),
        ("failover postgres at 1s", "failover is not for postgres; it is for redis[0]"),
        ("clock(by=+1s) postgres at 1s", "it is for redis[0]: pybench starts no Postgres under libfaketime"),
        ("kill process[0] at 1s for 1s", "moment; remove `for`: a killed process is not started again"),
        ([], "is not a plan of faults"),
    ],
)
def test_a_wrong_fault_is_refused_with_what_to_type(value: object, message: str):
    assert message in refusal(Faults.parse, value)


def test_the_line_of_a_wrong_fault_is_named(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text(
        "fixed: {strategy: mutex}\naxes:\n  faults:\n    - none\n    - - {at: 1s, do: pause, target: 'redis[0]'}\n"
        "      - {at: 2s, do: kill, target: 'rediss[0]'}\n"
    )
    with pytest.raises(InputError, match=r":6:36: axes.faults.target: .*did you mean redis\[0\]\?"):
        load_matrix(file)
    for unquoted in ("[{at: 1s, do: kill, target: redis[0]}]", "[kill redis[0] at 1s]"):
        file.write_text(f"fixed: {{strategy: mutex, faults: {unquoted}}}")
        with pytest.raises(InputError, match="a value that has brackets needs quotes, as in 'redis\\[0\\]'"):
            load_matrix(file)


def test_a_fixed_list_is_one_plan_and_an_axis_has_a_plan_each():
    both = [{"at": "1s", "do": "kill", "target": "redis[0]", "for": "10ms"}, "script-flush redis at 1.5s"]
    [one] = expand(matrix_from_mapping({"fixed": {"strategy": "mutex", "faults": both}}))
    assert one.faults.names == ["kill redis[0]", "script-flush redis[0]"]
    cells = expand(matrix_from_mapping({"fixed": {"strategy": "mutex"}, "axes": {"faults": ["none", both, KILL]}}))
    assert [len(one.faults.faults) for one in cells] == [0, 2, 1]
    assert cells[0].id == "mutex", "a cell without faults is the cell that it always was"


def test_options_add_faults_to_one_plan_and_none_adds_healthy_cells():
    options = {"strategy": "mutex", "faults": [KILL, "none", "script-flush redis at 1.9s"]}
    healthy, harmed = expand(matrix_from_options(**options))
    assert (healthy.faults, len(harmed.faults.faults)) == (NO_FAULTS, 2)
    assert "--faults: " in problems(strategy="mutex", faults="kil redis at 1s")
    matrix = matrix_from_options(**options)
    assert matrix_from_mapping(matrix.to_dict()) == matrix


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"faults": "kill redis[1] at 1s"}, "the cell has 1 Redis server; the last one is redis[0]"),
        ({"faults": "kill postgres at 1s"}, "the cell has no Postgres server; drop this fault"),
        ({"faults": "crash client[4] at 1s", "concurrency": 4}, "the cell has 4 clients; the last one is client[3]"),
        ({"faults": "kill redis at 2s"}, "the window of 2s is over by then"),
        ({"faults": "kill redis at 1s for 1.1s"}, "the window of 2s ends before the fault does"),
        ({"faults": KILL, "redis": "redis://localhost:1"}, "pybench did not start this server, and kill needs"),
        ({"faults": KILL, **BREAKING}, "pybench did not start this server, and kill needs its process"),
        ({"faults": "failover redis at 1s", **BREAKING}, "failover needs its process"),
        ({"faults": "clock(by=1s) redis at 1s", **BREAKING}, "clock needs its process"),
        ({"faults": "slow redis at 1s for 9ms", "redis": "redis://localhost:1"}, "--break-my-servers allows it"),
        ({"faults": "pause redis at 1s", **BREAKING}, "the pause of your own server needs a length"),
        ({"faults": "drop-renewals client[0] at 1s"}, "mutex renews no lease here, so this fault does nothing"),
        ({"faults": KILL, "mode": "saturate"}, "looks for the limit on healthy servers"),
    ],
)
def test_a_fault_that_a_cell_cannot_have_is_refused(options: dict[str, object], reason: str):
    assert reason in why_refused(strategy="mutex", **options)


def test_only_renewals_that_are_sent_can_be_dropped():
    dropped = {"faults": "drop-renewals client[0] at 1s"}
    assert not planned(strategy="watchdog,fenced", **dropped).refused
    assert "fenced renews no lease here" in why_refused(strategy="fenced(renew=off)", **dropped)


def test_connections_to_a_given_server_may_be_harmed():
    assert not planned(strategy="mutex", redis="redis://localhost:1", faults="reset redis[0] at 1s").refused


@pytest.mark.parametrize(
    "fault",
    ["client-kill redis[0] at 1s", "script-flush redis at 1s", "slow redis at 1s for 1ms", "pause redis at 0 for 1s"],
)
def test_given_servers_are_harmed_by_their_own_commands_where_the_user_says_so(fault: str):
    plan = planned(strategy="mutex", faults=fault, **BREAKING)
    assert not plan.refused
    [harm] = fault_rules.harms_of_given(plan.cells[0], plan.matrix)
    assert harm == (Fault.parse(fault), "redis://localhost:1")
    assert matrix_from_mapping(plan.matrix.to_dict()) == plan.matrix, "a resumed run is still allowed to"


def test_no_file_allows_harm_to_given_servers(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text("fixed: {strategy: mutex}\nallow: [break-my-servers]\n")
    with pytest.raises(InputError, match="no file may allow break-my-servers"):
        load_matrix(file)
    file.write_text("fixed: {strategy: mutex}\n")
    assert load_matrix(file, break_my_servers=True).allow == ("break-my-servers",)
    assert load_matrix(file, break_my_servers=False).allow == ()


def test_a_cell_with_a_failover_has_replicas_and_one_with_a_clock_has_servers_of_its_own():
    def group(lock: str, plan: str) -> Group:
        [one] = expand(matrix_from_options(strategy=lock, faults=plan))
        return parts_of(one)[0].group

    assert group("mutex", "none") == group("mutex", KILL) == Group("redis", "off", 0)
    failover = group("mutex", "failover redis at 1s")
    assert failover == Group("redis", "off", 1)
    assert group("replicated(replicas=2)", "failover redis at 1s").replicas == 2
    assert group("mutex", "clock(by=1s) redis at 1s") == Group("redis", "off", 0, moves_clock=True)
    # The probe of a lock has no faults, and runs where its cells run.
    demands = {failover: Demand(1, 4), Group("redis", "always", 0): Demand(1, 4)}
    assert group_for(Part(Group("redis", "off", 0), 1), demands) == failover


def test_a_quick_run_keeps_its_faults_within_the_window():
    quick = quickened(matrix_from_options(strategy="mutex", faults=KILL))
    assert quick.duration_ns == 1_800 * MS
    assert not make_plan(quick).refused
    assert quickened(matrix_from_options(strategy="mutex")).duration_ns == 300 * MS


def test_the_spec_has_the_faults_of_the_core_and_when_servers_are_harmed():
    faults_ = "kill redis[1] at 1s, delay(by=5ms) redis[2] at 10ms for 20ms, crash client[3] at 40ms"
    [one] = expand(matrix_from_options(strategy="redlock(nodes=3)", concurrency=4, faults=faults_))
    server = {"kind": "redis"}
    spec = trial_spec(
        one, [server] * 3, cores=[], key_prefix="", client_name="", seed=1, warmup_ns=0, duration_ns=2 * S
    )
    assert spec["faults"] == [
        {"at_ns": 10 * MS, "for_ns": 20 * MS, "do": "delay", "server": 2, "client": None, "by_ns": 5 * MS},
        {"at_ns": 40 * MS, "for_ns": 0, "do": "crash", "server": None, "client": 3},
    ]
    assert spec["fault_periods"] == [(S, 2 * S)], "a server that stays down is harmed to the end of the window"


def test_what_checks_a_run_has_no_faults():
    [one] = expand(matrix_from_options(strategy="mutex", faults=KILL))
    assert [cell.faults for cell in control.control_cells([one])] == [NO_FAULTS]
    assert control.round_trip_cell([one], "redis", ServerKind.REDIS).faults == NO_FAULTS
    assert probes.probe_cells([one])[0].faults == NO_FAULTS


def test_conditions_say_the_faults():
    assert say_condition("faults", "none") == "no faults"
    assert say_condition("faults", KILL) == f"faults ({KILL})"


def under(lock: str, plan: str, appendfsync: str = "off", ttl_ms: int = 5_000) -> tuple[bool, bool, bool]:
    """Whether exclusion, data and progress are promised."""
    name, arguments = parse_strategy(lock)
    strategy = CATALOGUE[name].with_arguments(arguments)
    found = fault_promises.promises_under(
        Faults.parse(plan), strategy, arguments, appendfsync=appendfsync, ttl_ms=ttl_ms
    )
    return found.exclusion, found.data, found.progress


@pytest.mark.parametrize(
    ("lock", "plan", "promised"),
    [
        ("mutex", "none", (True, True, True)),
        ("mutex", "script-flush redis at 1s", (True, True, True)),
        ("mutex", "pause redis at 1s for 1s", (True, True, False)),
        ("mutex", "client-kill redis at 1s", (True, True, False)),
        ("mutex", "lose-reply redis at 1s", (True, True, False)),
        ("mutex", "crash client[0] at 1s", (True, True, False)),
        ("mutex", "restart redis at 1s", (True, True, False)),
        ("mutex", "kill redis at 1s", (True, True, False)),
        ("mutex", "kill redis at 1s for 5s", (True, False, False)),
        ("mutex", "kill redis at 1s for 4.9s", (False, False, False)),
        ("mutex", "restart(data=lose) redis at 1s", (False, False, False)),
        ("redlock", "kill redis[4] at 1s", (True, True, False)),
        ("redlock", "kill redis[4] at 1s for 1s", (False, False, False)),
        ("mutex", "failover redis at 1s", (False, False, False)),
        ("mutex", "failover redis at 1s for 5.1s", (True, False, False)),
        ("mutex", "failover redis at 1s for 5s", (False, False, False)),
        ("redlock", "failover redis[4] at 1s", (False, False, False)),
        ("layered", "failover redis at 1s", (True, True, False)),
        ("mutex", "clock(by=1s) redis at 1s", (False, False, False)),
        ("mutex", "clock(by=-1s) redis at 1s", (True, False, False)),
        ("mutex", "clock(by=-1s) redis at 1s for 10ms", (False, False, False)),
        ("layered", "clock(by=1s) redis at 1s", (True, True, False)),
        ("layered", "restart(data=lose) redis at 1s", (True, True, False)),
        ("pg-lease", "kill postgres at 1s for 1s", (True, True, False)),
        ("pg-lease(synchronous_commit=off)", "kill postgres at 1s for 1s", (False, False, False)),
        ("pg-lease(synchronous_commit=off)", "restart postgres at 1s", (True, True, False)),
    ],
)
def test_what_is_promised_under_faults(lock: str, plan: str, promised: tuple[bool, bool, bool]):
    assert under(lock, plan) == promised


def test_a_server_that_writes_each_command_to_disk_keeps_what_it_had():
    plan = "kill redis at 1s for 10ms"
    assert [under("mutex", plan, kept)[0] for kept in ("off", "everysec", "always")] == [False, False, True]
    assert not under("mutex", "failover redis at 1s", "always")[0], "a replica keeps only what it was told"


def test_every_kind_of_fault_is_in_one_class_of_the_table():
    assert {kind.does for kind in KINDS.values()} == set(Does)


def test_a_lock_is_blamed_only_for_what_it_promises_under_the_faults():
    mutex = CATALOGUE["mutex"]

    def judged(plan: str, **counts: int) -> Judgement:
        [one] = expand(matrix_from_options(strategy="mutex", faults=plan))
        return judge(totals(**counts), Terms.of(mutex, one), control_caught=True)

    lost = judged("kill redis at 1s for 10ms", double_grants=1, denied_releases=1)
    assert (lost.verdict, lost.promise_broken) == (Verdict.UNSAFE, False)
    assert lost.reason == "1 double grant, 1 denied release, under kill redis[0]"
    assert judged("script-flush redis at 1s", double_grants=1).promise_broken
    assert judged("pause redis at 1s for 10ms", double_grants=1).promise_broken
    assert judged("script-flush redis at 1s", stalls=1).promise_broken
    assert not judged("pause redis at 1s for 10ms", stalls=1).promise_broken
    assert judged("kill redis at 1s").reason.endswith(", under kill redis[0]")


def test_a_record_is_judged_as_its_trial_was():
    one = cell(strategy="mutex", faults=Faults.parse("kill redis[0] at 1s for 10ms"))
    row = record(one, result=FakeResult(totals=totals(double_grants=1))).row
    assert (row["verdict"], row["promise_broken"]) == ("UNSAFE", False)
    assert Terms.recorded(row) == Terms.of(CATALOGUE["mutex"], one)
    assert recorded_faults(row["faults"]) == one.faults
    assert recorded_faults("explode redis[0] at 1s") == NO_FAULTS, "a later version may know more kinds"


def test_a_probe_on_healthy_servers_proves_nothing_of_a_trial_with_faults():
    own = Judgement(Verdict.SAFE, "0 violations", promise_broken=False, bound_per_million=None)
    row = {"contended_grants": 3, "grants": 9, "concurrency": 4, "faults": "none"}
    probe = {"verdict": "SAFE", "reason": "its probe saw none", "promise_broken": False, **CAUGHT[0]}
    assert overruled(own, row, probe).by_probe is True
    assert overruled(own, row | {"faults": KILL}, probe).by_probe is False


def test_the_figures_of_a_trial_are_those_of_its_faults_as_they_were():
    carried = [Carried(Fault.parse(KILL), from_ns=10 * S + 250 * MS, until_ns=10 * S + 900 * MS)]
    counted = {"length_ns": S, "grants": 40, "errors": 0, "count": 2_000, "hdr": ROWS[0].hdr}
    done = {"orphans": 1, "spans": [], "time_to_free_ns": [5 * MS, 9 * MS], "time_to_know_ns": []}
    result = FakeResult(
        totals=totals(window_start_ns=10 * S, window_ns=S),
        timeline={
            "start_ns": np.arange(10) * 100 * MS,
            "grants": np.array([0, 0, 0, 9, 0, 9, 0, 0, 9, 9]),
        },
        periods=[{"period": "before", **counted}, {"period": "during", **counted, "length_ns": 0, "grants": 0}],
        faults=done,
    )
    [row] = fault_rows(carried, 10 * S)
    assert (row["from_ns"], row["until_ns"], row["planned_from_ns"]) == (250 * MS, 900 * MS, S)
    assert set(fault_columns([], result, one_holder=True).values()) == {None}
    crashed = [*carried, Carried(Fault.parse("crash client[0] at 1s"))]
    columns = fault_columns(crashed, result, one_holder=True)
    assert columns["unavailable_ms"] == 200, "three empty steps came before the fault, and ended before it"
    assert (columns["grants_before_per_s"], columns["grants_during_per_s"], columns["grants_after_per_s"]) == (
        40,
        None,
        None,
    )
    assert columns["acquire_p50_before_us"] == pytest.approx(200, rel=0.01)
    assert (columns["orphans"], columns["time_to_free_ms"], columns["time_to_know_ms"]) == (1, 9, None)
    assert fault_columns(carried, result, one_holder=True)["orphans"] is None, "nobody crashed"
    among_others = fault_columns(crashed, result, one_holder=False)
    assert (among_others["orphans"], among_others["time_to_free_ms"]) == (1, None)
    assert among_others == {**columns, "time_to_free_ms": None}


@pytest.mark.parametrize(
    ("options", "freed"),
    [
        ({"strategy": "mutex"}, 9),
        ({"strategy": "semaphore(permits=1)"}, 9),
        ({"strategy": "semaphore(permits=2)"}, None),
        ({"strategy": "read-write", "read_share": "0"}, 9),
        ({"strategy": "read-write", "read_share": "0.5"}, None),
        ({"strategy": "pg-optimistic"}, None),
        ({"strategy": "none"}, None),
    ],
)
def test_a_time_to_free_is_known_where_a_key_has_one_holder_at_a_time(options: dict[str, str], freed: int | None):
    (cell,) = expand(matrix_from_options(faults="crash client[0] at 1s", concurrency="8", **options))
    done = {"orphans": 1, "spans": [], "time_to_free_ns": [9 * MS], "time_to_know_ns": []}
    made = record(cell, result=FakeResult(faults=done), carried=[Carried(cell.faults.faults[0])])
    assert (made.row["orphans"], made.row["time_to_free_ms"]) == (1, freed)
