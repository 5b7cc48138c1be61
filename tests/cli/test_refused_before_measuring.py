"""What a job cannot use in the end is refused before its work: files to write, and a base that is the head."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Answer, Pybench

MATRIX = "axes: {strategy: mutex}\nfixed: {concurrency: 8, hold: 1ms}\n"
COMMANDS = {
    "run": ("run", "locks.yaml", "--trials", "1"),
    "gate": ("gate", "locks.yaml", "--base-redis", "redis://127.0.0.1:1"),
}
REFERENCE = str(Path(__file__).parents[2] / "results" / "reference")
COMPARE = ("compare", REFERENCE, REFERENCE)


@pytest.fixture
def inside(pybench_inside: Pybench, tmp_path: Path) -> Pybench:
    (tmp_path / "locks.yaml").write_text(MATRIX)
    (tmp_path / "folder").mkdir()
    return pybench_inside


def assert_refused(answer: Answer, complaint: str, folder: Path) -> None:
    assert answer.code == 40
    assert complaint in answer.err
    assert not (folder / "results").exists()
    assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("run", "--junit"), ("gate", "--md"), ("gate", "--html"), ("gate", "--junit")),
        *(("compare", "--md"), ("compare", "--html")),
    ],
)
def test_a_file_that_cannot_be_written_is_named_with_its_option(inside: Pybench, tmp_path: Path, command, option):
    line = COMMANDS.get(command, COMPARE)
    answer = inside(*line, option, "folder")
    assert_refused(answer, f"error: {option}: {tmp_path}/folder cannot be written: Is a directory", tmp_path)
    assert not answer.out
    answer = inside(*line, option, "locks.yaml/file")
    assert_refused(answer, f"error: {option}: {tmp_path}/locks.yaml/file cannot be written: ", tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_job_summary_that_cannot_be_written_is_named(inside: Pybench, tmp_path: Path, monkeypatch, command):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "folder"))
    answer = inside(*COMMANDS[command], "--summary")
    assert_refused(answer, f"error: the job summary {tmp_path}/folder cannot be written: ", tmp_path)


def test_the_folders_above_a_file_are_made(inside: Pybench, tmp_path: Path):
    answer = inside("gate", "locks.yaml", "--junit", "reports/gate/locks.xml", "--md", "reports/locks.md")
    assert answer.code == 21, answer.err
    assert (tmp_path / "reports" / "gate" / "locks.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "options", [(), ("--head", "locks.yaml"), ("--base-postgres", "postgresql://127.0.0.1:1/x"), ("--head", "met.yaml")]
)
def test_a_base_that_differs_in_nothing_that_is_measured_is_no_base(inside: Pybench, tmp_path: Path, options):
    (tmp_path / "met.yaml").write_text(MATRIX + "thresholds: [violations == 0]\n")
    answer = inside("gate", "locks.yaml", *options)
    assert answer.code == 21
    assert answer.err.startswith("can't tell: base and head are the same, so there is nothing to compare\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--base-redis", "localhost:1"), 'error: --base-redis: "localhost:1" is not an address'),
        (("--redis", "localhost:1"), 'error: --redis: "localhost:1" is not an address'),
        (("--base-postgres", "redis://a"), "error: --base-postgres: "),
        (("--trials", "0"), "error: --trials: 0 is out of range"),
    ],
)
def test_an_error_of_an_option_names_the_option_of_the_gate(inside: Pybench, tmp_path: Path, options, complaint):
    answer = inside("gate", "locks.yaml", *options)
    assert_refused(answer, complaint, tmp_path)
    assert "hint: `pybench plan" not in answer.err
    assert "pybench run --help" not in answer.err
