"""The browser that the report is looked at with."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import Page

CHROMIUM = os.environ.get("PYBENCH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or PYBENCH_CHROMIUM naming one")


def until(page: Page, expression: str) -> None:
    """Waits for `expression` to hold. Playwright's own waiting evaluates text in the page, which its CSP forbids."""
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never came true: {expression}")
