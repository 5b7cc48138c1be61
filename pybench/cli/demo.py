"""`pybench demo`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson, Servers

if TYPE_CHECKING:
    from pybench.records import Run

MATRIX: dict[str, Any] = {
    "name": "demo",
    "trials": 4,
    "duration": "550ms",
    "warmup": "50ms",
    "axes": {"strategy": ["none", "naive", "mutex"], "concurrency": [1, 16, 64], "keys": [1, 1000]},
    "fixed": {"hold": "200us"},
}
"""Takes just under a minute. Its trials are long and many enough to rank locks. Of its 18 cells those with one client
or many keys show the cost of a lock, the others show contention."""


def demo(
    *,
    servers: Servers = "auto",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the run.")] = None,
    open_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser, if there is a desktop.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Compare locks in one minute, on a server that pybench starts.

    Prints a ranked table and writes a report.
    """
    from pybench.cli.command import repeating
    from pybench.cli.outcome import carry_out_and_show
    from pybench.matrix import matrix_from_mapping
    from pybench.running.job import Job

    matrix = matrix_from_mapping({**MATRIX, "backends": {"redis": {"source": servers}}})
    job = Job(matrix, command=repeating(sys.argv[1:]), out=out)
    code, view = carry_out_and_show(job, consent=None, as_json=as_json)
    if open_report and view is not None:
        _open(view.run)
    return code


def _open(run: Run) -> None:
    """Show the report in a browser if a user sits at a desktop."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if desktop and sys.stdout.isatty():
        import webbrowser

        from pybench.report import HTML

        webbrowser.open((run.path / HTML).as_uri())
