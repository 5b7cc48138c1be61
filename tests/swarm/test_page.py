"""The web page of a swarm in a real browser: from the form to the downloaded report."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import pybench
from tests.report.browsing import needs_chromium
from tests.swarm.conftest import PASSWORD
from tests.swarm.swarming import Swarm, free_port, listens, swarm
from tests.waiting import wait_until

pytestmark = needs_chromium
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 420, "height": 800}


@pytest.fixture
def at(tmp_path: Path, url: str) -> Iterator[tuple[str, Swarm]]:
    """The address of the page, and its process."""
    port = free_port()
    options = ["--web-host=127.0.0.1", f"--web-port={port}", f"--redis={url}", "--out=run"]
    with swarm(tmp_path, *options) as one:
        wait_until(lambda: listens(port), "the page is there", seconds=60)
        yield f"http://127.0.0.1:{port}", one


def statistics(address: str) -> dict:
    with urllib.request.urlopen(f"{address}/stats/requests") as answer:
        found: dict = json.load(answer)
    return found


def figures(address: str) -> dict[str, str]:
    """The rows of our tab."""
    (rows,) = [table["data"] for table in statistics(address)["extended_stats"] if table["key"] == "locks"]
    return {row["figure"]: row["value"] for row in rows}


def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        page.fill(f"input[name={name}]", value)


def start(page: Page, **fields: str) -> None:
    if not page.locator("input[name=strategy]").is_visible():
        page.get_by_text("Custom parameters").click()
    page.locator("input[name=strategy]").wait_for()
    fill(page, userCount="2", spawnRate="2", keys="8", hold="200us", **fields)
    page.get_by_role("button", name="Start").click()


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def test_a_swarm_is_driven_from_the_page(browser: Browser, at: tuple[str, Swarm], tmp_path: Path):
    address, one = at
    page = browser.new_page(viewport=WIDE, color_scheme="light", accept_downloads=True)
    foreign = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(address) else None)
    page.goto(address)

    start(page, strategy="mutexx")
    page.get_by_text("did you mean mutex?").wait_for()
    assert statistics(address)["state"] == "ready", "nothing has started"

    start(page, strategy="mutex")
    page.get_by_role("button", name="Stop").wait_for()
    wait_until(lambda: statistics(address)["current_rps"] > 50, "operations are counted")
    assert PASSWORD not in page.content() + json.dumps(statistics(address)), "the form sent stars, and they worked"
    assert figures(address)["Clients"] == "32"
    tab(page, "Charts")
    page.locator("canvas").first.wait_for()
    tab(page, "Locks")
    page.get_by_text("no violation so far").wait_for()

    page.evaluate("fetch('/swarm', {method: 'POST', body: new URLSearchParams({user_count: 3, spawn_rate: 9})})")
    wait_until(lambda: figures(address)["Clients"] == "48", "users that are added add clients")
    before = statistics(address)["stats"][-1]["num_requests"]
    page.get_by_role("button", name="Reset").click()
    wait_until(lambda: statistics(address)["stats"][-1]["num_requests"] < before, "statistics are reset")
    wait_until(lambda: statistics(address)["current_rps"] > 50, "and go on")

    page.get_by_role("button", name="Stop").click()
    page.get_by_text("SAFE: 0 violations in").wait_for()
    said = figures(address)
    assert {"Verdict", "Safe grants/s", "Hand-off", "Jain's fairness index", "Servers", "Control"} <= set(said)
    for theme in ("light", "dark"):
        for size in (WIDE, NARROW):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size(size)
            tab(page, "Lock workers")
            page.get_by_role("cell", name="worker 1").wait_for()
            tab(page, "Locks")
            page.get_by_text("SAFE: 0 violations in").wait_for()
            page.screenshot(path=tmp_path / f"{theme}-{size['width']}.png")
    page.set_viewport_size(WIDE)

    tab(page, "Download Data")
    with page.expect_download() as download:
        page.get_by_text("Download the report of pybench").click()
    assert "Workers</h2>" in download.value.path().read_text(encoding="utf-8")
    run = pybench.load(tmp_path / "run")
    assert run.trials["concurrency"].tolist() == [48]

    page.get_by_role("button", name="New").click()
    start(page, strategy="none")
    wait_until(lambda: figures(address).get("Lock", "").startswith("none"), "another test starts")
    wait_until(lambda: int(figures(address)["Violations"].replace(",", "")) > 0, "violations are shown as they come")
    assert "while client" in figures(address)["Violation"]
    page.get_by_role("button", name="Stop").click()
    wait_until(lambda: figures(address).get("Verdict", "").startswith("UNSAFE"), "it is judged")
    assert pybench.load(tmp_path / "run-2").trials["verdict"].tolist() == ["UNSAFE"]
    assert not foreign, "the page loads nothing from elsewhere"
    page.close()
    assert "Traceback" not in one.said
    assert PASSWORD not in one.said
