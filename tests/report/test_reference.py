"""README's figures and pictures are those of the run in results/reference, and README is short."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

import pybench
from tests.report.browsing import needs_chromium
from tools import readme, redis_vs_postgres

AGAIN = "python -m tools.readme writes README and the pictures anew"
# As a repository's front page is set: the width of its column, its type.
STYLE = """body { width: 838px; margin: 0; font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.25; margin: 24px 0 16px; padding-bottom: .3em; }
p, ul, pre, table, blockquote { margin: 0 0 16px; }
h1 { font-size: 32px; } h2 { font-size: 24px; } li { margin-top: 4px; } td, th { padding: 6px 13px; border: 1px solid; }
table { border-collapse: collapse; } code { font-size: 85%; }
pre { padding: 16px; font-size: 13.6px; line-height: 1.45; }"""
SCREEN = 900


def test_readme_shows_what_the_run_found():
    assert readme.told() == readme.shown(pybench.load(readme.REFERENCE)), AGAIN


def test_readme_shows_what_the_manual_says_of_three_experiments():
    found = readme.experiments()
    assert found.count("\n") == 3
    assert redis_vs_postgres.told(readme.README, readme.BEGIN_LAB, readme.END_LAB) == found, AGAIN


@pytest.mark.parametrize("theme", readme.PICTURES)
def test_its_pictures_are_of_that_run(theme):
    started = pybench.load(readme.REFERENCE).manifest["started_at"]
    assert readme.run_of(readme.PICTURES[theme]) == started, AGAIN


@needs_chromium
def test_readme_takes_less_than_three_screens(browser, tmp_path):
    text = readme.README.read_text(encoding="utf-8").replace('"docs/images/', f'"{readme.ROOT}/docs/images/')
    path = tmp_path / "readme.html"
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    path.write_text(f"<meta charset=utf-8><style>{STYLE}</style>{html}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": SCREEN})
    page.goto(path.as_uri())
    height = page.evaluate("document.documentElement.getBoundingClientRect().height")
    page.close()
    assert 1.5 * SCREEN < height <= 3 * SCREEN
