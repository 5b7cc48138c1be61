"""The report of a run: `report.html`, one file that loads nothing, and `report.md` for a pull request.

Promises: both are pure functions of a run folder, written whole or not at all.
Does not do: measuring, judging or ranking; `pybench.running` and `pybench.analysis` do.
"""

from __future__ import annotations

from pathlib import Path

HTML = "report.html"
MARKDOWN = "report.md"


def write_html(folder: Path) -> Path:
    """Write `report.html` into the run folder `folder`. Raises RecordError if it cannot."""
    # Imported here: the terminal shares this package's number formats and must not wait for frames and templates.
    from pybench.records import load
    from pybench.report.page import build

    return _write(folder, HTML, build(load(folder)))


def write_markdown(folder: Path) -> Path:
    """Write `report.md` into the run folder `folder`. Raises RecordError if it cannot."""
    from pybench.records import load
    from pybench.report.markdown import build

    return _write(folder, MARKDOWN, build(load(folder)))


def _write(folder: Path, name: str, text: str) -> Path:
    from pybench.records.atomic import explained, write_atomically

    path = Path(folder) / name
    with explained(Path(folder)):
        write_atomically(path, text.encode("utf-8"))
    return path
