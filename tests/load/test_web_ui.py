"""The scenarios in Locust's web page: their options are fields of its form, and each run gets its verdict."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pybench.servers.supervised import free_port
from tests.load.commands import environment, locust_command
from tests.service.running import Running
from tests.waiting import wait_until


@dataclass
class Page:
    """A Locust with a web page."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    file: Path

    def ask(self, method: str, path: str, **form: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            connection.request(method, path, urlencode(form), headers if form else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.ask("GET", "/")[0] == 200
        except OSError:
            return False

    def race(self, host: str, strategy: str, users: int) -> dict[str, Any]:
        """Starts a run from the form, and returns its summary."""
        self.file.unlink(missing_ok=True)
        form = {"user_count": str(users), "spawn_rate": "50", "host": host, "lock_strategy": strategy}
        status, told = self.ask("POST", "/swarm", **form)
        assert (status, json.loads(told)["success"]) == (200, True)
        wait_until(self.file.exists, "the run is judged")
        wait_until(lambda: json.loads(self.ask("GET", "/stats/requests")[1])["state"] == "stopped", "the run ends")
        summary: dict[str, Any] = json.loads(self.file.read_text())
        return summary


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder, port = tmp_path_factory.mktemp("page"), free_port()
    log, file = folder / "locust.log", folder / "summary.json"
    command = locust_command("oversell", "--web-host", "127.0.0.1", "--web-port", str(port), "--summary", str(file))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    page = Page(process, port, log, file)
    try:
        wait_until(page.is_up, "the page is served")
        yield page
    finally:
        process.kill()
        process.wait()


def test_the_form_has_the_options_of_the_scenario_and_its_defaults(page: Page):
    form = page.ask("GET", "/")[1]
    assert '"lock_strategy": {"choices": null, "default_value": "safe"' in form
    assert '"num_users": 50' in form
    assert "http://127.0.0.1:8080" in form
    assert '"summary"' not in form


def test_each_run_is_judged_and_the_last_one_sets_the_exit_code(page: Page, service: Running):
    host = f"http://127.0.0.1:{service.port}"
    first = page.race(host, "none", 20)
    assert (first["passed"], first["settings"]) == (False, {"users": 20, "lock_strategy": "none"})
    second = page.race(host, "safe", 10)
    assert (second["passed"], second["conclusion"]) == (True, "1 of 10 buyers got the only item.")
    third = page.race(host, "none", 20)
    page.process.terminate()
    assert page.process.wait(20) == 1
    for summary in (first, second, third):
        assert summary["conclusion"] in page.log.read_text()
