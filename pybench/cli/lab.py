"""`pybench lab` and a command for each of its experiments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from pybench.cli.help import SectionedCommand
from pybench.cli.options import AsJson, Servers, Yes
from pybench.errors import InputError

if TYPE_CHECKING:
    from typer._click import Command, Context

    from pybench.lab.experiment import Experiment, Parameter
    from pybench.lab.stage import Given, Stage
    from pybench.servers import AnyServer
    from pybench.servers.programs import Source

Strategy = Annotated[
    list[str] | None,
    typer.Option("--strategy", "-s", metavar="NAME", rich_help_panel="Locks", help="A lock; repeat for more."),
]
Every = Annotated[bool, typer.Option("--all", rich_help_panel="Locks", help="Every lock that has a meaning here.")]
Redis = Annotated[
    list[str] | None,
    typer.Option("--redis", metavar="URL", rich_help_panel="Servers", help="A running server; repeat for more."),
]
Postgres = Annotated[
    str | None, typer.Option("--postgres", metavar="URL", rich_help_panel="Servers", help="A running database.")
]
TimeLimit = Annotated[
    str, typer.Option("--time-limit", metavar="TIME", rich_help_panel="Output", help="For each case.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", rich_help_panel="Output", help="Write a page too.")
]
Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", rich_help_panel="Output", help="Write CSV too, a row for each acquire."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options that experiments share; those of given servers only where an experiment uses such."""

    redis: list[str] | None = None
    postgres: str | None = None
    yes: bool = False
    servers: str
    time_limit: str
    html: Path | None
    log: Path | None
    as_json: bool


class LabGroup(TyperGroup):
    """The experiments as commands. They are loaded only when somebody asks for one."""

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of the experiments."""
        from pybench.lab.catalogue import EXPERIMENTS

        return [*EXPERIMENTS, "run-all"]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of one experiment; None for a name that there is none of."""
        from pybench.lab.catalogue import EXPERIMENTS

        if cmd_name == "run-all":
            from pybench.cli.lab_all import run_all

            return _as_command(cmd_name, run_all, None)
        experiment = EXPERIMENTS.get(cmd_name)
        return None if experiment is None else _as_command(cmd_name, _runner(experiment), _help(experiment))


def lab(context: typer.Context, *, as_json: AsJson = False) -> int:
    """Show locks right and wrong, on real servers.

    pybench lab NAME runs an experiment: it prints what it does, figures, what they mean, and one thing to learn. Exits
    20 when a lock broke its promise, 22 when what is known to be wrong was not seen.
    """
    if context.invoked_subcommand is not None:
        return 0
    from pybench.cli.output import data, data_json
    from pybench.lab.catalogue import EXPERIMENTS

    if as_json:
        data_json(
            [{"experiment": one.name, "summary": one.summary, "learn": one.learn} for one in EXPERIMENTS.values()]
        )
    else:
        longest = max(map(len, EXPERIMENTS))
        lines = [f"{one.name:<{longest}}  {one.summary}." for one in EXPERIMENTS.values()]
        ends = [
            "pybench lab NAME runs one, pybench lab run-all all of them.",
            "pybench lab NAME --help lists its options.",
        ]
        data("\n".join([*lines, "", *ends]))
    return 0


group = typer.Typer(cls=LabGroup, rich_markup_mode=None)
group.callback(invoke_without_command=True)(lab)


def _as_command(name: str, command: Callable[..., int], text: str | None) -> Command:
    """`command` under `name`; without `text` its docstring is its help."""
    own = typer.Typer(add_completion=False, rich_markup_mode=None)
    own.command(name, cls=SectionedCommand, help=text)(command)
    return typer.main.get_command(own)


def _help(experiment: Experiment) -> str:
    defaults = {one.name: one.default for one in experiment.parameters}
    return f"{experiment.summary}.\n\n{' '.join(experiment.told(defaults))}\n\n{experiment.learn}"


