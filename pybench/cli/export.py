"""`pybench export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.cli.output import data, write_file
from pybench.errors import InputError

if TYPE_CHECKING:
    from pybench.records import Run


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    *,
    csv: Annotated[bool, typer.Option("--csv", rich_help_panel="Formats", help="A row a cell: summary.csv.")] = False,
    json: Annotated[bool, typer.Option("--json", rich_help_panel="Formats", help="As show --json.")] = False,
    junit: Annotated[
        bool, typer.Option("--junit", rich_help_panel="Formats", help="JUnit XML: a case a verdict and a threshold.")
    ] = False,
    pytest_benchmark: Annotated[
        bool,
        typer.Option("--pytest-benchmark", rich_help_panel="Formats", help="For `pytest-benchmark compare`."),
    ] = False,
    bencher: Annotated[
        bool, typer.Option("--bencher", rich_help_panel="Formats", help="Bencher Metric Format (bencher.dev).")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to a file; to stdout if not given.")
    ] = None,
) -> int:
    """Write a saved run in the format of another tool.

    Name one format. Exits 0 whatever the run found.
    """
    from pybench.records import load

    formats: dict[str, tuple[bool, Callable[[Run], str]]] = {
        "--csv": (csv, _csv),
        "--json": (json, _json),
        "--junit": (junit, _junit),
        "--pytest-benchmark": (pytest_benchmark, _pytest_benchmark),
        "--bencher": (bencher, _bencher),
    }
    chosen = [build for is_chosen, build in formats.values() if is_chosen]
    if len(chosen) != 1:
        raise InputError(f"{len(chosen) or 'no'} formats are named", hint=f"name one of {', '.join(formats)}")
    text = chosen[0](load(folder))
    if out is None:
        data(text)
        return 0
    write_file(out, text)
    return 0


def _csv(run: Run) -> str:
    from pybench.records.folder import summary_csv

    return summary_csv(run)


def _json(run: Run) -> str:
    from json import dumps

    from pybench.cli.outcome import run_object
    from pybench.report.view import make_view

    found = run_object(run, make_view(run), run.exit_code, run.thresholds)
    return dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _junit(run: Run) -> str:
    from pybench.report.exports import junit

    return junit.build(run)


def _pytest_benchmark(run: Run) -> str:
    from pybench.report.exports import pytest_benchmark

    return pytest_benchmark.build(run)


def _bencher(run: Run) -> str:
    from pybench.report.exports import bencher

    return bencher.build(run)
