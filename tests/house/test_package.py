"""The package as users install it: what is in the wheel and the source archive, and that it works far from here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.workspace import ROOT, Workspace

DATA = [".css", ".html", ".js", ".lua", ".pyi", ".typed"]
"""What the package needs beside modules: it would be missing only once somebody makes a report."""

# Where the core is not built yet.
pytestmark = pytest.mark.timeout(600)


def maturin(*arguments: str) -> None:
    command = [sys.executable, "-m", "maturin", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    # With the interpreter of `make build`, nothing is compiled again.
    maturin("build", "--release", "--locked", "--quiet", "--interpreter", sys.executable, "--out", str(place))
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def inside(wheel) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `pybench` from an environment of its own, which sees our dependencies and not our sources."""
    home = tmp_path_factory.mktemp("home")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
    python = home / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    # Read after the environment's own packages, and without what makes a package editable: that is in .pth files.
    (packages,) = (home / "venv/lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYBENCH_"))}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        said = {"capture_output": True, "text": True, "check": False, "timeout": 60}
        return subprocess.run([home / "venv/bin" / command[0], *command[1:]], cwd=home, env=clean, **said)

    return run


def test_one_wheel_serves_python_3_11_and_all_later_ones(wheel):
    assert wheel.name.startswith("pybench-")
    assert "-cp311-abi3-" in wheel.name


def test_the_wheel_has_every_file_of_the_package(inside):
    ours = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "pybench").rglob("*")
        if path.suffix in [*DATA, ".py"] and path.is_file()
    }
    assert {"pybench/py.typed", "pybench/_core.pyi", "pybench/report/templates/page.html"} <= ours
    assert ours - inside == set()


def test_the_wheel_has_the_core_and_the_licences(inside):
    assert "pybench/_core.abi3.so" in inside
    assert "pybench/report/vendor/LICENSE-plotly.js" in inside
    assert [name for name in inside if name.endswith(".dist-info/licenses/LICENSE")]


def test_the_wheel_has_nothing_else(inside):
    assert {name.split("/")[0].split("-")[0] for name in inside} == {"pybench"}
    assert [name for name in inside if "__pycache__" in name or name.endswith((".so.dSYM", ".rs"))] == []


def test_an_installed_pybench_is_not_ours(installed):
    where = installed("python", "-c", "import pybench; print(pybench.__file__)").stdout
    assert "site-packages" in where
    assert str(ROOT) not in where


def test_an_installed_pybench_tells_its_version(installed):
    answer = installed("pybench", "--version")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "pybench" in answer.stdout


def test_an_installed_pybench_lists_its_strategies(installed):
    answer = installed("pybench", "strategies", "--json")
    assert answer.returncode == 0, answer.stderr
    assert "mutex" in json.dumps(json.loads(answer.stdout))


def test_an_installed_pybench_measures_and_reports(installed, tmp_path):
    short = ["--duration", "100ms", "--warmup", "50ms", "--trials", "1"]
    answer = installed("pybench", "run", "-s", "mutex", *short, "--out", str(tmp_path / "run"))
    assert answer.returncode == 0, answer.stderr
    (report,) = tmp_path.rglob("report.html")
    assert "mutex" in report.read_text(encoding="utf-8")


def test_the_source_archive_has_all_that_a_build_needs(tmp_path):
    maturin("sdist", "--out", str(tmp_path))
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    # Of the crates that the core is linked with.
    workspace = Workspace.read()
    needed = workspace.behind("pybench-core") & workspace.members()
    crates = [ROOT / "rust_core" / "python", *(ROOT / "rust_core" / crate for crate in needed - {"pybench-core"})]
    sources = {
        str(path.relative_to(ROOT))
        for crate in crates
        for path in [crate / "Cargo.toml", *(crate / "src").rglob("*.*")]
    }
    assert len(sources) > 40
    package = {"PKG-INFO", "LICENSE", "README.md", "pyproject.toml", "Cargo.toml", "Cargo.lock", "pybench/_core.pyi"}
    assert (sources | package) - names == set()