def _runner(experiment: Experiment) -> Callable[..., int]:
    own = {one.name.replace("-", "_"): one for one in experiment.parameters}

    def command(**values: Any) -> int:  # noqa: ANN401 - typer passes each option in its own type
        given = {one.name: values.pop(name) for name, one in own.items()}
        strategies, every = values.pop("strategy", None) or [], values.pop("every", False)
        return _run(experiment, given, strategies, Asked(**values), every=every)

    locks = [("strategy", Strategy, None), ("every", Every, False)] if experiment.takes_locks else []
    # An experiment that harms servers uses none that was given.
    given_servers = [("redis", Redis, None), ("postgres", Postgres, None), ("yes", Yes, False)]
    shared = [
        *([] if experiment.harms_servers else given_servers),
        ("servers", Servers, "auto"),
        ("time_limit", TimeLimit, "60s"),
        ("html", Html, None),
        ("log", Log, None),
        ("as_json", AsJson, False),
    ]
    shown = [
        *(_keyword(name, _option(one), one.default) for name, one in own.items()),
        *(_keyword(name, annotation, default) for name, annotation, default in (*locks, *shared)),
    ]
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def _option(parameter: Parameter) -> object:
    if parameter.allowed is None:
        return Annotated[bool, typer.Option(f"--{parameter.name}", help=parameter.meaning)]
    return Annotated[str, typer.Option(f"--{parameter.name}", metavar=parameter.metavar, help=parameter.meaning)]


def _keyword(name: str, annotation: Any, default: object) -> inspect.Parameter:  # noqa: ANN401 - a type as data
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _run(
    experiment: Experiment, given: dict[str, str | bool], strategies: list[str], asked: Asked, *, every: bool
) -> int:
    from pybench.cli.lab_box import findings_text
    from pybench.cli.output import data, data_json, require_files, say_meaning, write_file
    from pybench.lab import telling
    from pybench.lab.carrying_out import carry_out
    from pybench.lab.page import page

    require_files(html=asked.html, log=asked.log)
    with staged(asked, experiment.name) as stage:
        found = carry_out(experiment, stage, given, strategies=strategies, every=every)
    if asked.html is not None:
        write_file(asked.html, page([found]))
    if asked.log is not None:
        write_file(asked.log, telling.log_text([found]))
    if asked.as_json:
        data_json(telling.to_json(found))
    else:
        data(findings_text(found))
    say_meaning(found.exit)
    return found.exit


@contextmanager
def staged(asked: Asked, name: str) -> Iterator[Stage]:
    """A stage with the servers of the command line, and a line on the terminal that says what happens."""
    from pybench.cli.consent import asking_in_lab
    from pybench.cli.output import say
    from pybench.cli.status import line
    from pybench.lab.stage import Stage
    from pybench.running.job import open_files
    from pybench.servers import clear_leftovers

    state = [name]
    seconds = _seconds(asked.time_limit)
    given = _given(asked)
    for leftover in clear_leftovers():
        say(f"left by a killed run: {leftover}")

    def note(text: str) -> None:
        state[0] = f"{name}: {text}"

    def consent(elsewhere: Sequence[AnyServer]) -> None:
        # The question and the line would be drawn over each other.
        if lines is not None:
            lines.stop()
        asking_in_lab(yes=asked.yes)(elsewhere)
        if lines is not None:
            lines.start()

    with (
        open_files(),
        line(lambda: state[0]) as lines,
        Stage(given, note=note, consent=consent, time_limit_s=seconds) as stage,
    ):
        yield stage


def _seconds(text: str) -> float:
    from pybench.matrix.durations import parse_duration
    from pybench.notation import BadValue

    try:
        limit = parse_duration(text)
    except BadValue as problem:
        raise InputError(f"--time-limit: {problem.message}", hint=problem.hint) from None
    if not limit:
        raise InputError("--time-limit is longer than 0", hint="leave it out for 60s")
    return limit / 1e9


def _given(asked: Asked) -> Given:
    import os

    from pydantic import SecretStr

    from pybench.lab.stage import Given
    from pybench.servers.redis.endpoint import Endpoint

    if asked.servers not in ("auto", "wheel", "path"):
        raise InputError(f"--servers is auto, wheel or path, not {asked.servers!r}", hint="leave it out for auto")
    redis, postgres = list(asked.redis or []), asked.postgres
    if not redis and postgres is None:
        redis = [url for url in [os.environ.get("PYBENCH_REDIS_URL")] if url]
        postgres = os.environ.get("PYBENCH_POSTGRES_URL") or None
    for url in redis:
        Endpoint.parse(url)
    if postgres is not None:
        from pybench.servers.postgres.endpoint import PostgresEndpoint

        PostgresEndpoint.parse(postgres)
    return Given(
        redis=[SecretStr(url) for url in redis],
        postgres=None if postgres is None else SecretStr(postgres),
        source=cast("Source", asked.servers),
    )
