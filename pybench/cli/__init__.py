"""The `pybench` command: data to stdout, messages and progress to stderr, exit codes as `pybench.exits` lists them.

One file per command. This file imports nothing before `main` handles Ctrl-C: a user may interrupt a command that is
still loading.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and end the process with its exit code."""
    try:
        code = _carried_out()
    except KeyboardInterrupt:
        # A second Ctrl-C, while the message about the first was printed.
        from pybench.exits import Exit

        code = Exit.INTERRUPTED
    while True:
        try:
            from pybench.cli import process

            process.end(code)
        except KeyboardInterrupt:
            # Another Ctrl-C, before `end` ignores them: Python would end itself by the signal.
            code = code or 130


def _carried_out() -> int:
    try:
        from pybench.cli import process

        process.begin()
        from pybench.cli.line import answer

        return answer(sys.argv[1:])
    except KeyboardInterrupt:
        # Ctrl-C while the command was loading.
        from pybench.cli.line import interrupted

        return interrupted()
