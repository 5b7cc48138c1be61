"""The command as users meet it: a process of its own, in an empty folder, 80 columns wide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.servers.redis.supervisor import SupervisedServer

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-W", "error", "-m", "pybench"]
LEFT_AT_ONCE = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-m", "pybench"]
"""The same command, for a second Ctrl-C, which may end the process while it opens a file."""
PASSWORD = "s3cret-pass"
QUICK = ["--trials", "1", "--warmup", "20ms", "--duration", "200ms"]


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYBENCH_", "DISPLAY", "WAYLAND"))
    }
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "LC_ALL": "C.UTF-8", **more}


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Pybench = Callable[..., Answer]


@dataclass(frozen=True)
class GivenServer:
    """A user's own server: on loopback, with a password."""

    process: SupervisedServer

    @property
    def url(self) -> str:
        endpoint = self.process.endpoint
        return f"redis://:{PASSWORD}@{endpoint.host}:{endpoint.port}/0"


def answer_of(
    command: Sequence[str],
    folder: Path,
    *,
    begin: Callable[[], None] | None = None,
    seconds: float = 60,
    **variables: str,
) -> Answer:
    """The output of `command` in `folder`; the new process calls `begin` before the command starts."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
        check=False,
        preexec_fn=begin,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def below(pid: int) -> list[int]:
    """All descendants of the process `pid`; none of a process that has ended."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [process for child in children for process in (child, *below(child))]


def masked(text: str) -> str:
    """`text` without the parts that differ between machines and runs."""
    text = re.sub(r"\d{8}-\d{6}", "<time>", text)
    # The overhead of a trial is a tuned constant, which does not belong to the plan.
    text = re.sub(r"about [\d. mins]+\b", "<seconds>", text)
    text = re.sub(r"(seconds(?:_per_trial|_at_most)?\": )[\d.]+", r"\1<seconds>", text)
    text = re.sub(r"(valkey|redis) \d+\.\d+\.\d+", r"\1 <version>", text)
    text = re.sub(r"\((wheel \S+ \S+|path \S+)\)", "(<source>)", text)
    return re.sub(r"(pybench|core) \d+\.\d+\.\d+", r"\1 <version>", text)
