"""The page of the manual about load over HTTP is true: each command runs, each name and default exists."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pybench.servers.supervised import free_port
from tests.load.commands import PATIENT, ROOT, Ended, ended
from tests.load.test_k6 import THRESHOLDS_MISSED, VERSION, k6  # noqa: F401 - a fixture
from tests.service.running import Running, serving

PAGE = (ROOT / "docs/http-load.md").read_text(encoding="utf-8")
BLOCKS = [block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)]
LINES = [line for block in BLOCKS for line in block]
LOCUST = [line for line in LINES if re.match(r"(\w+=\w+ )?locust ", line)]
K6 = [line for line in LINES if line.startswith("k6 ")]
SERVE = [line for line in LINES if line.startswith("pybench serve")]
DISTRIBUTED = [line for line in LOCUST if re.search("--(master|worker)", line)]


def command(line: str) -> tuple[list[str], dict[str, str]]:
    """The words of a command line, and the variables before them."""
    words = shlex.split(line, comments=True)
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word) and words.index(word) == 0)
    return words[len(variables) :], variables


def code_told(line: str) -> int:
    """The exit code in the comment behind the command."""
    told = re.search(r"# exits with (\d+)", line)
    return int(told[1]) if told else 0


def run(line: str, folder: Path, host: str, **variables: str) -> Ended:
    """The command as the page has it, in a checkout, with the page's addresses and ports replaced by free ones."""
    folder.mkdir()
    for name in ("locustfiles", "load-tests"):
        (folder / name).symlink_to(ROOT / name)
    words, more = command(line)
    words[:1] = {"locust": [sys.executable, "-m", "locust"]}.get(words[0], words[:1])
    ours = {"LOCUST_HOST": host, "BASE_URL": host, "LOCUST_RUN_TIME": "1s", "LOCUST_WEB_HOST": "127.0.0.1"}
    if "--headless" not in words and "--worker" not in words:
        ours |= {"LOCUST_AUTOSTART": "true", "LOCUST_AUTOQUIT": "0", "LOCUST_WEB_PORT": str(free_port())}
    return ended(words, folder, **PATIENT | ours | more | variables)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service as the page starts it, on a free port."""
    (line,) = SERVE
    words, _ = command(line)
    with serving(tmp_path_factory.mktemp("service"), *words[2:]) as running:
        yield running


@pytest.fixture(scope="module")
def runs(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ended]]]:
    """The runs of all lines, those that use the same products one after another."""
    host, folder = f"http://127.0.0.1:{service.port}", tmp_path_factory.mktemp("manual")
    port = str(free_port())
    ports = {"LOCUST_MASTER_BIND_PORT": port, "LOCUST_MASTER_NODE_PORT": port}
    with ThreadPoolExecutor(1) as buyers, ThreadPoolExecutor(1) as customers, ThreadPoolExecutor(3) as free:
        found = {}
        for number, line in enumerate(LOCUST):
            if line not in DISTRIBUTED:
                pool = buyers if "oversell" in line else customers if "high_load" in line else free
                found[str(number)] = pool.submit(run, line, folder / str(number), host)
        buyers.submit(lambda: None).result()
        for number, line in enumerate(LOCUST):
            if line in DISTRIBUTED:
                found[str(number)] = free.submit(run, line, folder / str(number), host, **ports)
        yield found


@pytest.mark.parametrize(("number", "line"), [(str(number), line) for number, line in enumerate(LOCUST)])
def test_every_command_of_locust_ends_as_the_page_says(runs: dict[str, Future[Ended]], number: str, line: str):
    done = runs[number].result()
    assert done.code == code_told(line), done.out + done.err


def test_workers_report_to_their_master(runs: dict[str, Future[Ended]]):
    done = runs[str(LOCUST.index(DISTRIBUTED[-3]))].result()
    assert done.summary["settings"]["users"] == done.summary["metrics"]["answers"] == 50
    assert done.summary["conclusion"] == "1 of 50 buyers got the only item."


def test_the_last_reports_of_workers_are_part_of_the_verdict(runs: dict[str, Future[Ended]]):
    (line,) = [line for line in LOCUST if "--processes" in line]
    metrics = runs[str(LOCUST.index(line))].result().summary["metrics"]
    # The run is over before the first regular report. On a busy machine, an answer may come too late for its user.
    assert 0 < metrics["taken"] * 0.8 < metrics["sold"] <= metrics["taken"]


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


def test_every_field_of_the_summary_file_is_explained(runs: dict[str, Future[Ended]]):
    rows = PAGE.partition("| field | meaning |")[2]
    told = {
        name for names in re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE) for name in re.findall(r"`(\w+)`", names)
    }
    summary = runs["0"].result().summary
    assert told == set(summary)
    common = re.findall(r"`(\w+)`", re.search(r"Every scenario has the metrics (.*?)\. Set-up", PAGE, re.DOTALL)[1])
    assert common == list(summary["metrics"])[: len(common)]
