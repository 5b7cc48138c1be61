"""What holds for a whole session: nothing is left behind, and in CI nothing is skipped.

Everything that the tests start carries a mark in its environment, and everything temporary goes into one folder, so
that the search at the end finds what is ours, however far from us it was started, and nothing of anybody else's. Where
several processes share the tests, each searches for what it left, and tells the one that leads them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No example fails because the machine is slow.
settings.register_profile("pybench", parent=settings.default, deadline=None)
settings.load_profile("pybench")

MARK = "PYTEST_SESSION_FOLDER"
PATIENCE_S = 3.0

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


class Session:
    """The folder of this session, and what must be gone when it ends."""

    def __init__(self) -> None:
        # pytest keeps the folders of its last sessions for us to look at: these stay where they were.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        # Short: the sockets of servers lie below it.
        self.folder = Path(tempfile.mkdtemp(prefix="pytest-"))
        # Where we are root, Postgres is run as somebody else, who has to get through to what is his.
        self.folder.chmod(0o711)
        self.threads = set(threading.enumerate())
        self.left: list[str] = []
        # A shell that runs us in the background has us ignore the one, `nohup` the other; and all that we start, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.environ[MARK] = os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)

    def end(self) -> None:
        """Look for what is left, with some patience: what was told to go may be on its way."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := [*self._processes(), *self._folders(), *self._threads()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.left += found
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> Iterator[str]:
        mark = f"{MARK}={self.folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = mark in (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # It ended meanwhile, or belongs to somebody else.
            if is_ours and command and int(process.name) != os.getpid():
                yield f"process {process.name}: {command.strip()}"

    def _folders(self) -> Iterator[str]:
        yield from (f"file or folder {path}" for path in sorted(self.folder.iterdir()))

    def _threads(self) -> Iterator[str]:
        yield from (f"thread {thread.name}" for thread in threading.enumerate() if thread not in self.threads)


SESSION = pytest.StashKey[Session]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[SESSION] = Session()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    ours = session.config.stash[SESSION]
    ours.end()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = ours.left
    if ours.left and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - a node of xdist, which has no types
    node.config.stash[SESSION].left += getattr(node, "workeroutput", {}).get("left", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash[SESSION].left:
        terminalreporter.section("left behind by the tests", red=True)
        for found in left:
            terminalreporter.line(found)


def _failed_if_skipped(report: Report) -> Report:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.longrepr = f"skipped in CI, where nothing may be: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _failed_if_skipped((yield))


@pytest.fixture
def no_running_loop() -> Iterator[None]:
    """A browser of other tests in this process leaves its event loop marked as running in this thread."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests that look at pages: it takes long to start, and a process can drive only one so."""
    from playwright.sync_api import sync_playwright

    from tests.report.browsing import ARGUMENTS, CHROMIUM

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()
