"""`pybench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, shown_path
from pybench.cli.status import working, writing_s


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Run folders.")], *, as_json: AsJson = False
) -> int:
    """Write the reports of runs again, from their folders.

    Prints the path of each HTML report.
    """
    from pybench.records import load
    from pybench.report import write_report

    written = []
    for folder in folders:
        with working(f"writing the report of {shown_path(folder)}", writing_s(folder)):
            # As the user names the folder: a record knows only its full path.
            html, markdown = (folder / path.name for path in write_report(load(folder)))
        written.append({"folder": str(folder), "html": str(html), "markdown": str(markdown)})
        if not as_json:
            # Print each path at once: a later folder may be invalid.
            data(str(html))
    if as_json:
        data_json(written)
    return 0
