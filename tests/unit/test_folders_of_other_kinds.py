"""Folders of other versions, damaged ones, and what is no run folder at all."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.trials import FakeResult, manifest, record, violation

from pybench.errors import RecordError
from pybench.records import RunFolder, load


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", manifest())


def test_a_newer_schema_is_refused(folder):
    folder.update_manifest(schema=8)
    with pytest.raises(RecordError, match="schema number 8") as raised:
        load(folder.path)
    assert "upgrade" in raised.value.hint


def test_a_file_of_a_newer_schema_is_refused(folder):
    folder.add_trial(record())
    folder.finish("complete")
    table = pq.read_table(folder.path / "trials.parquet")
    pq.write_table(table.replace_schema_metadata({b"pybench.schema": b"8"}), folder.path / "trials.parquet")
    with pytest.raises(RecordError, match=r"trials\.parquet has schema number 8"):
        load(folder.path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": None}, "name: "),
        ({"cells": 7}, "cells: "),
        ({"cells": [{}]}, r"cells\.0\.id is missing"),
        ({"order": [["x"]]}, r"order\.0\.0: "),
        ({"control": 7}, "control: "),
        ({"started_at": "soon"}, "started_at: "),
        ({"matrix": {"given": None, "expanded": {}}}, r"matrix\.expanded\.backends is missing"),
        ({"status": "fine"}, "status: "),
        ({"key_prefix": "users:"}, "key_prefix: "),
    ],
)
def test_a_manifest_with_an_entry_of_another_kind_is_damaged(folder, fields, said):
    folder.update_manifest(**fields)
    for use in (load, RunFolder.open):
        with pytest.raises(RecordError, match=f"is damaged: {said}") as raised:
            use(folder.path)
        assert raised.value.hint


def test_every_entry_of_a_manifest_is_missed(folder):
    for name in folder.manifest.keys() - {"schema"}:
        entries = {other: value for other, value in folder.manifest.items() if other != name}
        (folder.path / "manifest.json").write_text(json.dumps(entries))
        with pytest.raises(RecordError, match=f"{name} is missing"):
            load(folder.path)


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"schema": "one"}', '{"schema": 1}', '{"schema": 1, "stat'])
def test_what_is_no_run_folder_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    for use in (load, RunFolder.open):
        with pytest.raises(RecordError) as raised:
            use(tmp_path)
        assert raised.value.hint


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(RecordError, match="there is no folder"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_part_is_named_with_what_to_do(folder, damage):
    folder.add_trial(record())
    (part,) = (folder.path / "parts").iterdir()
    part.write_bytes(damage(part.read_bytes()))
    for use in (load, lambda path: RunFolder.open(path).starts(), lambda path: RunFolder.open(path).finish("complete")):
        with pytest.raises(RecordError, match="damaged") as raised:
            use(folder.path)
        assert str(part) in raised.value.message
        assert "delete the file" in raised.value.hint


@pytest.mark.parametrize("name", ["trials.parquet", "latency.parquet", "timeline.parquet", "violations.jsonl"])
def test_a_damaged_file_is_named(folder, name):
    folder.add_trial(record(result=FakeResult(violations=[violation()])))
    folder.finish("complete")
    (folder.path / name).write_bytes((folder.path / name).read_bytes()[:-20])
    with pytest.raises(RecordError, match=f"{name} is damaged"):
        load(folder.path)


@pytest.mark.parametrize("name", ["trials.parquet", "latency.parquet", "timeline.parquet", "violations.jsonl"])
def test_a_file_that_a_complete_run_lacks_is_named(folder, name):
    folder.add_trial(record())
    folder.finish("complete")
    (folder.path / name).unlink()
    with pytest.raises(RecordError, match=f"{name} is missing, although the run is complete"):
        load(folder.path)


def test_a_figure_that_this_version_does_not_know_is_no_axis(folder):
    for number in (1, 2):
        folder.add_trial(record(trial=number))
    folder.finish("complete")
    path = folder.path / "trials.parquet"
    trials = pq.read_table(path)
    marks = trials.append_column("figure_of_an_older_version", pa.array([7, 8]))
    pq.write_table(marks.replace_schema_metadata(trials.schema.metadata), path)
    summary = load(folder.path).summary
    assert summary["trials"].tolist() == [2]
    assert "figure_of_an_older_version" not in summary
