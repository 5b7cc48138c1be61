"""`pybench export`: one format, to stdout or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REFERENCE = str(Path(__file__).parents[2] / "results" / "reference")


@pytest.mark.parametrize("name", ["csv", "json", "junit", "pytest-benchmark", "bencher"])
def test_a_file_has_what_stdout_gets(pybench_inside, tmp_path, name):
    to_stdout = pybench_inside("export", REFERENCE, f"--{name}")
    to_file = pybench_inside("export", REFERENCE, f"--{name}", "--out", "run.out")
    assert (to_stdout.code, to_file.code, to_file.out) == (0, 0, "")
    assert to_file.err == "written: run.out\n"
    assert (tmp_path / "run.out").read_text() == to_stdout.out


def test_csv_and_json_have_the_cells_of_the_run(pybench_inside):
    rows = pybench_inside("export", REFERENCE, "--csv").out.splitlines()
    cells = json.loads(pybench_inside("export", REFERENCE, "--json").out)["cells"]
    assert len(rows) - 1 == len(cells)
    assert rows[0].split(",") == list(cells[0])


@pytest.mark.parametrize(("formats", "count"), [((), "no"), (("--csv", "--junit"), "2")])
def test_one_format_is_named(pybench_inside, formats, count):
    done = pybench_inside("export", REFERENCE, *formats)
    assert done.code == 40
    assert f"error: {count} formats are named" in done.err
    assert "name one of --csv" in done.err
