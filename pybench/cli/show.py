"""`pybench show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, shown_path
from pybench.cli.status import reading_s, working


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")], *, as_json: AsJson = False
) -> int:
    """Print the answer and the table of a saved run.

    Measures nothing and writes no file. Exits 0 whatever the run found; --json includes the run's own exit code.
    """
    from pybench.cli.outcome import caution_texts, run_object, say_wrapped, table_text
    from pybench.records import load
    from pybench.report.view import make_view

    with working(f"reading {shown_path(folder)}", reading_s(folder)):
        run = load(folder)
        view = make_view(run)
        shown = run_object(run, view, run.exit_code, run.thresholds) if as_json else table_text(run, view)
        cautions = list(caution_texts(view))
    if isinstance(shown, str):
        data(shown)
    else:
        data_json(shown)
    for text in cautions:
        say_wrapped(text)
    return 0
