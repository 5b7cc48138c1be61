"""axe-core finds nothing to complain of on any kind of report, in either theme, wide and narrow.

axe-core comes with axe-playwright-python: nothing is fetched while testing.
"""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest

from pybench.report.page import build
from tests.report.browsing import needs_chromium
from tests.report.support import Point, make_run
from tests.report.test_database import figures

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A chart is an image with a name: what it is drawn with is nobody's to read. Of long tables, the later rows are alike.
FOUND = """options => axe.run(
    {exclude: [".plot-container", "tr + tr + tr + tr"]}, {resultTypes: ["violations"], ...options}
).then(
    found => found.violations.map(
        one => `${one.impact}: ${one.id} in ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join("; ")}`
    ))"""
# What the theme or the width can change; the first look takes in every other rule.
OF_THE_LOOK = {"runOnly": ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]}

pytestmark = needs_chromium


def every_verdict():
    """Safe, unsafe, undecided and uncontended cells, at two loads."""
    points = [Point("none", 1, 1), Point("none", 16, 1, broken=True), Point("naive", 16, 1, broken=True)]
    return make_run([*points, Point("mutex", 1, 1), Point("mutex", 16, 1)], trials=2)


def many_strategies():
    """So many that charts begin with some of them, and names that are long."""
    return make_run([Point("redlock", 8, 1, args=f"fanout=sequential, nodes={n}") for n in range(1, 10)], trials=1)


def both_servers():
    """A lock of Redis beside one of a database, whose waits are shown."""
    lock = Point("pg-row", 16, 1, backend="postgres", database=figures())
    return make_run([Point("mutex", 16, 1, backend="redis"), lock, Point("pg-optimistic", 16, 1)], trials=1)


KINDS = {
    "every verdict": every_verdict,
    "many strategies": many_strategies,
    "both kinds of servers": both_servers,
    "void": lambda: make_run([Point("mutex", 8, 1)], caught=False, trials=1),
    "nothing measured": lambda: make_run([], status="interrupted"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(browser, kind, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(KINDS[kind]()), encoding="utf-8")
    # The page lets no script run but its own, and axe is not one of them.
    page = browser.new_page(bypass_csp=True, viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate("document.querySelectorAll('button.open').forEach((one, place) => place % 3 || one.click())")
    page.add_script_tag(content=AXE)
    light_and_wide = page.evaluate(FOUND, {})
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 400, "height": 800})
    dark_and_narrow = page.evaluate(FOUND, OF_THE_LOOK)
    page.context.close()
    assert (light_and_wide, dark_and_narrow) == ([], [])
