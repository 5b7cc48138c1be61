"""The `pybench` command: data to stdout, talk and progress to stderr, exit codes as `pybench.exits` lists them.

One file a command. Here nothing is imported before `main` waits for Ctrl-C: a command is also ended while it loads.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and end the process with its exit code."""
    try:
        code = _carried_out()
    except KeyboardInterrupt:
        # A second one, while the first was told.
        from pybench.exits import Exit

        code = Exit.INTERRUPTED
    from pybench.cli import process

    process.end(code)


def _carried_out() -> int:
    try:
        from pybench.cli import process

        process.begin()
        from pybench.cli.line import answer

        return answer(sys.argv[1:])
    except KeyboardInterrupt:
        # While the command was being loaded.
        from pybench.cli.line import interrupted

        return interrupted()
