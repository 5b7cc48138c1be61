"""`pybench demo`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson, Servers

if TYPE_CHECKING:
    from pybench.running.job import Outcome

MATRIX: dict[str, Any] = {
    "name": "demo",
    "trials": 4,
    "duration": "550ms",
    "warmup": "50ms",
    "axes": {"strategy": ["none", "naive", "mutex"], "concurrency": [1, 16, 64], "keys": [1, 1000]},
    "fixed": {"hold": "200us"},
}
"""Just under a minute, in trials that are long enough and enough to tell locks apart: 18 cells, of which those with one
client or many keys show a lock's cost, the others contention."""


def demo(
    *,
    servers: Servers = "auto",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run's folder.")] = None,
    open_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report where there is a desktop.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Compare the locks on a server of its own, in one minute.

    Prints a ranked table and writes a report.
    """
    from pybench.cli.command import repeating
    from pybench.cli.outcome import carry_out_and_show
    from pybench.matrix import matrix_from_mapping
    from pybench.running.job import Job

    matrix = matrix_from_mapping({**MATRIX, "backends": {"redis": {"source": servers}}})
    job = Job(matrix, command=repeating(sys.argv[1:]), out=out)
    code, outcome = carry_out_and_show(job, consent=None, as_json=as_json)
    if open_report and outcome is not None:
        _open(outcome)
    return code


def _open(outcome: Outcome) -> None:
    """Show the report in a browser, where somebody sits in front of a desktop."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if desktop and sys.stdout.isatty():
        import webbrowser

        from pybench.report import HTML

        webbrowser.open((outcome.run.path / HTML).as_uri())
