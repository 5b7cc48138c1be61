"""Takes the pictures of Locust's web page that README shows: a native swarm at work, in both themes.

python -m tools.locust_pictures
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.report.browsing import ARGUMENTS, CHROMIUM
from tests.swarm.swarming import free_port, listens, swarm
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
PICTURES = {"light": ROOT / "docs/images/locust.png", "dark": ROOT / "docs/images/locust-dark.png"}
SIZE = {"width": 1280, "height": 430}
USERS = 4
MEASURED_MS = 30_000
"""How long the charts fill before a picture is taken."""
DRAWN_MS = 2_500


def start(page: Page) -> None:
    """Start the swarm from the form, with the values that are there."""
    page.fill("input[name=userCount]", str(USERS))
    page.fill("input[name=spawnRate]", str(USERS))
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Stop").wait_for()


def is_running(port: int) -> bool:
    """Whether the users have been started."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats/requests") as answer:
        return bool(json.load(answer)["state"] == "running")


def main() -> None:
    """Rewrite the pictures."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        with swarm(Path(folder), f"--web-port={port}", "--web-host=127.0.0.1"):
            wait_until(lambda: listens(port), "the page is there", seconds=60)
            pages = {theme: browser.new_page(viewport=SIZE, color_scheme=theme) for theme in PICTURES}
            for page in pages.values():
                page.goto(f"http://127.0.0.1:{port}")
            start(pages["light"])
            wait_until(lambda: is_running(port), "the swarm runs")
            pages["dark"].reload()
            for page in pages.values():
                page.get_by_role("tab", name="Locks", exact=True).click()
            pages["light"].wait_for_timeout(MEASURED_MS)
            for theme, picture in PICTURES.items():
                pages[theme].mouse.move(0, 0)
                pages[theme].wait_for_timeout(DRAWN_MS)
                pages[theme].screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
