"""`pybench compare` on saved runs: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "results" / "reference"


@pytest.fixture
def slower(tmp_path) -> Path:
    """The reference run, as if every trial of mutex had half the grants and twice the p99."""
    folder = tmp_path / "slower"
    shutil.copytree(REFERENCE, folder)
    table = pq.read_table(folder / "trials.parquet")
    is_mutex = [name == "mutex" for name in table["strategy"].to_pylist()]
    for column, factor in (("grants_per_s", 0.5), ("acquire_p99_us", 2.0)):
        values = [
            value * factor if value is not None and mine else value
            for value, mine in zip(table[column].to_pylist(), is_mutex, strict=True)
        ]
        place = table.schema.get_field_index(column)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    pq.write_table(table, folder / "trials.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["servers"][0]["settings"]["appendfsync"] = "always"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_run_that_became_slower(pybench_inside, slower, tmp_path):
    markdown, page = tmp_path / "change.md", tmp_path / "change.html"
    done = pybench_inside("compare", str(REFERENCE), str(slower), "--md", str(markdown), "--html", str(page))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "  redis appendfsync: off -> always" in lines
    mutex = [line for line in lines if line.startswith("mutex ")]
    assert len(mutex) == 6
    assert all(" slower " in line for line in mutex)
    assert not any(" slower " in line for line in lines if line.startswith(("naive ", "pg-advisory ")))
    assert "written: change.md" in done.err
    assert "| mutex |" in markdown.read_text()
    html = page.read_text()
    assert "mutex (old)" in html
    assert "mutex (new)" in html
    assert 'class="effect slower"' in html
    assert "<th" in html


def test_a_page_of_many_locks_shows_each_in_both_runs(pybench_inside, tmp_path):
    run = str(ROOT / "results" / "redis-vs-postgres")
    assert pybench_inside("compare", run, run, "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count('class="chip" aria-pressed="true"') == 20
    assert 'aria-pressed="false" data-series' not in page


def test_json_has_every_figure_of_every_cell(pybench_inside, slower):
    found = json.loads(pybench_inside("compare", str(REFERENCE), str(slower), "--json").out)
    assert found["paired"] is False
    by_lock = {(cell["lock"], cell["load"]): cell for cell in found["cells"]}
    assert len(by_lock) == len(found["cells"]) == 24
    rate = by_lock["mutex", "64 clients, 1 key"]["figures"]["grants_per_s"]
    assert rate["ratio"] == pytest.approx(0.5)
    assert rate["low"] < 0.5 < rate["high"]
    assert rate["effect"] == "slower"
    assert {"what": "redis appendfsync", "old": "off", "new": "always"} in found["differences"]
    unsafe = by_lock["none", "64 clients, 1 key"]
    assert (unsafe["old_verdict"], unsafe["effect"], unsafe["figures"]) == ("UNSAFE", None, {})


def test_a_run_beside_itself_has_no_change(pybench_inside):
    done = pybench_inside("compare", str(REFERENCE), str(REFERENCE))
    assert done.code == 0
    headline = next(line for line in done.out.splitlines() if line.startswith("of 24 cells"))
    assert "faster" not in headline
    assert "slower" not in headline


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((REFERENCE, "nowhere"), "there is no folder"),
        ((REFERENCE, REFERENCE, "--band", "much"), '--band: "much" is not a percentage'),
        ((REFERENCE, REFERENCE, "--band", "0%"), '--band: "0%" is out of range; above 0% and at most 1000%'),
        ((REFERENCE, REFERENCE, "--md", "/proc/nowhere/all.md"), "/proc/nowhere"),
    ],
)
def test_what_cannot_be_is_a_sentence(pybench_inside, arguments, message):
    done = pybench_inside("compare", *map(str, arguments))
    assert done.code == 40
    assert message in done.err
    assert "Traceback" not in done.err
