"""`pybench run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from pybench import exits
from pybench.cli.options import AsJson, Asked, Summary, Yes
from pybench.cli.output import complain, require_files, write_file
from pybench.errors import InputError, PybenchError
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.report.view import View
    from pybench.running.job import Job

Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", rich_help_panel="Record", help="Folder of the run.  [default: results/NAME-TIME]"),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", rich_help_panel="Record", help="Resume the interrupted run in this folder."),
]
History = Annotated[
    bool,
    typer.Option(
        "--history",
        rich_help_panel="Record",
        help="Keep each event of the trials, for pybench judge. Takes disk space.",
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", rich_help_panel="Record", help="Also write JUnit XML, as export --junit."),
]


def run(
    *,
    asked: Asked,
    yes: Yes = False,
    out: Out = None,
    resume: Resume = None,
    history: History = False,
    junit: Junit = None,
    summary: Summary = False,
    as_json: AsJson = False,
) -> int:
    """Measure a matrix: progress, ranked table, report.

    The matrix comes from a file, from options, or from both. An option replaces the file's values of that axis;
    thresholds are added to those of the file. To give an axis several values, separate them by commas or repeat the
    option. pybench starts the servers that the strategies need, unless --redis, --postgres or the file names them, and
    stops its own servers afterwards.

    Each trial is saved when it ends. Ctrl-C (or SIGTERM) ends the running trial, keeps the trials so far, and writes
    the report: exit code 130. A second Ctrl-C exits at once.
    """
    from pybench.cli.consent import asking
    from pybench.cli.job_summary import require_summary
    from pybench.cli.outcome import carry_out_and_show

    require_files(junit=junit)
    require_summary(asked=summary)
    job = _new_job(asked, out, history=history) if resume is None else _resumed_job(resume, asked, out, history=history)
    code, view = carry_out_and_show(job, consent=asking(yes=yes), as_json=as_json)
    if view is None:
        return code
    return exits.first({Exit(code), *_written_for_ci(view, junit, summary=summary)})


def _written_for_ci(view: View, junit: Path | None, *, summary: bool) -> set[Exit]:
    """Write what a CI service shows; returns the exit codes of what could not be written."""
    from pybench.cli.job_summary import append
    from pybench.report import job_summary
    from pybench.report.exports import junit as junit_file

    codes = set()
    for write in (
        *((lambda: write_file(junit, junit_file.build(view.run, view)),) if junit is not None else ()),
        *((lambda: append(job_summary.build(view)),) if summary else ()),
    ):
        try:
            write()
        except PybenchError as error:
            complain(error.message, hint=error.hint)
            codes.add(error.exit)
    return codes


def _new_job(asked: Asked, out: Path | None, *, history: bool) -> Job:
    from pybench.cli.command import repeating
    from pybench.running.job import Job

    matrix, text = asked.read()
    return Job(matrix, command=repeating(sys.argv[1:]), given=text, out=out, history=history)


def _resumed_job(folder: Path, asked: Asked, out: Path | None, *, history: bool) -> Job:
    from pybench.running.job import Job
    from pybench.running.resume import given_servers, matrix_of, open_run
    from pybench.strategies import ServerKind

    fixed = [*asked.given, *(["--out"] if out else []), *(["--history"] if history else [])]
    if fixed:
        raise InputError(
            f"--resume reuses the saved settings; leave out {fixed[0]}",
            hint=f"pybench run --resume {quote(str(folder))}",
        )
    opened = open_run(folder)
    addresses: dict[str, list[str]] = {}
    for kind in ServerKind:
        said = asked.options[kind] or []
        addresses[kind] = [said] if isinstance(said, str) else said
        from_environment = os.environ.get(kind.variable)
        if not said and from_environment and len(given_servers(opened.manifest, kind)) == 1:
            addresses[kind] = [from_environment]
    return Job(matrix_of(opened, addresses), command=opened.manifest["command"], resume=opened)
