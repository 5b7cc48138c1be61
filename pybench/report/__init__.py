"""The report of a run: `report.html`, one file that loads nothing, and `report.md` for a pull request.

Promises: both are pure functions of a run, written whole or not at all.
Does not do: measuring, judging or ranking; `pybench.running` and `pybench.analysis` do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import View

HTML = "report.html"
MARKDOWN = "report.md"


def write_report(run: Run, view: View | None = None) -> tuple[Path, Path]:
    """Write `report.html` and `report.md` into the folder of `run`; returns their paths in this order.

    `view` is what `make_view` makes of `run`, where the caller has it. Raises RecordError for a file that cannot be
    written.
    """
    # Imported here: the terminal shares this package's number formats and must not wait for frames and templates.
    from pybench.report import markdown, page
    from pybench.report.view import make_view

    view = make_view(run) if view is None else view
    brief = _write(run.path, MARKDOWN, markdown.build(run, view))
    return _write(run.path, HTML, page.build(run, view)), brief


def _write(folder: Path, name: str, text: str) -> Path:
    from pybench.records.atomic import explained, write_atomically

    path = folder / name
    with explained(folder):
        write_atomically(path, text.encode("utf-8"))
    return path
