"""The list of commands. Each command is in a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from pybench.cli import (
    compare,
    demo,
    doctor,
    export,
    fuzz,
    gate,
    init,
    judge,
    lab,
    plan,
    replay,
    report,
    run,
    schema,
    serve,
    show,
    strategies,
)
from pybench.cli.help import PromptGroup, SectionedCommand
from pybench.cli.options import takes_matrix
from pybench.exits import MEANINGS

app = typer.Typer(
    name="pybench",
    cls=PromptGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Is a distributed lock safe, how fast is it, and what does it cost? pybench measures the answers, on servers "
        "that it starts or that you name. To see an example: pybench demo."
    ),
    epilog="Exit codes (the first that applies): "
    + "; ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())
    + ".",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command(cls=SectionedCommand)(demo.demo)
app.command(cls=SectionedCommand)(init.init)
app.command(cls=SectionedCommand)(takes_matrix(run.run))
app.command(cls=SectionedCommand)(takes_matrix(plan.plan))
app.command(cls=SectionedCommand)(show.show)
app.command(cls=SectionedCommand)(report.report)
app.command(cls=SectionedCommand)(compare.compare)
app.command(cls=SectionedCommand)(gate.gate)
app.command(cls=SectionedCommand)(export.export)
app.command(cls=SectionedCommand)(judge.judge)
app.add_typer(lab.group, name="lab")
app.command(cls=SectionedCommand)(fuzz.fuzz)
app.command(cls=SectionedCommand)(replay.replay)
app.command(cls=SectionedCommand)(serve.serve)
app.command(cls=SectionedCommand)(doctor.doctor)
app.command(cls=SectionedCommand)(strategies.strategies)
app.command(cls=SectionedCommand)(schema.schema)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, *, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Answer `--version`."""
    if version:
        from pybench.cli.output import data, versions

        data(versions())
        raise typer.Exit
    assert context.invoked_subcommand, "an empty command line was replaced by --help"
