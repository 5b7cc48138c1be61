"""`pybench gate`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench import exits
from pybench.cli.options import AsJson, Postgres, Redis, Servers, Summary, Yes
from pybench.cli.output import complain, say, say_meaning, shown_path
from pybench.errors import PybenchError
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.cli.gate_output import Outputs
    from pybench.gate.job import GateJob, GateOutcome

BasePath = Annotated[Path, typer.Argument(metavar="BASE", help="A matrix file, or the folder of a run.")]


def _option(panel: str, metavar: str, help_: str, *flags: str) -> Any:  # noqa: ANN401 - the description is typer's own
    return typer.Option(*flags, metavar=metavar, rich_help_panel=panel, help=help_)


_of_base, _scheduled, _output = (partial(_option, panel) for panel in ("The base", "Schedule", "Record"))


Head = Annotated[
    Path | None, _of_base("MATRIX", "The matrix of the head, if it is not that of BASE: a file or a run folder.")
]
BasePython = Annotated[
    Path | None, _of_base("VENV", "The base is the pybench of this environment: its folder, or its python.")
]
BaseRedis = Annotated[
    list[str] | None, _of_base("URL", "The base is this Redis server. Repeat the option for multi-server locks.")
]
BasePostgres = Annotated[list[str] | None, _of_base("URL", "The base is this database.")]
Trials = Annotated[
    str | None,
    _scheduled("N", "Blocks of each round, of 3 trials of each cell.  [default: 28 for one cell, more for more cells]"),
]
Duration = Annotated[str | None, _scheduled("TIME", "Measured time of each trial.  [default: the matrix's]")]
Warmup = Annotated[str | None, _scheduled("TIME", "Warm-up before the measured time.  [default: the matrix's]")]
Seed = Annotated[str | None, _scheduled("N", "Same seed: same keys, holds and order.  [default: the matrix's]")]
Band = Annotated[
    str | None,
    _scheduled("PERCENT", "Slowdowns up to this share do not count.  [default: 3% for grants/s, 10% for p99]"),
]
JustPlan = Annotated[
    bool,
    typer.Option(
        "--plan",
        rich_help_panel="Schedule",
        help="Only say how many trials it takes, how long, and which slowdown it finds.",
    ),
]
Out = Annotated[
    Path | None, _output("DIR", "Folder for the run folders of both sides.  [default: results/NAME-gate-TIME]")
]
Markdown = Annotated[Path | None, _output("FILE", "Also write the answer as Markdown.", "--md")]
Html = Annotated[Path | None, _output("FILE", "Also write a page with the charts of both sides.", "--html")]
Junit = Annotated[Path | None, _output("FILE", "Also write JUnit XML: a case for each cell and each threshold.")]


def gate(
    base: BasePath,
    *,
    head: Head = None,
    base_python: BasePython = None,
    base_redis: BaseRedis = None,
    base_postgres: BasePostgres = None,
    trials: Trials = None,
    duration: Duration = None,
    warmup: Warmup = None,
    seed: Seed = None,
    band: Band = None,
    just_plan: JustPlan = False,
    redis: Redis = None,
    postgres: Postgres = None,
    servers: Servers = "auto",
    yes: Yes = False,
    out: Out = None,
    md: Markdown = None,
    html: Html = None,
    junit: Junit = None,
    summary: Summary = False,
    as_json: AsJson = False,
) -> int:
    """Fail if a lock became slower or unsafe: for CI.

    Measures the base and the head in turn, block by block, on this machine. The head is the matrix of BASE, by this
    pybench, on the servers of the matrix. The base differs in what you name: another environment, another server, or
    with --head another matrix.

    Exits 11 on a regression: a lock became unsafe, or it is slower in a first round of trials and again in a
    confirming round. Exits 21 if it can't tell, for example without a base.
    """
    from pybench.cli import gate_plan
    from pybench.cli.compare import share
    from pybench.cli.gate_output import NO_BASE, Outputs
    from pybench.gate.job import GateJob
    from pybench.gate.sides import WHAT_TO_GIVE, Asked, read_sides

    asked = Asked(
        base=base,
        head=head,
        base_python=base_python,
        base_redis=base_redis or (),
        base_postgres=base_postgres or (),
        redis=redis or (),
        postgres=postgres or (),
        servers=servers,
        trials=trials,
        duration=duration,
        warmup=warmup,
        seed=seed,
    )
    sides = read_sides(asked)
    limits = None if band is None else share(band)
    if just_plan:
        return gate_plan.show(sides, limits, base, as_json=as_json)
    outputs = Outputs(md=md, html=html, junit=junit, summary=summary, as_json=as_json)
    outputs.require()
    if sides.are_same:
        outputs.write_undecided(sides.head.name)
        say(NO_BASE)
        say(f"hint: {WHAT_TO_GIVE}")
        say_meaning(Exit.UNDECIDED)
        return Exit.UNDECIDED
    outcome = _carried_out(GateJob(sides, _command(), out, limits), yes=yes)
    return Exit.INTERRUPTED if outcome is None else _shown(outcome, outputs, sides.head.name)


def _command() -> list[str]:
    from pybench.cli.command import repeating

    return repeating(sys.argv[1:])


def _carried_out(job: GateJob, *, yes: bool) -> GateOutcome | None:
    """None where the user ended it before there was an outcome."""
    from pybench.cli.consent import asking
    from pybench.cli.live import watch
    from pybench.gate.job import carry_out
    from pybench.running.job import LeftAtOnce

    try:
        return carry_out(job, watch=watch(), consent=asking(yes=yes))
    except LeftAtOnce as left:
        complain("interrupted", hint=f"the trials so far are in {shown_path(left.folder)}")
    except KeyboardInterrupt:
        complain("interrupted, nothing was measured", hint=None)
    return None


def _shown(outcome: GateOutcome, outputs: Outputs, name: str) -> int:
    codes = {outcome.exit}
    try:
        outputs.write(outcome, name)
    except PybenchError as error:
        complain(error.message, hint=error.hint)
        codes.add(error.exit)
    if outcome.error is not None:
        complain(outcome.error.message, hint=outcome.error.hint)
    elif not outcome.is_whole:
        complain("interrupted", hint="the trials so far are kept; a gate cannot be resumed: run it again")
    say(f"runs of both sides: {shown_path(outcome.folder)}")
    code = exits.first(codes)
    say_meaning(code)
    return code
