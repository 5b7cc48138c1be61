"""Prints the outcome of a run to the terminal: the set-up, the answer, the table, and the report's path."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from pybench import exits
from pybench.cli.curve_table import curve_lines
from pybench.cli.output import (
    UNBOUNDED,
    complain,
    data,
    data_console,
    data_json,
    is_unbounded,
    printed,
    say,
    say_meaning,
    shown_path,
    stderr_console,
)
from pybench.cli.status import working
from pybench.cli.table import Note, render
from pybench.errors import PybenchError, RecordError
from pybench.exits import Exit
from pybench.numbers import missing, plural
from pybench.report import HTML, write_report

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.analysis.thresholds import ThresholdResult
    from pybench.records import Run
    from pybench.report.view import View
    from pybench.running.job import Consent, Job, Outcome


def carry_out_and_show(job: Job, *, consent: Consent | None, as_json: bool) -> tuple[int, View | None]:
    """Carry out `job` with progress, and show it: the exit code, and what was shown unless a second Ctrl-C ended it."""
    from pybench.cli.live import watch
    from pybench.running.job import LeftAtOnce, carry_out

    try:
        outcome = carry_out(job, watch=watch(), consent=consent)
    except LeftAtOnce as left:
        complain("interrupted", hint=f"saved trials are kept; resume with {_resume_command(left.folder)}")
        return Exit.INTERRUPTED, None
    except KeyboardInterrupt:
        complain("interrupted, nothing was measured", hint=None)
        return Exit.INTERRUPTED, None
    try:
        return show(outcome, as_json=as_json)
    except KeyboardInterrupt:
        folder = quote(shown_path(outcome.run.path))
        further = f"; resume with {_resume_command(outcome.run.path)}" if _is_interrupted(outcome.run) else ""
        complain("interrupted", hint=f"the run is saved; pybench report {folder} writes its report{further}")
        return Exit.INTERRUPTED, None


def show(outcome: Outcome, *, as_json: bool) -> tuple[Exit, View]:
    """Print `outcome`: the table, or the whole outcome as one JSON object, to stdout; messages to stderr.

    Returns the exit code, which the JSON object holds too, and the view of the run.
    """
    from pybench.planning.ending import reporting_s
    from pybench.report.view import make_view

    troubles: list[PybenchError] = []
    with working("comparing the locks"):
        view = make_view(outcome.run)
        table = "" if as_json else table_text(outcome.run, view)
        remarks = list(_remarks(outcome, view))
    if not as_json:
        try:
            data(table)
        except PybenchError as error:
            troubles.append(error)
        for text in remarks:
            say_wrapped(text)
    # The charts take longer than the table, so the table is printed first.
    folder = shown_path(outcome.run.path)
    try:
        with working("writing the report", reporting_s(len(outcome.run.summary))):
            write_report(outcome.run, view)
        say(f"report: {folder}/{HTML}")
    except PybenchError as error:
        # If a full disk ended the run, the report fails with the same message: print it once.
        if outcome.error is None or error.message != outcome.error.message:
            troubles.append(RecordError(error.message, hint=f"pybench report {quote(folder)} writes the report again"))
    if as_json:
        for text in remarks:
            say_wrapped(text)
        try:
            code = exits.first({outcome.exit, *(trouble.exit for trouble in troubles)})
            data_json(run_object(outcome.run, view, code, outcome.thresholds))
        except PybenchError as error:
            troubles.append(error)
    for trouble in [*troubles, *([outcome.error] if outcome.error is not None else [])]:
        complain(trouble.message, hint=trouble.hint)
    if _is_interrupted(outcome.run):
        kept = "saved trials are kept; " if view.cells else ""
        say(f"{kept}resume with: {_resume_command(outcome.run.path)}")
    code = exits.first({outcome.exit, *(trouble.exit for trouble in troubles)})
    say_meaning(code)
    return code, view


def _is_interrupted(run: Run) -> bool:
    return bool(run.manifest["status"] == "interrupted")


def _resume_command(folder: Path) -> str:
    from pybench.records.manifest import read_manifest
    from pybench.running.resume import command

    return command(read_manifest(folder), shown_path(folder))


def run_object(run: Run, view: View, code: Exit, thresholds: Sequence[ThresholdResult]) -> dict[str, Any]:
    """A run as `--json` prints it: `{schema, run, headline, exit_code, thresholds, comparison, limits, cells}`.

    `limits` has each cell that searched for its limit, with its knee and its latency over load. `cells` are the rows of
    `summary.csv`, n/a as None, load by load and ordered by rank.
    """
    from pybench.analysis.limits import limits_json
    from pybench.records.schema import SCHEMA

    manifest = run.manifest
    rows = {str(row["cell"]): row for row in run.summary.to_dict("records")}
    ordered = [one.cell for load in view.comparison.loads for one in load.standings if one.cell in rows]
    return {
        "schema": SCHEMA,
        "run": {
            "name": manifest["name"],
            "folder": str(run.path),
            "status": manifest["status"],
            "started_at": manifest["started_at"],
            "seed": manifest["seed"],
        },
        "headline": view.answer.headline,
        "exit_code": code.value,
        "thresholds": [
            {
                "threshold": result.threshold.text,
                "cell": result.cell,
                "figure": result.figure,
                "passed": result.passed,
            }
            for result in thresholds
        ],
        "comparison": view.comparison.to_json(),
        "limits": limits_json(run.summary, run.trials, run.probes),
        "cells": [
            {str(name): None if missing(value) else value for name, value in rows[cell].items()} for cell in ordered
        ],
    }


def table_text(run: Run, view: View) -> str:
    """The set-up, the answer and the table; as wide as stdout, and coloured if stdout supports colours."""
    from pybench.analysis.send_delay import late_cells
    from pybench.report.verdict_reasons import remarks

    console = data_console()
    for line in _head(run, view):
        for part in textwrap.wrap(line, console.width, subsequent_indent="  ", **_UNBROKEN) or [""]:
            console.print(part, soft_wrap=True)
    if view.cells:
        notes = [Note(remark.verdict, remark.sentence, remark.is_evidence) for remark in remarks(view)]
        late = set(late_cells(run.trials))
        widest = UNBOUNDED if is_unbounded() else None
        rows = run.summary.to_dict("records")
        for row in render(rows, view.comparison, notes, console.width, widest=widest, late=late):
            # Rows are neither wrapped nor cut: half a number would be a wrong number.
            console.print(row, soft_wrap=True)
        for row in curve_lines(view):
            console.print(row, soft_wrap=True)
    return printed(console)


def _head(run: Run, view: View) -> Iterator[str]:
    """The servers, the settings that all cells share, the baseline, and the answer."""
    from pybench.report import run_facts

    servers = dict.fromkeys(
        f"{server['label']} ({', '.join(filter(None, (server['source'], server['address'])))})"
        for server in run.manifest["servers"]
    )
    shared = [(name, value) for name, value in run_facts.load_settings(run.manifest) if name in SHOWN_SETTINGS]
    yield f"{run.manifest['name']} on {', '.join(servers)}"
    yield ", ".join(f"{name} {value}" for name, value in [*run_facts.plan_rows(run.manifest), *shared])
    yield from run_facts.baseline_sentences(run.manifest)
    yield view.answer.text
    yield ""


SHOWN_SETTINGS = ("concurrency", "keys", "hold", "think", "ttl", "retry", "connections", "loop", "stages", "faults")


def _remarks(outcome: Outcome, view: View) -> Iterator[str]:
    """Cautions and refused cells, which a reader must know besides the table."""
    yield from caution_texts(view)
    if outcome.plan.refused:
        first = outcome.plan.refused[0]
        count = plural(len(outcome.plan.refused), "cell")
        yield f"not measured: {count}, such as {first.cell.id}: {first.reason} (pybench plan lists all)"


def caution_texts(view: View) -> Iterator[str]:
    """Each caution on one line."""
    from pybench.report.cautions.of_run import cautions

    for caution in cautions(view):
        yield f"{caution.title}: {caution.text[0].lower()}{caution.text[1:]}"


_UNBROKEN: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


def say_wrapped(text: str) -> None:
    """Print `text` to stderr, wrapped to the width of stderr."""
    for line in textwrap.wrap(text, stderr_console().width, subsequent_indent="  ", **_UNBROKEN):
        say(line)
