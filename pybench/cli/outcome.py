"""What a run came to, on the terminal: what was measured on what, the answer, the ranked table, where the report is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pybench.cli.output import complain, data, data_json, say, shown_path, stderr_console, stdout_console
from pybench.cli.table import Note, render
from pybench.exits import Exit
from pybench.numbers import missing, plural

if TYPE_CHECKING:
    from rich.console import Console

    from pybench.job import Consent, Job, Outcome
    from pybench.records import Run
    from pybench.report.view import View


def carry_out_and_show(job: Job, *, consent: Consent | None, as_json: bool) -> tuple[int, Outcome | None]:
    """Carry out `job` before the user's eyes: its exit code, and what it came to unless the user left at once."""
    from pybench.cli.live import watch
    from pybench.job import carry_out

    try:
        outcome = carry_out(job, watch=watch(), consent=consent)
        return show(outcome, as_json=as_json), outcome
    except KeyboardInterrupt:
        complain("interrupted", hint="trials saved before are kept: pybench run --resume DIR goes on after them")
        return Exit.INTERRUPTED, None


def show(outcome: Outcome, *, as_json: bool) -> int:
    """Print `outcome`: the table, or the rows of the summary as JSON, to stdout; the rest to stderr. Its exit code."""
    from pybench.report.view import make_view

    view = make_view(outcome.run)
    if as_json:
        data_json(rows_of(outcome.run))
    else:
        console = stdout_console()
        with console.capture() as captured:
            for line in _head(outcome.run):
                _print(console, line)
            if view.cells:
                _print_table(outcome.run, view, console)
        data(captured.get())
    talk = stderr_console()
    for text in _remarks(outcome, view):
        _print(talk, text)
    # Last, so that the table does not wait for the charts.
    say(f"report: {shown_path(outcome.write_report())}")
    if outcome.error is not None:
        complain(outcome.error.message, hint=outcome.error.hint)
    if outcome.run.manifest["status"] == "interrupted":
        say(f"what was measured is kept; to go on: pybench run --resume {shown_path(outcome.run.path)}")
    return outcome.exit


def rows_of(run: Run) -> list[dict[str, Any]]:
    """The rows of `summary.csv` in rank order, n/a as None."""
    from pybench.summary import rank

    return [
        {str(name): None if missing(value) else value for name, value in row.items()}
        for row in rank(run.summary).to_dict("records")
    ]


def _head(run: Run) -> Iterator[str]:
    """What was measured on what, what every figure holds of the client and the wire, and the answer."""
    from pybench.answer import answer
    from pybench.report import facts

    servers = dict.fromkeys(f"{server['label']} ({server['source']})" for server in run.manifest["servers"])
    shared = [(name, value) for name, value in facts.shared_settings(run.manifest) if name in SHOWN_SETTINGS]
    yield f"{run.manifest['name']} on {', '.join(servers)}"
    yield ", ".join(f"{name} {value}" for name, value in [*facts.plan_rows(run.manifest), *shared])
    yield from facts.baseline_sentences(run.manifest)
    yield answer(run.summary).text
    yield ""


SHOWN_SETTINGS = ("concurrency", "keys", "hold", "think", "ttl", "retry", "connections", "loop")


def _print_table(run: Run, view: View, console: Console) -> None:
    from pybench.report.reasons import remarks

    notes = [Note(remark.verdict, f"{remark.subject}: {remark.reason}") for remark in remarks(view)]
    for line in render(rows_of(run), notes, console.width):
        # Neither wrapped nor cut: a number that is not whole is wrong.
        console.print(line, soft_wrap=True)


def _remarks(outcome: Outcome, view: View) -> Iterator[str]:
    """What a reader must know beside the table."""
    from pybench.report.cautions import cautions

    for caution in cautions(view):
        yield f"{caution.title}: {caution.text}"
    if outcome.plan.refused:
        first = outcome.plan.refused[0]
        count = plural(len(outcome.plan.refused), "cell")
        yield f"not measured: {count}, such as {first.cell.id}: {first.reason} (pybench plan lists them)"
    for result in outcome.thresholds:
        if not result.passed:
            figure = "not measured" if result.figure is None else f"is {result.figure:,.6g}"
            yield f"threshold missed: {result.threshold.text}, {figure} in {result.cell or 'no cell of the run'}"


def _print(console: Console, text: str) -> None:
    lines = textwrap.wrap(text, console.width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    for line in lines or [""]:
        console.print(line, soft_wrap=True)
