"""Run folders that cannot be written, or no longer: one message with a hint, and saved trials are kept."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import COMMAND, Answer, Pybench, answer_of

from pybench.matrix import matrix_from_options
from pybench.planning import control
from pybench.records import RunFolder, load
from pybench.records.manifest import read_manifest
from pybench.running import job
from pybench.running.job import Job
from pybench.running.watch import Finished, Silent, Slot

RUN = ["run", "-s", "mutex", "--concurrency", "4", "--warmup", "0", "--duration", "50ms"]
MS = 1_000_000

Mount = Callable[[str], Path]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the measurements around a trial, because no test here needs figures."""
    for name, ms in (("CONTROL_NS", 60), ("BASELINE_NS", 20), ("BASELINE_WARMUP_NS", 5)):
        monkeypatch.setattr(control, name, ms * MS)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """A file system in memory with a given size."""
    with ExitStack() as stack:

        def mounted(size: str) -> Path:
            place = tmp_path / "disk"
            place.mkdir()
            told = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
                capture_output=True,
                text=True,
                check=False,
            )
            if told.returncode:
                pytest.skip(f"nothing can be mounted here: {told.stderr.strip()}")
            stack.callback(subprocess.run, ["umount", place], check=True)
            return place

        yield mounted


def remount(place: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", place], check=True)


def refused(answer: Answer, what: str, hint: str) -> None:
    assert answer.code == 40
    assert answer.err.count("error: ") == 1
    assert what in answer.err
    assert hint in answer.err
    assert "Traceback" not in answer.err


def test_a_disk_that_fills_in_the_middle_loses_no_saved_trial_and_the_run_can_be_resumed(
    pybench_inside: Pybench, mount: Mount
):
    disk = mount("96k")
    folder = disk / "run"
    answer = pybench_inside(*RUN, "--trials", "9", "--out", str(folder))
    refused(answer, f"no space is left for the run folder {folder}", "free some space")
    assert "resume with: pybench run --resume disk/run" in answer.err
    assert "safe grants/s" in answer.out, "the table of what was saved"
    kept = load(folder).trials
    assert 1 <= len(kept) < 9
    refused(pybench_inside("run", "--resume", str(folder)), "no space is left", "free some space")
    assert len(load(folder).trials) == len(kept)

    remount(disk, "size=20m")
    assert pybench_inside("run", "--resume", str(folder)).code == 0
    after = load(folder)
    assert after.manifest["status"] == "complete"
    assert len(after.trials) == 9
    assert set(kept["started_at"]) < set(after.trials["started_at"])
    assert not list(folder.rglob("*.tmp"))


def test_a_disk_that_is_full_from_the_start_is_left_as_it_was(pybench_inside: Pybench, mount: Mount):
    disk = mount("16k")
    (disk / "theirs").write_bytes(b"x" * 16_384)
    answer = pybench_inside(*RUN, "--out", str(disk / "run"))
    refused(answer, "no space is left for the run folder", "choose another folder with --out")
    assert [path.name for path in disk.iterdir()] == ["theirs"]


def test_a_read_only_disk_is_reported_at_the_start(pybench_inside: Pybench, mount: Mount):
    disk = mount("1m")
    remount(disk, "ro")
    refused(pybench_inside(*RUN, "--out", str(disk / "run")), "Read-only file system", "choose a folder that you own")


class Between(Silent):
    """Does `act` after the second trial."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        if slot.number == 2:
            self._act()


def carried_out(folder: Path, act: Callable[[], object]) -> job.Outcome:
    matrix = matrix_from_options(strategy="mutex", concurrency="4", trials="4", warmup="0", duration="50ms")
    return job.carry_out(Job(matrix, command=[], out=folder), watch=Between(act))


def test_a_disk_that_becomes_read_only_keeps_the_trials_before(mount: Mount):
    disk = mount("1m")
    outcome = carried_out(disk / "run", lambda: remount(disk, "ro"))
    assert "Read-only file system" in str(outcome.error)
    assert "check the permissions" in str(outcome.error)
    assert len(outcome.run.trials) == 2
    assert outcome.exit == 40


def test_a_folder_that_is_removed_in_the_middle_is_reported_and_not_created_again(tmp_path: Path):
    folder = tmp_path / "run"
    with pytest.raises(job.RecordError, match="no longer exists"):
        carried_out(folder, lambda: shutil.rmtree(folder))
    assert not folder.exists()


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["x" * 200] * 25)], ids=["name", "path"])
def test_a_path_that_is_too_long_is_shortened_in_the_message(pybench_inside: Pybench, name: str):
    answer = pybench_inside(*RUN, "--out", name)
    refused(answer, "its path is too long", "--out")
    assert len(answer.err) < 500
    assert "is too long" in pybench_inside("report", name).err or "does not exist" in pybench_inside("report", name).err


def test_a_folder_below_a_file_is_reported(pybench_inside: Pybench, tmp_path: Path):
    (tmp_path / "file").touch()
    for path in ("file", "file/below"):
        answer = pybench_inside(*RUN, "--out", path)
        assert answer.code == 40
        assert "file" in answer.err
        assert "Traceback" not in answer.err


def test_a_place_that_takes_no_folders_is_reported(pybench_inside: Pybench):
    refused(pybench_inside(*RUN, "--out", "/proc/run"), "cannot be created", "choose another folder with --out")


def test_a_working_folder_that_was_removed_keeps_nothing_from_running_elsewhere(tmp_path: Path):
    def removed() -> None:
        os.chdir(folder)
        folder.rmdir()

    for arguments in ([*RUN, "--trials", "1", "--out", str(tmp_path / "run")], ["report", str(tmp_path / "run")]):
        (folder := tmp_path / "gone").mkdir()
        assert answer_of([*COMMAND, *arguments], tmp_path, begin=removed).code == 0
    assert read_manifest(tmp_path / "run")["versions"]["commit"] is None
    for arguments in ([*RUN, "--trials", "1"], ["report", "run"], ["run", "--resume", "run"]):
        (folder := tmp_path / "gone").mkdir()
        answer = answer_of([*COMMAND, *arguments], tmp_path, begin=removed)
        refused(answer, "the folder that pybench was called in was removed", "cd to a folder that exists")


def test_a_folder_of_another_user_is_reported(tmp_path: Path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o555)
    # Root may ignore file modes. Dropping that capability is simpler than running Python as another user.
    powerless = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []
    if powerless:
        os.chown(theirs, 65534, 65534)
    answer = answer_of([*powerless, *COMMAND, *RUN, "--out", str(theirs / "run")], tmp_path)
    refused(answer, "Permission denied", "choose a folder that you own")


def test_a_run_in_progress_is_not_resumed_by_another_process(pybench_inside: Pybench, tmp_path: Path):
    assert pybench_inside(*RUN, "--trials", "1", "--out", "run").code == 0
    folder = RunFolder.open(tmp_path / "run")
    folder.update_manifest(status="running")
    folder.claim()
    refused(
        pybench_inside("run", "--resume", "run"),
        "another process is writing to the run folder",
        "wait until that process ends",
    )
    refused(pybench_inside(*RUN, "--out", "run"), "already contains a run", "--resume")
    folder.release()
    assert pybench_inside("run", "--resume", "run").code == 0


def test_too_few_open_files_are_reported_before_the_run(tmp_path: Path):
    answer = answer_of(
        [*COMMAND, *RUN[:4], "1000", "--connections", "per-client"],
        tmp_path,
        begin=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    refused(answer, "every cell of this matrix is refused", "raise the limit (ulimit -n)")
    assert "1,000 connections wanted" in answer.err


def test_init_reports_a_path_that_is_too_long(pybench_inside: Pybench):
    for name in ("x" * 5000, "/".join(["x" * 200] * 25)):
        answer = pybench_inside("init", name)
        refused(answer, "File name too long", "pybench init PATH")
        assert len(answer.err) < 500
