"""One browser for all tests of the report: starting it takes longer than most of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import sync_playwright

from tests.report.browsing import ARGUMENTS, CHROMIUM


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()
