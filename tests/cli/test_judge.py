"""`pybench judge`: histories of other programs, and those of runs, whole and killed."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pyarrow as pa
import pytest
from command_line import COMMAND, GivenServer, Pybench, answer_of, environment
from syrupy.assertion import SnapshotAssertion

import pybench
from pybench.records import judging, load
from pybench.records.histories import HISTORY, PARTS
from tests.redis_client import connect
from tests.waiting import wait_until

HEADER = {"pybench_history": 1, "clock": "monotonic", "boot_id": "a boot", "lock": "our lock"}
MS = 1_000_000


def history(*events: dict[str, object], **header: object) -> str:
    return "".join(json.dumps(line) + "\n" for line in (HEADER | header, *events))


def turns(worker: int, *, of: int, rounds: int, overlap_ms: int = 0) -> list[dict[str, object]]:
    """A worker that waits, and holds the key for 2 ms in its turn; all `of` workers take turns."""
    events: list[dict[str, object]] = []
    end = 0
    for number in range(rounds):
        granted = (number * of + worker) * 2 * MS + 1_000 * MS
        begins = max(end, granted - 3 * MS)
        end = granted + (2 + overlap_ms) * MS
        steps = [(begins, "acquire", {}), (granted, "granted", {"until": granted + 50 * MS}), (end, "released", {})]
        events += [{"t": t, "client": "w", "event": event, "key": "stock", **more} for t, event, more in steps]
    return events


def written(folder: Path, *, overlap_ms: int = 0) -> list[str]:
    names = [f"worker-{worker}.jsonl" for worker in range(3)]
    for worker, name in enumerate(names):
        events = turns(worker, of=3, rounds=20, overlap_ms=overlap_ms)
        (folder / name).write_text(history(*events))
    return names


def test_a_lock_without_violation_is_safe(pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path):
    answer = pybench_inside("judge", *written(tmp_path))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == snapshot


def test_a_key_held_twice_breaks_the_promise(pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path):
    answer = pybench_inside("judge", *written(tmp_path, overlap_ms=1))
    assert answer.code == 20
    assert answer.out == snapshot
    assert answer.err == "exit code 20: a lock broke its promise\n"


def test_each_file_alone_is_undecided_because_nobody_contended(pybench_inside: Pybench, tmp_path: Path):
    answer = pybench_inside("judge", written(tmp_path)[0])
    assert answer.code == 21
    assert answer.out.startswith("UNDECIDED  our lock: no violation, but only 0 contended grants, and SAFE needs 30")


def test_json_has_the_verdict_and_every_violation(pybench_inside: Pybench, tmp_path: Path):
    answer = pybench_inside("judge", *written(tmp_path, overlap_ms=1), "--json")
    told = json.loads(answer.out)
    assert told["exit_code"] == answer.code == 20
    (judged,) = told["histories"]
    assert (judged["verdict"], judged["promise_broken"]) == ("UNSAFE", True)
    assert len(judged["violations"]) == judged["counts"]["double_grants"] == 59
    first = judged["violations"][0]
    assert (first["kind"], first["key"], first["at_ns"]) == ("double-grant", "stock", 5 * MS)
    assert (first["first_client"], first["second_client"]) == ("w of worker-0.jsonl", "w of worker-1.jsonl")


def test_compressed_histories_are_read_also_in_several_frames(pybench_inside: Pybench, tmp_path: Path):
    names = written(tmp_path)
    for name in names:
        lines = (tmp_path / name).read_bytes().splitlines(keepends=True)
        frames = b""
        for part in (lines[:7], lines[7:]):
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as out:
                out.write(b"".join(part))
            frames += sink.getvalue().to_pybytes()
        (tmp_path / f"{name}.zst").write_bytes(frames)
    compressed = pybench_inside("judge", *(f"{name}.zst" for name in names))
    assert compressed == pybench_inside("judge", *names)


def test_a_torn_last_line_is_left_out_and_named(pybench_inside: Pybench, tmp_path: Path):
    (name, *others) = written(tmp_path)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text[:-20])
    answer = pybench_inside("judge", name, *others)
    assert answer.err.splitlines()[0] == f"{name}: line 61 was torn off and is left out"
    assert answer.code == 20, "a release that was not written had not been sent: another client was granted the key"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense\n",
        history({"t": 5, "client": "w", "event": "released"}),
        history({"t": 5, "client": "w", "event": "acquire", "key": "k"}, {"t": 4, "client": "w", "event": "gave-up"}),
        history({"t": 5, "client": "w", "event": "aquire", "key": "k"}),
        history(boot_id=""),
        history(promises={"order": "fifo"}),
    ],
    ids=["empty", "no-json", "no-acquire", "backwards", "misspelt", "no-boot", "no-such-order"],
)
def test_what_breaks_the_format_is_an_error_with_file_and_line(
    pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path, text: str
):
    (tmp_path / "broken.jsonl").write_text(text)
    answer = pybench_inside("judge", "broken.jsonl")
    assert (answer.code, answer.out) == (40, "")
    assert answer.err == snapshot


def test_a_file_that_is_missing_damaged_or_a_folder_without_history_is_an_error(
    pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path
):
    (tmp_path / "damaged.zst").write_bytes(b"\x28\xb5\x2f\xfd and no frame")
    (tmp_path / "empty").mkdir()
    answers = [pybench_inside("judge", name) for name in ("missing.jsonl", "damaged.zst", "empty")]
    assert {answer.code for answer in answers} == {40}
    assert [answer.err for answer in answers] == snapshot


def test_the_history_of_a_run_has_the_verdicts_and_violations_of_the_run(tmp_path: Path):
    """Safe and unsafe cells, with one thread and with two, which the run judges over rings."""
    run = pybench.run(
        strategy=["mutex", "none", "fenced", "fair-queue"],
        concurrency=8,
        threads=[1, 2],
        hold=["1ms", "30ms"],
        ttl="20ms",
        allow="hold-beyond-ttl",
        trials=1,
        warmup="30ms",
        duration="300ms",
        history=True,
        out=tmp_path / "run",
    )
    assert len(run.trials) == 16
    assert set(run.trials["verdict"]) >= {"SAFE", "UNSAFE"}
    agrees_with_the_record(run)


def agrees_with_the_record(run: pybench.Run) -> None:
    """The histories of the run have the verdicts, counts and violations of its record, with its folder and without."""
    judged = {(one.name, one.trial): one for one in judging.judge_paths([run.path])}
    assert len(judged) == len(run.trials)
    kept = [json.loads(line) for line in (run.path / "violations.jsonl").read_text().splitlines()]
    for row in run.trials.to_dict("records"):
        one = judged[row["cell"], row["trial"]]
        assert one.judgement.verdict.value == row["verdict"], row["cell"]
        assert one.judgement.promise_broken == row["promise_broken"]
        for name in ("grants", "contended_grants", "double_grants", "lease_overruns", "outlived", "stalls", "findings"):
            assert one.counts[name] == row[name], (row["cell"], name)
        ours = [
            {name: value for name, value in violation.items() if value is not None and name not in ("cell", "trial")}
            for violation in kept
            if (violation["cell"], violation["trial"]) == (row["cell"], row["trial"])
        ]
        theirs = [
            {name: value for name, value in violation.items() if value is not None} for violation in one.violations
        ]
        assert theirs == ours
    # Without its folder the history has the same violations, and no probes or controls.
    alone = {(one.name, one.trial): one for one in judging.judge_paths([run.path / HISTORY])}
    assert {key: one.violations for key, one in alone.items()} == {key: one.violations for key, one in judged.items()}
    assert not (run.path / PARTS).exists()


def test_locks_with_sessions_writes_and_several_keys_are_judged_alike(tmp_path: Path):
    locks = ["pg-optimistic", "pg-row", "layered", "semaphore", "read-write", "notify"]
    times = {"trials": 1, "warmup": "20ms", "duration": "150ms", "history": True, "concurrency": 6}
    agrees_with_the_record(pybench.run(strategy=locks, out=tmp_path / "locks", **times))
    several = {"strategy": "multilock(nodes=1)", "keys": 4, "keys_per_grant": 2, "threads": [1, 2]}
    agrees_with_the_record(pybench.run(out=tmp_path / "several", **several, **times))


@pytest.fixture(scope="module")
def run_with_faults(tmp_path_factory: pytest.TempPathFactory) -> pybench.Run:
    """A Redis that comes back empty while all keys are held, so that they are granted twice."""
    times = {"trials": 1, "warmup": "0", "duration": "2s", "hold": "1500ms", "ttl": "5s"}
    load = {"strategy": "mutex", "concurrency": 16, "keys": 2, "faults": "restart(data=lose) redis[0] at 200ms"}
    return pybench.run(history=True, out=tmp_path_factory.mktemp("judged") / "run", **load, **times)


def test_the_history_of_a_run_with_faults_is_judged_by_what_is_promised_under_them(run_with_faults: pybench.Run):
    assert run_with_faults.trials[["verdict", "promise_broken"]].to_numpy().tolist() == [["UNSAFE", False]]
    agrees_with_the_record(run_with_faults)
    (judged,) = judging.judge_paths([run_with_faults.path])
    assert judged.judgement.reason.endswith(", under restart(data=lose) redis[0]")


def test_no_probe_judges_a_history_with_faults(tmp_path: Path):
    times = {"trials": 1, "warmup": "0", "duration": "200ms", "history": True, "faults": "reset redis[0] at 100ms"}
    run = pybench.run(strategy="mutex", out=tmp_path / "run", **times)
    agrees_with_the_record(run)
    (judged,) = judging.judge_paths([run.path])
    assert judged.judgement.reason.endswith(" none of them contended, under reset redis[0]")


def test_a_trial_with_faults_that_has_no_record_is_judged_by_the_plan_of_its_cell(
    run_with_faults: pybench.Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(judging, "gather", lambda *_: SimpleNamespace(trials=pa.table({"cell": [], "trial": []})))
    (judged,) = judging.judge_paths([run_with_faults.path])
    assert (judged.judgement.verdict, judged.judgement.promise_broken) == ("UNSAFE", False)
    assert [note for note in judged.notes if "no record of this trial" in note]


def test_a_history_with_faults_alone_blames_the_lock_and_says_what_is_missing(
    pybench_inside: Pybench, run_with_faults: pybench.Run
):
    answer = pybench_inside("judge", str(run_with_faults.path / HISTORY))
    assert answer.code == 20
    (note,) = (line for line in answer.err.splitlines() if "under faults" in line)
    assert note.endswith("name the folder of the run instead")
    assert pybench_inside("judge", str(run_with_faults.path)).code == 0


def test_histories_of_guarded_works_are_judged_with_the_values_of_the_record(tmp_path: Path):
    guarded = {"guard": ["counter", "stock(20)"], "hold": "uniform(5ms, 40ms)", "ttl": "25ms", "concurrency": 8}
    more = {"trials": 1, "warmup": "0", "duration": "500ms", "allow": "hold-beyond-ttl", "history": True}
    run = pybench.run(strategy="mutex", out=tmp_path / "run", **guarded, **more)
    assert run.trials["lost_updates"].sum() > 0
    agrees_with_the_record(run)
    reasons = {one.name: one.judgement.reason for one in judging.judge_paths([run.path])}
    assert any("lost update" in reason for reason in reasons.values())


def test_an_interrupted_run_keeps_its_histories_and_a_resumed_one_adds_to_them(pybench: Pybench, tmp_path: Path):
    line = ["run", "-s", "mutex", "--concurrency", "4", "--hold", "1ms", "--warmup", "0", "--duration", "700ms"]
    process = subprocess.Popen(
        [*COMMAND, *line, "--trials", "3", "--history", "--out", "run"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    parts = tmp_path / "run" / PARTS

    def second_trial_runs() -> bool:
        # The recordings of a trial are removed a moment after its history was written.
        ended = {path.name.split(".")[0] for path in parts.glob("*.zst")}
        return bool(ended) and any(path.name.split(".")[0] not in ended for path in parts.glob("*.recording"))

    wait_until(second_trial_runs, "the second trial", seconds=60)
    time.sleep(0.2)  # Its window opens; if it ends meanwhile, another trial is interrupted.
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert {one.trial for one in judging.judge_paths([tmp_path / "run"])} >= {1, 2}
    assert pybench("run", "--resume", "run").code == 0
    assert [one.trial for one in judging.judge_paths([tmp_path / "run"])] == [1, 2, 3]
    agrees_with_the_record(load(tmp_path / "run"))


def test_a_history_without_space_ends_the_run_with_an_error(tmp_path: Path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    command = [*COMMAND, "run", "-s", "none", "--trials", "1", "--duration", "50ms", "--history", "--out", "run"]
    answer = answer_of(command, tmp_path, begin=limit)
    assert answer.code == 40
    assert "error: the history of the trial cannot be written: File too large\nhint: free some space" in answer.err


def test_a_run_without_history_writes_none(tmp_path: Path):
    run = pybench.run(strategy="none", trials=1, duration="50ms", warmup="0", out=tmp_path / "run")
    assert not (run.path / HISTORY).exists()
    with pytest.raises(pybench.PybenchError, match="has no history"):
        judging.judge_paths([run.path])


@contextmanager
def monitored(server: GivenServer) -> Iterator[list[str]]:
    """Every command that the server executes meanwhile."""
    commands: list[str] = []
    with connect(server.process.endpoint) as client, client.monitor() as monitor:

        def listen() -> None:
            for command in monitor.listen():
                commands.append(command["command"])
                if "the end" in command["command"]:
                    return

        thread = Thread(target=listen)
        thread.start()
        try:
            yield commands
        finally:
            with connect(server.process.endpoint) as other:
                other.echo("the end")
            thread.join()


def test_a_killed_run_loses_no_event_whose_effect_reached_the_server(given_server: GivenServer, tmp_path: Path):
    arguments = ["-s", "mutex", "--concurrency", "8", "--keys", "4", "--hold", "1ms", "--duration", "60s"]
    arguments += ["--trials", "1", "--threads", "2", "--warmup", "0", "--redis", given_server.url]
    with monitored(given_server) as commands:
        process = subprocess.Popen(
            [*COMMAND, "run", *arguments, "--history", "--out", "run"],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        parts = tmp_path / "run" / PARTS
        wait_until(lambda: len(list(parts.glob("*.recording"))) == 2, "the trial begins", seconds=60)
        begun = len(commands)
        wait_until(lambda: len(commands) > begun + 2_000, "the trial goes on")
        process.send_signal(signal.SIGKILL)
        process.wait()
        # What the dead process had sent may still wait to be executed.
        with connect(given_server.process.endpoint) as client:
            wait_until(lambda: not [one for one in client.client_list() if one["name"]], "its connections end")
    (judged,) = judging.judge_paths([tmp_path / "run"])
    told = judged.notes
    assert any("no record of this trial" in note for note in told)
    assert judged.judgement.verdict.value == "SAFE"
    # The last prefix that was used is that of the killed trial.
    prefixes = [word for command in commands for word in command.split() if word.startswith("pybench:") and "{" in word]
    prefix = prefixes[-1].split("{")[0]
    of_trial = [command.split() for command in commands if prefix in command]
    executed = Counter(words[0].upper() for words in of_trial)
    releases = sum(count for name, count in executed.items() if name != "SET")
    lines = [json.loads(line) for line in lines_of_killed(tmp_path / "run")]
    recorded = Counter(line.get("event") for line in lines)
    assert releases > 50, executed
    assert releases <= recorded["released"] <= releases + 8
    assert recorded["released"] <= recorded["granted"] <= recorded["released"] + 8


def lines_of_killed(folder: Path) -> list[bytes]:
    from pybench.records import histories

    return b"".join(piece for _, pieces in histories.sources_of(folder) for piece in pieces).splitlines()
