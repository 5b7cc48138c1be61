"""Searches as a run carries them out: what is saved, and where a search goes on that was interrupted or killed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pybench.errors import ServerError
from pybench.matrix import expand, matrix_from_options
from pybench.planning.limit_search import Shown, limit_of
from pybench.records import TrialRecord
from pybench.records.search_probes import SCHEMA
from pybench.running.searching import Search, limit_text, phase_text, run_search, search_of
from pybench.running.watch import Slot

CAPACITY = 100.0
MATRIX = matrix_from_options(strategy="mutex", hold="5ms", mode="curve(start=70/s)", duration="1s")
(CELL,) = expand(MATRIX)
SLOT = Slot(1, CELL, 1, 1.0)
SOUND = {
    **dict.fromkeys(SCHEMA.names),
    "verdict": "SAFE",
    "violations": 0,
    "arrivals": 1_000,
    "drops": 0,
    "grants": 1_000,
    "status": "complete",
    "send_delay_p99_us": 50.0,
    "longest_stall_ms": 0.0,
}


class Folder:
    """What a search saves."""

    def __init__(self) -> None:
        self.trials: list[TrialRecord] = []
        self.probes: list[dict] = []

    def add_trial(self, record: TrialRecord, *, recorded=None, trouble=None) -> None:
        self.trials.append(record)

    def forget_probes(self, cell: str, trial: int) -> None:
        self.forgotten = (cell, trial)

    def add_probe(self, row: dict) -> None:
        assert not self.probes or row["probe"] == self.probes[-1]["probe"] + 1
        self.probes.append(row)


class Lock:
    """A lock that sustains `CAPACITY`; `changes` has what happens in a probe, by its number."""

    def __init__(self, changes: dict[int, dict] | None = None, *, capacity: float = CAPACITY) -> None:
        self.changes, self.capacity = changes or {}, capacity
        self.rates: list[float] = []

    def __call__(self, slot: Slot) -> tuple[TrialRecord, SimpleNamespace]:
        rate = slot.cell.rate_per_s
        assert rate is not None
        self.rates.append(rate)
        row = SOUND | slot.cell.columns() | {"grants_per_s": min(rate, self.capacity)}
        if rate > self.capacity:
            row["grants"] = 900
        change = self.changes.get(slot.probe, {})
        trouble = change.pop("trouble", None)
        record = TrialRecord(slot.cell.id, slot.block, row | change, [], [], [])
        line = {"start_ns": np.zeros(0), "p50_ns": np.zeros(0)}
        result = SimpleNamespace(histograms=[], timeline=line, recorded=None)
        return record, SimpleNamespace(result=result, trouble=trouble)


def searched(
    lock: Lock, folder: Folder, *, rows=(), is_saved=False, interrupts=None, told: list[str] | None = None
) -> TrialRecord | None:
    search = search_of(SLOT, MATRIX, {(CELL.id, 1): rows}, is_saved=is_saved)
    never = interrupts or SimpleNamespace(asked=False)
    return run_search(search, MATRIX, folder, never, lock, ([] if told is None else told).append, is_saved=is_saved)


def whole() -> tuple[TrialRecord, Folder]:
    folder = Folder()
    record = searched(Lock(), folder)
    assert record is not None
    return record, folder


def test_a_search_saves_each_probe_and_the_last_confirmation_as_its_trial():
    record, folder = whole()
    assert folder.trials == [record]
    row = record.row
    assert row["limit_per_s"] <= CAPACITY < row["limit_high_per_s"] <= 1.05 * row["limit_per_s"]
    assert row["limited_by"] == "throughput"
    assert row["grants_per_s"] == row["limit_per_s"], "the trial is that of a confirmation"
    assert (row["rate_per_s"], row["mode"]) == (None, "curve(start=70/s)"), "the axes are those of the cell"
    phases = [probe["phase"] for probe in folder.probes]
    assert row["search_probes"] == len(phases) - 4
    assert phases[-7:] == ["confirm"] * 3 + ["curve"] * 4
    curve = [probe["rate_per_s"] / row["limit_per_s"] for probe in folder.probes[-4:]]
    assert curve == pytest.approx([0.3, 0.6, 0.8, 0.95])
    assert re.fullmatch(r"limit [\d,.]+/s \([\d,.]+/s failed: throughput\)", limit_text(row))


@pytest.mark.parametrize("killed_after", range(1, 19))
def test_a_killed_search_goes_on_at_the_probe_at_which_it_was_killed(killed_after: int):
    record, folder = whole()
    assert len(folder.probes) == 19
    kept = folder.probes[:killed_after]
    is_saved = killed_after >= 15
    again, lock = Folder(), Lock()
    again.probes = list(kept)
    resumed = searched(lock, again, rows=kept, is_saved=is_saved)
    assert again.probes == folder.probes
    assert len(lock.rates) == 19 - killed_after
    assert resumed == (None if is_saved else record)
    assert search_of(SLOT, MATRIX, {(CELL.id, 1): again.probes}, is_saved=True).next is None


def test_a_search_whose_trial_was_lost_begins_anew():
    _, folder = whole()
    lock, again = Lock(), Folder()
    assert searched(lock, again, rows=folder.probes) is not None
    assert again.forgotten == (CELL.id, 1)
    assert len(lock.rates) == len(folder.probes)


def test_an_unsafe_probe_ends_the_search_without_a_limit():
    folder = Folder()
    record = searched(Lock({2: {"verdict": "UNSAFE", "violations": 3}}), folder)
    assert record is not None
    assert folder.trials == [record]
    assert (record.row["limit_per_s"], record.row["limit_high_per_s"], record.row["violations"]) == (None, None, 3)
    assert record.row["limited_by"] == "unsafe"
    assert [probe["shown"] for probe in folder.probes] == ["held", "unsafe"]
    assert limit_text(record.row) == "no limit found"


def test_a_violation_in_the_curve_takes_the_limit_back():
    folder = Folder()
    record = searched(Lock({17: {"verdict": "UNSAFE", "violations": 1}}), folder)
    assert record is not None
    assert [trial.row["limit_per_s"] is None for trial in folder.trials] == [False, True]
    assert record == folder.trials[-1]
    assert len(folder.probes) == 17


def test_a_lock_that_sustains_no_rate_has_no_limit():
    record = searched(Lock(capacity=0.5), folder := Folder())
    assert record is not None
    assert record.row["limit_per_s"] is None
    assert record.row["limited_by"] == "throughput"
    assert {probe["phase"] for probe in folder.probes} == {"up", "down"}
    assert min(probe["rate_per_s"] for probe in folder.probes) == pytest.approx(20.0)


@pytest.mark.parametrize(("number", "is_found"), [(3, False), (17, True)])
def test_an_interrupted_probe_is_measured_again_and_replaces_no_limit(number: int, is_found: bool):
    folder = Folder()
    record = searched(Lock({number: {"status": "interrupted"}}), folder)
    assert record is not None
    assert len(folder.probes) == number - 1
    assert [trial.row["status"] for trial in folder.trials] == (["complete"] if is_found else ["interrupted"])
    resumed = searched(Lock(), folder, rows=folder.probes, is_saved=is_found)
    assert len(folder.probes) == 19
    assert (resumed is None) == is_found


def test_a_violation_in_an_interrupted_probe_is_saved():
    folder = Folder()
    searched(Lock({17: {"status": "interrupted", "violations": 2}}), folder)
    assert [trial.row["violations"] for trial in folder.trials] == [0, 2]


def test_a_disturbed_probe_is_saved_before_its_error_ends_the_run():
    folder = Folder()
    trouble = SimpleNamespace(error=ServerError("the server restarted"), intact_ns=math.inf)
    with pytest.raises(ServerError, match="restarted"):
        searched(Lock({3: {"status": "disturbed", "trouble": trouble}}), folder)
    assert [trial.row["status"] for trial in folder.trials] == ["disturbed"]
    assert len(folder.probes) == 2


def test_an_interrupt_after_a_probe_keeps_it_and_saves_no_trial():
    folder = Folder()
    assert searched(Lock(), folder, interrupts=SimpleNamespace(asked=True)) is None
    assert (len(folder.probes), folder.trials) == (1, [])


def test_the_outcomes_of_a_search_are_those_of_its_probes():
    record, folder = whole()
    search = Search(SLOT, search_of(SLOT, MATRIX, {}, is_saved=False).bounds, folder.probes)
    assert set(search.shown) == {Shown.HELD, Shown.FAILED}
    found = limit_of(search.bounds, search.shown)
    assert found is not None
    assert found.limit_per_s == record.row["limit_per_s"]
    assert limit_of(replace(search.bounds, shares=()), search.shown[:3]) is None


def test_each_phase_is_told_with_what_it_has_shown():
    told: list[str] = []
    searched(Lock(), Folder(), told=told)
    phases = [text.split(",")[0].split(":")[0] for text in told]
    assert phases == ["up", "bisect", "recheck", "confirm", "curve"]
    assert told[0] == "up, 3 probes: 68.6/s held, 137/s failed (throughput)"
    assert "held" in told[3]
    assert "failed" not in told[3]
    assert told[4] == "curve: latency measured at 4 loads"


def test_a_phase_with_late_and_unsafe_probes_says_so():
    row = {"phase": "up", "shown": "late", "rate_per_s": 80.0, "limited_by": "load generator"}
    held, unsafe = {**row, "shown": "held"}, {**row, "shown": "unsafe", "rate_per_s": 160.0}
    assert (
        phase_text([row, held, unsafe]) == "up, 3 probes: 80.0/s held, 1 probe with a late load generator, 160/s unsafe"
    )
    failed = {**row, "phase": "confirm", "shown": "failed", "limited_by": "growing waits"}
    assert phase_text([held, failed]) == "confirm, 1 probe: 80.0/s failed (growing waits)"
    assert phase_text([failed, {**failed, "shown": "held"}]) == "confirm, 2 probes: 80.0/s held"
