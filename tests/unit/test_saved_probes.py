"""The probes of searches in a run folder: saved one by one, gathered, read again, and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import RecordError
from pybench.records import RunFolder, load
from pybench.records.search_probes import PROBES, SCHEMA
from tests.report.support import Point, manifest

SOUND = manifest([Point("mutex", 8, 1)], name="limit", status="running", caught=True, trials=1)


def probe(cell: str, trial: int, number: int, rate: float = 100.0) -> dict[str, object]:
    known = {"cell": cell, "trial": trial, "probe": number, "rate_per_s": rate, "phase": "up", "shown": "held"}
    return dict.fromkeys(SCHEMA.names) | known


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", SOUND)


def rates(folder: RunFolder) -> dict[tuple[str, int], list[float]]:
    return {search: [row["rate_per_s"] for row in rows] for search, rows in folder.probes().items()}


def test_each_probe_is_kept_before_and_after_the_parts_are_gathered(folder: RunFolder):
    for number in (1, 2, 11):
        folder.add_probe(probe("a", 1, number, 10.0 * number))
    folder.add_probe(probe("a", 2, 1))
    assert rates(folder) == {("a", 1): [10.0, 20.0, 110.0], ("a", 2): [100.0]}
    assert load(folder.path).probes["probe"].tolist() == [1, 2, 11, 1]
    folder.finish("interrupted")
    assert (folder.path / PROBES).exists()
    assert not (folder.path / "parts").exists()
    folder.add_probe(probe("a", 1, 2, 7.0))
    assert rates(folder) == {("a", 1): [10.0, 7.0, 110.0], ("a", 2): [100.0]}, "the later probe of a number counts"
    folder.finish("interrupted")
    assert load(folder.path).probes["rate_per_s"].tolist() == [10.0, 7.0, 110.0, 100.0]


def test_a_search_that_begins_anew_forgets_its_probes_and_no_others(folder: RunFolder):
    for trial in (1, 2):
        folder.add_probe(probe("a", trial, 1))
    folder.finish("interrupted")
    folder.add_probe(probe("a", 1, 2))
    folder.add_probe(probe("b", 1, 1))
    folder.forget_probes("a", 1)
    assert set(folder.probes()) == {("a", 2), ("b", 1)}
    folder.forget_probes("a", 7)
    assert set(folder.probes()) == {("a", 2), ("b", 1)}


def test_a_run_without_a_search_has_no_such_file(folder: RunFolder):
    assert folder.probes() == {}
    folder.finish("interrupted")
    assert not (folder.path / PROBES).exists()
    assert load(folder.path).probes.empty


def test_a_damaged_probe_is_an_error_that_names_its_file(folder: RunFolder):
    folder.add_probe(probe("a", 1, 1))
    (path,) = (folder.path / "parts").glob("*.probe")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match=path.name):
        folder.probes()
