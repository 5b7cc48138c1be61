"""The browser that the report is looked at with."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = os.environ.get("PYBENCH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or PYBENCH_CHROMIUM naming one")
