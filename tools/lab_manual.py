"""Generates the output in docs/lab.md: each marked command is run, and what it prints is put behind it.

    python -m tools.lab_manual            all of them
    python -m tools.lab_manual crash      those whose command has this word

A test compares what does not change from run to run; nothing of it is typed by hand.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANUAL = ROOT / "docs" / "lab.md"
MARKED = re.compile(
    r"```sh\n(?P<command>pybench lab [^\n]*)\n```\n\n<!-- output -->\n(?P<output>.*?)<!-- end -->\n", re.DOTALL
)


def marked() -> dict[str, str]:
    """What the manual says each marked command prints."""
    found = MARKED.finditer(MANUAL.read_text(encoding="utf-8"))
    return {one["command"]: one["output"].removeprefix("```\n").removesuffix("```\n") for one in found}


def printed(command: str) -> str:
    """What the command prints to a pipe, 80 columns wide. Raises CalledProcessError where its exit code is not 0."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def constant(text: str) -> str:
    """`text` without what differs from run to run: figures, and the columns that follow from their length."""
    return re.sub(r"[\s|+-]+", " ", re.sub(r"\d+([.,]\d+)*(\s+(ns|µs|ms|s|%)(?!\w))?", "0", text)).strip()


def main() -> None:
    """Run the commands that have one of the words on the command line, or all."""
    words = sys.argv[1:]

    def filled(one: re.Match[str]) -> str:
        command = one["command"]
        if words and not any(word in shlex.split(command) for word in words):
            return one[0]
        return f"```sh\n{command}\n```\n\n<!-- output -->\n```\n{printed(command)}```\n<!-- end -->\n"

    text = MARKED.sub(filled, MANUAL.read_text(encoding="utf-8"))
    MANUAL.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
