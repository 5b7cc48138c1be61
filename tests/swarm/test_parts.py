"""The counts of a trial as data: they travel unchanged, and merging them loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pybench import _core
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Verdict, judge
from pybench.analysis.violation_sentences import sentence
from pybench.errors import RecordError
from pybench.records.parts import MOST_VIOLATIONS, Placed, TrialPart, jain, merge
from pybench.strategies import CATALOGUE
from pybench.swarm.recording import worst_counts
from tests.core_trials import MS, fixed, trial_spec


@pytest.fixture(scope="module")
def parts(server) -> list[TrialPart]:
    """Two trials without a lock, so that there are violations."""
    found = []
    for number in (1, 2):
        fields: dict[str, Any] = {"strategy": "none", "keys": 4, "hold": fixed(0.5), "seed": number}
        result = _core.Trial(trial_spec(server, key_prefix=f"test:{number}:", **fields)).run()
        found.append(TrialPart.of(result))
    return found


def equal(one: TrialPart, other: TrialPart) -> bool:
    plain = ("totals", "histograms", "stopped", "jain", "violations", "finding", "errors", "nodes")
    columns = ("timeline", "clients", "writes", "commands")
    return all(getattr(one, name) == getattr(other, name) for name in plain) and all(
        getattr(one, name).keys() == getattr(other, name).keys()
        and all((getattr(one, name)[key] == getattr(other, name)[key]).all() for key in getattr(one, name))
        for name in columns
    )


def counts(parts: Sequence[TrialPart]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """For each phase and outcome its filled buckets."""
    rows = [row for part in parts for row in part.histograms]
    keys = {(row.phase, row.outcome) for row in rows}
    summed: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for key in keys:
        buckets: dict[int, int] = {}
        for row in rows:
            if (row.phase, row.outcome) == key:
                for value, count in zip(*map(np.ndarray.tolist, _core.histogram_buckets(row.hdr)), strict=True):
                    buckets[value] = buckets.get(value, 0) + count
        summed[key] = sorted(buckets.items())
    return summed


def test_a_part_travels_as_bytes_unchanged(parts):
    for part in parts:
        assert part.totals["grants"] > 100
        assert part.violations
        assert equal(TrialPart.decode(part.encode()), part)


@pytest.mark.parametrize("data", [b"", b"no part", TrialPart({}, []).encode()[:-3]])
def test_other_bytes_are_refused(data):
    with pytest.raises(RecordError, match="another process"):
        TrialPart.decode(data)


def test_merging_loses_no_count(parts):
    whole = merge([Placed(parts[0], "worker 1"), Placed(parts[1], "worker 2", 30 * MS)])
    highest = {"longest_streak", "longest_wait_ns", "longest_stall_ns"}
    for name, value in whole.totals.items():
        both = [part.totals[name] for part in parts]
        match name:
            case "window_ns":
                assert value == max(both[0], both[1] + 30 * MS)
            case "began_ns" | "window_start_ns":
                assert value == min(both)
            case _:
                assert value == (max(both) if name in highest else sum(both)), name
    assert counts([whole]) == counts(parts)
    assert whole.clients["grants"].tolist() == [n for part in parts for n in part.clients["grants"].tolist()]
    assert whole.jain == pytest.approx(jain(whole.clients["grants"]))
    assert int(whole.commands["commands"].sum()) == whole.totals["commands"]
    assert int(whole.timeline["grants"].sum()) == sum(int(part.timeline["grants"].sum()) for part in parts)


def test_violations_name_the_process_and_its_clients(parts):
    whole = merge([Placed(parts[0], "worker 1", 900 * MS), Placed(parts[1], "worker 2", 30 * MS)])
    assert len(whole.violations) == MOST_VIOLATIONS
    own = parts[1].violations[0]
    moved = next(one for one in whole.violations if one["key"].startswith("test:2:"))
    clients = len(parts[0].clients["grants"])
    assert moved["first_client"] == own["first_client"] + clients
    assert moved["at_ns"] == own["at_ns"] + 30 * MS
    assert sentence(moved).startswith(f"worker 2: client {own['second_client'] + clients} was granted key")


def test_a_client_that_never_worked_is_left_out(parts):
    result = parts[0]
    assert TrialPart.of(result, clients=3).clients["grants"].tolist() == result.clients["grants"].tolist()[:3]


def line(step_ms: int, *grants: int, p99_ns: int) -> dict[str, Any]:
    columns = {name: np.zeros(len(grants), dtype=np.uint64) for name in ("refused", "errors", "p50_ns")}
    starts = np.arange(len(grants), dtype=np.uint64) * np.uint64(step_ms * MS)
    return {
        "start_ns": starts,
        "grants": np.array(grants, dtype=np.uint64),
        "p99_ns": np.full(len(grants), p99_ns, dtype=np.uint64),
        **columns,
    }


def test_time_lines_are_summed_by_their_time_on_the_coarser_steps():
    one = TrialPart({"window_ns": 400 * MS}, [], timeline=line(100, 1, 2, 3, 4, p99_ns=5))
    other = TrialPart({"window_ns": 400 * MS}, [], timeline=line(200, 10, 20, p99_ns=9))
    whole = merge([Placed(one, "a"), Placed(other, "b", 210 * MS)])
    assert whole.timeline["start_ns"].tolist() == [0, 200 * MS, 400 * MS]
    assert whole.timeline["grants"].tolist() == [3, 17, 20]
    assert whole.timeline["p99_ns"].tolist() == [5, 9, 9], "the highest: quantiles cannot be merged"


def test_writes_of_shared_keys_are_summed_and_those_of_own_keys_listed():
    parts = [
        Placed(TrialPart({"window_ns": 1}, [], writes={"acknowledged": np.array(writes, dtype=np.uint64)}), "w")
        for writes in ([1, 2], [3, 4])
    ]
    assert merge(parts).writes["acknowledged"].tolist() == [1, 2, 3, 4]
    assert merge(parts, shared_keys=True).writes["acknowledged"].tolist() == [4, 6]


def test_error_replies_are_summed_by_phase_code_and_server():
    def part(count: int, code: str) -> Placed:
        row: Any = {"phase": "acquire", "code": code, "server": 0, "count": count, "warmup": 0, "first": "no"}
        return Placed(TrialPart({"window_ns": 1}, [], errors=[row]), "w")

    whole = merge([part(2, "NOPERM"), part(3, "NOPERM"), part(1, "OOM")])
    assert {(row["code"], row["count"]) for row in whole.errors} == {("NOPERM", 5), ("OOM", 1)}


def test_the_worst_verdict_of_a_part_is_that_of_the_sum(parts):
    terms = Terms.of(CATALOGUE["mutex"])
    unsafe, other = parts
    safe = replace(other, totals={**other.totals, **dict.fromkeys(("double_grants", "lease_overruns"), 0)})
    confused = replace(safe, totals={**safe.totals, "findings": 3})

    def verdict(*given: TrialPart) -> Verdict:
        placed = [Placed(part, f"worker {number}") for number, part in enumerate(worst_counts(given, terms))]
        return judge(merge(placed).totals, terms, control_caught=True).verdict

    assert verdict(unsafe, safe) is Verdict.UNSAFE
    assert verdict(unsafe, confused) is Verdict.UNSAFE, "what another checker found stands"
    assert verdict(safe, confused) is Verdict.UNDECIDED
    both = replace(unsafe, totals={**unsafe.totals, "findings": 1})
    assert verdict(both, safe) is Verdict.UNDECIDED, "this checker's own violations prove nothing"
