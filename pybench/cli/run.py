"""`pybench run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.cli.options import (
    Allow,
    AsJson,
    Duration,
    MatrixArgument,
    Name,
    Quick,
    Redis,
    Seed,
    Servers,
    Threshold,
    Trials,
    Warmup,
    Yes,
)
from pybench.errors import InputError

if TYPE_CHECKING:
    from pybench.job import Job

Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", rich_help_panel="Record", help="The run's folder; results/NAME-TIME otherwise."),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", rich_help_panel="Record", help="Go on with an interrupted run, from its folder alone."),
]


def run(
    matrix: MatrixArgument = None,
    *,
    axes: dict[str, list[str]],
    trials: Trials = None,
    duration: Duration = None,
    warmup: Warmup = None,
    seed: Seed = None,
    quick: Quick = False,
    name: Name = None,
    threshold: Threshold = None,
    allow: Allow = None,
    redis: Redis = None,
    servers: Servers = "auto",
    yes: Yes = False,
    out: Out = None,
    resume: Resume = None,
    as_json: AsJson = False,
) -> int:
    """Measure a matrix: progress, ranked table, report.

    Each trial is saved as it ends.

    The matrix is a file, options, or both: an option then takes the place of what the file says of that axis, and
    thresholds are added. An axis takes several values, again and again or with commas between them. Without --redis
    or backends in the file, pybench starts servers of its own and ends them.

    Ctrl-C (or SIGTERM) ends the running trial, keeps what was measured, and reports it: exit code 130. A second one
    leaves at once.
    """
    from pybench.cli.consent import asking
    from pybench.cli.outcome import carry_out_and_show

    options = {
        **axes,
        "trials": trials,
        "duration": duration,
        "warmup": warmup,
        "seed": seed,
        "name": name,
        "threshold": threshold,
        "allow": allow,
    }
    if resume is None:
        job = _new_job(matrix, {**options, "redis": redis, "servers": servers}, quick=quick, out=out)
    else:
        fixed = {"a matrix": matrix, "--out": out, "--quick": quick} | {
            f"--{word}": value for word, value in options.items()
        }
        job = _resumed_job(resume, redis, [word for word, value in fixed.items() if value])
    code, _ = carry_out_and_show(job, consent=asking(yes=yes), as_json=as_json)
    return code


def _new_job(matrix: Path | None, options: dict[str, object], *, quick: bool, out: Path | None) -> Job:
    from pybench.cli.command import repeating
    from pybench.job import Job, read_matrix
    from pybench.matrix import read_text
    from pybench.plan import quickened

    if matrix is None and not options.get("strategy"):
        raise InputError(
            "neither a matrix nor a strategy is given",
            hint="pybench init writes a matrix to start from; pybench run -s mutex --concurrency 1,64 needs none",
        )
    given = None if matrix is None else read_text(matrix)
    parsed = read_matrix(matrix, given, **options)
    return Job(
        quickened(parsed) if quick else parsed,
        command=repeating(sys.argv[1:]),
        given=given,
        out=out,
    )


def _resumed_job(folder: Path, redis: str | None, fixed: list[str]) -> Job:
    from pybench.job import Job
    from pybench.resume import given_servers, matrix_of, open_run
    from pybench.servers.endpoint import ENVIRONMENT

    if fixed:
        raise InputError(
            f"--resume goes on with what was asked then, and cannot take {fixed[0]}",
            hint=f"pybench run --resume {folder}",
        )
    opened = open_run(folder)
    if redis is None and len(given_servers(opened.manifest)) == 1:
        redis = os.environ.get(ENVIRONMENT)
    return Job(matrix_of(opened, redis), command=opened.manifest["command"], resume=opened)
