"""The rows of clients, nodes, commands and telemetry, from counts that are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.trials import CAUGHT, SECOND, FakeResult, cell, histogram, manifest, record, totals

from pybench.errors import LocksGone
from pybench.records import RunFolder, load, schema
from pybench.records.detail_rows import MOST_CLIENTS, client_rows, command_rows, node_rows
from pybench.records.parts import KILLED, OF_CLIENTS, Placed, TrialPart, merge
from pybench.records.tables import DETAILS
from pybench.records.telemetry import Watched, telemetry_rows
from pybench.servers.sampling import Sample

MS = 1_000_000


def columns(clients, **given: int):
    usual = {name: np.arange(clients, dtype=np.uint64) for name in OF_CLIENTS}
    return usual | {name: np.full(clients, value, dtype=np.uint64) for name, value in given.items()}


def votes(server=0, **given: object):
    counts = {"asked": 1_000, "granted": 600, "refused": 300, "errors": 20, "late": 120, "decided": 400}
    hdr = {"reply_hdr": histogram([1_000 * n for n in range(1, 921)]), "validity_hdr": histogram([5 * MS] * 400)}
    return {"server": server, **counts, **hdr, **given}


def test_clients_beyond_the_most_have_one_row_together_and_no_count_is_lost():
    given = columns(MOST_CLIENTS + 500)
    rows = client_rows(given)
    assert len(rows) == MOST_CLIENTS + 1
    assert [row["client"] for row in rows[-2:]] == [MOST_CLIENTS - 1, None]
    assert sum(row["clients"] for row in rows) == MOST_CLIENTS + 500
    for name in ("grants", "attempts", "refused", "errors"):
        assert sum(row[name] for row in rows) == given[name].sum()
    assert rows[-1]["longest_wait_us"] == (MOST_CLIENTS + 499) / 1e3
    assert rows[-1]["wait_p50_us"] is None


def test_a_quantile_of_a_client_needs_ten_waits_beyond_it():
    (few,) = client_rows(columns(1, waits=19, grants=19, wait_sum_ns=19_000, wait_p50_ns=7_000))
    (enough,) = client_rows(columns(1, waits=20, grants=20, wait_p50_ns=7_000, wait_p90_ns=9_000))
    assert (few["wait_p50_us"], few["wait_mean_us"]) == (None, 1.0)
    assert (enough["wait_p50_us"], enough["wait_p90_us"]) == (7.0, None)


def test_of_a_client_that_died_with_its_process_only_its_grants_are_known():
    counts = {"attempts": np.array([0, 0, 0, 7]), "grants": np.array([5, 0, 0, 4]), KILLED: np.array([1, 1, 0, 0])}
    served, unserved, waiting, alive = client_rows(columns(4, wait_max_ns=3_000) | counts)
    assert [row["attempts"] for row in (served, unserved, waiting, alive)] == [None, None, 0, 7]
    assert [row["grants"] for row in (served, unserved)] == [5, 0]
    # Nobody recorded how long a client waited that was granted nothing.
    assert [row["longest_wait_us"] for row in (served, unserved, waiting)] == [3.0, None, 3.0]
    many = columns(MOST_CLIENTS + 2) | {KILLED: np.array([0] * (MOST_CLIENTS + 1) + [1])}
    assert (client_rows(many)[-1]["grants"], client_rows(many)[-1]["attempts"]) == (2 * MOST_CLIENTS + 1, None)


def test_a_node_has_its_missing_replies_and_the_short_ends_of_leases():
    left = [MS * n for n in range(1, 1_001)]
    (row,) = node_rows([votes(server=2, validity_hdr=histogram(left))])
    assert (row["server"], row["unanswered"], row["late"]) == (3, 80, 120)
    assert row["reply_p50_us"] == pytest.approx(460, rel=0.01)
    assert row["longest_reply_us"] == pytest.approx(920, rel=0.01)
    assert row["validity_p01_ms"] == pytest.approx(11, abs=1.1), "ten grants had less"
    assert row["validity_p10_ms"] == pytest.approx(101, rel=0.02)
    assert row["least_validity_ms"] == pytest.approx(1, rel=0.01)
    (few,) = node_rows([votes(validity_hdr=histogram(left[:99]))])
    assert few["validity_p10_ms"] is None
    assert few["validity_p50_ms"] is not None


def test_the_commands_of_a_trial_are_one_row():
    steps = {"start_ns": np.array([0, 20 * MS], dtype=np.uint64), "commands": np.array([5, 7], dtype=np.uint64)}
    assert command_rows(steps) == [{"step_ns": 20 * MS, "commands": [5, 7]}]
    assert command_rows({"start_ns": np.zeros(0), "commands": np.zeros(0)}) == []


def part(shift_steps=0, **fields: object):
    of = TrialPart.of(FakeResult(**fields))
    return Placed(of, f"part {shift_steps}", shift_steps * 10 * MS)


def test_parts_of_processes_merge_step_by_step_and_server_by_server():
    steps = {"start_ns": np.arange(3, dtype=np.uint64) * 10 * MS, "commands": np.array([1, 2, 3], dtype=np.uint64)}
    one = part(commands=steps, nodes=[votes(0), votes(1)])
    other = part(2, commands=steps, nodes=[votes(1)])
    merged = TrialPart.decode(merge([one, other]).encode())
    assert merged.commands["commands"].tolist() == [1, 2, 4, 2, 3]
    assert [node["server"] for node in merged.nodes] == [0, 1]
    first, second = node_rows(merged.nodes)
    assert (first["asked"], second["asked"], second["late"]) == (1_000, 2_000, 240)
    assert second["reply_p50_us"] == pytest.approx(first["reply_p50_us"], rel=0.01)
    assert len(client_rows(merged.clients)) == 4
    assert one.part.nodes[1]["asked"] == 1_000, "the parts are left as they were"


# Telemetry: the window begins at 50 s of the monotonic clock, and its time line has two steps.

BEGAN = 50 * SECOND


def watched(samples, *, machine=()):
    return telemetry_rows(Watched([samples], machine), FakeResult(totals=totals(window_start_ns=BEGAN)))


def test_counters_are_placed_in_the_steps_between_their_samples():
    samples = [
        Sample(BEGAN - 50 * MS, {"commands": 900, "cpu_us": 0}, {"waiting": 1}),
        Sample(BEGAN + 50 * MS, {"commands": 1_000, "cpu_us": 20_000}, {"waiting": 4}),
        Sample(BEGAN + 150 * MS, {"commands": 1_400, "cpu_us": 120_000}, {"waiting": 2}),
        Sample(BEGAN + 250 * MS, {"commands": 1_400, "cpu_us": 120_000}, {"waiting": 0}),
    ]
    first, second = watched(samples)
    assert (first["start_ns"], first["server"], second["start_ns"]) == (0, 1, 100 * MS)
    # Half of what came before the first middle, and half of what came after it.
    assert (first["commands"], second["commands"]) == (50 + 200, 200)
    assert (first["cpu_share"], second["cpu_share"]) == (0.6, 0.5)
    assert (first["waiting"], second["waiting"]) == (4, 2)
    assert first["slow_commands"] is None, "what no sample has is n/a"


def test_nothing_is_invented_where_samples_are_far_apart_or_missing():
    far = [Sample(BEGAN, {"commands": 0}), Sample(BEGAN + SECOND, {"commands": 1_000})]
    assert [row["commands"] for row in watched(far)] == [None, None]
    ends_early = [Sample(BEGAN - MS, {"commands": 0}), Sample(BEGAN + 120 * MS, {"commands": 120})]
    assert [row["commands"] is None for row in watched(ends_early)] == [False, True]
    assert watched([]) == []


def test_the_machine_has_a_row_of_its_own():
    ticks = [Sample(BEGAN + at * MS, {"cpu_us": at * 500.0, "steal_us": at * 100.0}) for at in (-10, 110, 230)]
    rows = watched([], machine=ticks)
    assert [row["server"] for row in rows] == [None, None]
    assert rows[0]["cpu_share"] == pytest.approx(0.5)
    assert rows[0]["steal_share"] == pytest.approx(0.1)


def test_waits_of_sessions_are_kept_as_they_were_seen():
    (first, _) = watched([Sample(BEGAN + 40 * MS, {}, {"waiting": 3}, {"Lock:advisory": 3, "working": 1})])
    assert json.loads(first["waits"]) == {"Lock:advisory": 3, "working": 1}


# The folder.


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", manifest(control=CAUGHT))


def detailed(trial, **fields: object):
    steps = {"start_ns": np.arange(2, dtype=np.uint64) * 10 * MS, "commands": np.array([trial, 2], dtype=np.uint64)}
    result = FakeResult(totals=totals(window_start_ns=BEGAN), commands=steps, nodes=[votes(0), votes(1)])
    samples = [Sample(BEGAN + at * MS, {"commands": at}) for at in (-10, 90, 190, 290)]
    return record(cell(), trial=trial, result=result, watched=Watched([samples, samples]), **fields)


def counts(run):
    return {name: len(getattr(run, name)) for name in DETAILS}


def test_a_killed_and_resumed_run_has_the_rows_of_every_trial_once(folder):
    folder.add_trial(detailed(1))
    folder.add_trial(detailed(2))
    expected = {"clients": 4, "commands": 2, "nodes": 4, "telemetry": 8, "faults": 0}
    killed = load(folder.path)
    assert counts(killed) == expected
    folder.finish("interrupted")
    assert counts(load(folder.path)) == expected
    again = RunFolder.open(folder.path)
    again.add_trial(detailed(2))
    again.add_trial(detailed(3))
    again.finish("complete")
    run = load(folder.path)
    assert counts(run) == {"clients": 6, "commands": 3, "nodes": 6, "telemetry": 12, "faults": 0}
    assert sorted(commands[0] for commands in run.commands["commands"]) == [1, 2, 3]
    assert run.clients["grants"].sum() == 3 * 2_000


def test_a_folder_without_these_files_is_read_with_empty_frames(folder):
    folder.add_trial(detailed(1))
    folder.finish("complete")
    for file in DETAILS.values():
        (folder.path / file).unlink()
    run = load(folder.path)
    assert counts(run) == dict.fromkeys(DETAILS, 0)
    for name in DETAILS:
        assert list(getattr(run, name).columns) == getattr(schema, name.upper()).names
    assert len(run.trials) == 1


def test_a_disturbed_trial_has_no_such_rows(folder):
    from pybench.analysis.disturbances import Trouble

    gone = Trouble(LocksGone("it was flushed", hint="do not"))
    made = detailed(1, trouble=gone)
    assert (made.clients, made.commands, made.nodes, made.telemetry) == ([], [], [], [])
