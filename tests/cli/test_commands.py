"""Commands that measure nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, ROOT, GivenServer, Pybench, environment

from pybench.matrix import matrix_from_options
from pybench.matrix.cells import AXES
from pybench.records import load
from pybench.strategies import CATALOGUE


def test_init_writes_a_matrix_that_can_be_planned_and_its_schema(pybench_inside: Pybench, tmp_path: Path):
    assert pybench_inside("init").out == "matrix.yaml\n"
    assert pybench_inside("plan", "matrix.yaml").code == 0
    assert json.loads((tmp_path / "pybench.schema.json").read_text())["title"] == "pybench matrix"


def test_init_overwrites_a_file_only_with_force(pybench_inside: Pybench, tmp_path: Path):
    (tmp_path / "matrix.yaml").write_text("mine")
    refused = pybench_inside("init")
    assert refused.code == 40
    assert "--force" in refused.err
    assert (tmp_path / "matrix.yaml").read_text() == "mine"
    assert pybench_inside("init", "--force").code == 0
    assert "axes:" in (tmp_path / "matrix.yaml").read_text()


def test_an_option_replaces_the_files_values_of_its_axis(pybench_inside: Pybench, tmp_path: Path):
    (tmp_path / "m.yaml").write_text("axes: {strategy: [naive, mutex], concurrency: [1, 64], keys: [1, 10]}")
    plan = json.loads(pybench_inside("plan", "m.yaml", "-s", "mutex", "--concurrency", "2,4", "--json").out)
    assert [cell["id"] for cell in plan["cells"]] == [
        "mutex concurrency=2",
        "mutex concurrency=2 keys=10",
        "mutex concurrency=4",
        "mutex concurrency=4 keys=10",
    ]


def test_axes_are_repeated_or_separated_by_commas_outside_of_parentheses(pybench_inside: Pybench):
    line = ["plan", "-s", "naive,mutex", "-s", "none", "--hold", "lognormal(2ms, 0.8),1ms", "--json"]
    assert len(json.loads(pybench_inside(*line).out)["cells"]) == 6


def test_each_axis_of_a_matrix_but_the_backend_is_an_option_with_its_default(pybench_inside: Pybench):
    said = " ".join(pybench_inside("run", "--help").out.split())
    for axis in AXES.values():
        if axis.name != "backend":
            assert f"{axis.flag} " in said or f"{axis.flag}, " in said
            assert axis.default is None or f"[default: {axis.text(axis.default)}]" in said.replace("- ", "-")


def test_the_defaults_of_the_schedule_are_those_of_a_matrix(pybench_inside: Pybench):
    matrix = matrix_from_options(strategy="mutex").to_dict()
    said = pybench_inside("run", "--help").out
    for name in ("trials", "duration", "warmup", "seed"):
        (line,) = (line for line in said.splitlines() if f"--{name} " in line)
        assert line.endswith(f"[default: {matrix[name]}]")


def test_without_arguments_the_help_is_shown(pybench_inside: Pybench):
    assert pybench_inside() == pybench_inside("--help")


def test_the_help_describes_each_command_in_full(pybench_inside: Pybench):
    assert "..." not in pybench_inside("--help").out.partition("Commands:")[2]


def test_a_plan_of_nothing_but_refused_cells_shows_them_and_is_bad_input(pybench_inside: Pybench):
    answer = pybench_inside("plan", "-s", "mutex", "--hold", "20s")
    assert answer.code == 40
    assert "refused: the hold of 20s" in answer.out
    assert "cells:" not in answer.out


def test_a_plan_notes_an_exclusion_that_matches_no_cell(pybench_inside: Pybench, tmp_path: Path):
    (tmp_path / "m.yaml").write_text("fixed: {strategy: mutex}\nexclude: [{strategy: none}]")
    assert "note: exclude matches no cell: strategy none\n" in pybench_inside("plan", "m.yaml").out


def test_show_prints_a_saved_run_as_it_was(pybench_inside: Pybench):
    reference = str(ROOT / "results" / "reference")
    shown = pybench_inside("show", reference)
    assert shown.code == 0
    run = load(reference)
    assert run.answer.headline in " ".join(shown.out.split())
    assert all(lock in shown.out for lock in ("mutex", "naive", "pg-advisory", "none"))
    told = json.loads(pybench_inside("show", "--json", reference).out)
    assert told["headline"] == run.answer.headline
    assert [len(told["cells"]), told["exit_code"]] == [len(run.summary), 0]
    assert pybench_inside("show", str(ROOT / "docs")).code == 40


def test_a_table_in_a_pipe_has_all_columns_and_a_narrow_table_those_that_fit(pybench: Pybench):
    reference = str(ROOT / "results" / "reference")
    piped = pybench("show", reference, COLUMNS="").out
    assert "server" in piped
    assert "CPU/grant  CPU/grant\n" in piped
    assert "not shown at this width" not in piped
    assert "not shown at this width" in pybench("show", reference, COLUMNS="80").out


def test_clients_is_another_name_of_concurrency(pybench_inside: Pybench):
    plans = [pybench_inside("plan", "-s", "mutex", flag, "3,5") for flag in ("--clients", "--concurrency")]
    assert plans[0] == plans[1]
    assert "concurrency=5" in plans[0].out


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("localhost:6379", "redis://localhost:6379"),
        ("db.example:5432", "postgresql://db.example:5432"),
    ],
)
def test_a_host_and_port_alone_are_refused_with_the_likely_address(pybench_inside: Pybench, given: str, meant: str):
    answer = pybench_inside("plan", "-s", "mutex", "--redis", given)
    assert answer.code == 40
    assert f"did you mean {meant}?" in answer.err


def test_the_schema_is_json_on_stdout(pybench_inside: Pybench):
    assert json.loads(pybench_inside("schema").out)["$schema"].startswith("https://json-schema.org/")


def test_the_strategies_as_json_have_the_catalogues_fields(pybench_inside: Pybench):
    rows = json.loads(pybench_inside("strategies", "--json").out)
    assert [row["strategy"] for row in rows] == list(CATALOGUE)
    assert {row["strategy"]: row["commands_per_grant"] for row in rows}["mutex"] == 2


def test_the_doctor_checks_the_given_server_and_never_prints_its_password(pybench: Pybench, given_server: GivenServer):
    answer = pybench("doctor", "--json", PYBENCH_REDIS_URL=given_server.url)
    findings = json.loads(answer.out)
    assert answer.code == 0
    assert any(finding["subject"] == "server" and "on this machine" in finding["what"] for finding in findings)
    assert "s3cret" not in answer.out + answer.err


def test_the_doctor_exits_41_when_a_given_server_does_not_answer(pybench: Pybench):
    # An empty option, as from an unset shell variable, is an unreachable server.
    answer = pybench("doctor", "--redis", "redis://127.0.0.1:1", "--postgres", "")
    assert answer.code == 41
    assert "bad   server" in answer.out
    assert "bad   postgres      an empty text is not the URL" in answer.out


def test_a_reader_that_closes_the_pipe_early_is_no_error(tmp_path: Path):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            [*COMMAND, "schema"], cwd=tmp_path, env=environment(), stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_under_stdout_is_reported_in_a_sentence(tmp_path: Path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "schema"], cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 40
    assert done.stderr.startswith(b"error: stdout cannot be written: No space left on device\nhint: ")


HEAVY = {"jinja2", "numpy", "pandas", "plotly", "psutil", "psycopg", "pyarrow", "pydantic", "redis", "ruamel", "scipy"}
"""Libraries that take most of a second to load. `make perf` measures how long the help takes."""


@pytest.mark.parametrize("line", [["--help"], ["run", "--help"], ["strategies", "--help"]])
def test_the_help_loads_no_heavy_library(tmp_path: Path, line: list[str]):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pybench", *line],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
        text=True,
    )
    names = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert "pybench.cli.app" in names
    assert not HEAVY & {name.partition(".")[0] for name in names}
    assert "pybench._core" not in names


def test_importing_the_package_loads_nothing_but_itself_and_starts_no_thread():
    script = (
        "import sys, threading; before = {*sys.modules}; import pybench; "
        "assert threading.active_count() == 1; print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["__future__", "pybench"]


def test_windows_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from pybench.cli.line import answer

    monkeypatch.setattr("sys.platform", "win32")
    assert answer(["doctor"]) == 40
    assert "WSL" in capsys.readouterr().err


def test_a_bug_shows_its_traceback_and_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from pybench.cli.line import answer

    monkeypatch.setattr("pybench.matrix.json_schema", lambda: 1 / 0)
    assert answer(["schema"]) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "Please report it" in said


def test_a_bug_never_shows_a_password(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from pybench.cli.line import answer

    monkeypatch.setattr("pybench.running.job.read_matrix", lambda *_, **__: 1 / 0)
    assert answer(["plan", "-s", "mutex", "--redis", "redis://user:s3cret@host"]) == 1
    assert "s3cret" not in capsys.readouterr().err
