"""`pybench show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")], *, as_json: AsJson = False
) -> int:
    """Print the answer and the table of a saved run.

    Measures nothing and writes no file. Exits 0 whatever the run found; --json includes the run's own exit code.
    """
    from pybench.cli.outcome import caution_texts, run_object, say_wrapped, table_text
    from pybench.records import load
    from pybench.report.view import make_view

    run = load(folder)
    view = make_view(run)
    if as_json:
        data_json(run_object(run, view, run.exit_code, run.thresholds))
    else:
        data(table_text(run, view))
    for text in caution_texts(view):
        say_wrapped(text)
    return 0
