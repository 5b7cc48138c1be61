"""The summary of a GitHub job: Markdown that is appended to the file that $GITHUB_STEP_SUMMARY names."""

from __future__ import annotations

import os
from pathlib import Path

from pybench.cli.output import say
from pybench.errors import RecordError

VARIABLE = "GITHUB_STEP_SUMMARY"


def append(text: str) -> None:
    """Append `text`; outside of GitHub, say that there is no summary. Raises RecordError."""
    path = os.environ.get(VARIABLE)
    if not path:
        say(f"no job summary: {VARIABLE} is not set")
        return
    _append(path, f"{text.rstrip()}\n\n")


def require_summary(*, asked: bool) -> None:
    """Check before anything is measured that a summary that is `asked` for can be written. Raises RecordError."""
    path = os.environ.get(VARIABLE)
    if asked and path:
        _append(path, "")


def _append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise RecordError(
            f"the job summary {path} cannot be written: {error.strerror}", hint="leave out --summary"
        ) from error
