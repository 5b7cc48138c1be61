"""The page of the manual about load over HTTP is true: its names, options and variables are those of the files.

`test_locustfiles.py` runs its commands of Locust, and the slow test here those of k6.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.load.commands import ROOT
from tests.load.page import DISTRIBUTED, K6, LINES, LOCUST, PAGE, SERVE, code_told, run
from tests.load.test_k6 import THRESHOLDS_MISSED, VERSION, k6  # noqa: F401 - a fixture
from tests.service.running import Running


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("line", K6)
def test_every_command_of_k6_ends_as_the_page_says(k6: str, service: Running, tmp_path: Path, line: str):  # noqa: F811
    place = f"{Path(k6).parent}:{os.environ['PATH']}"
    done = run(line, tmp_path / "run", f"http://127.0.0.1:{service.port}", PATH=place)
    assert done.code == code_told(line), done.out + done.err
    assert code_told(line) in (0, THRESHOLDS_MISSED)


def test_the_page_has_commands_of_each_kind():
    assert len(LOCUST) >= 10
    assert len(DISTRIBUTED) >= 3
    assert len(K6) >= 5
    assert len(SERVE) == 1
    others = [line for line in LINES if line not in [*LOCUST, *K6, *SERVE]]
    assert others == ["pip install 'pybench[embedded,service,locust]'", f"go install go.k6.io/k6@{VERSION}"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"embedded", "service", "locust"} <= set(extras)
    assert f"k6 {VERSION.removeprefix('v')}" in PAGE


def test_every_scenario_and_every_variable_is_explained():
    names = {path.stem for path in (ROOT / "locustfiles").glob("[a-z]*.py")} - {"native_locks"}
    scripts = {path.stem for path in (ROOT / "load-tests").glob("*.js")}
    assert {name.replace("_", "-") for name in names} == scripts
    rows = re.findall(
        r"^\| `(\w+)` \| ", PAGE.partition("## The scenarios")[2].partition("## Options")[0], re.MULTILINE
    )
    assert set(rows) == names
    sources = "".join(
        path.read_text(encoding="utf-8")
        for place in ("locustfiles", "load-tests")
        for path in (ROOT / place).rglob("*.[jp][sy]")
    )
    assert set(re.findall(r"PYBENCH_\w+", PAGE)) == set(re.findall(r"PYBENCH_\w+", sources))


def test_every_option_of_the_locustfiles_is_in_the_table():
    told = set(re.findall(r"`(--[\w-]+)`", PAGE.partition("| option |")[2].partition("\n\n")[0]))
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "locustfiles").glob("*.py"))
    ours = set(re.findall(r'^ *(?:parser\.add_argument\()?"(--[a-z][\w-]+)"', sources, re.MULTILINE))
    assert told - {"--host", "--users"} == ours
