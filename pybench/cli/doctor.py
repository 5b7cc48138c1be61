"""`pybench doctor`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from pybench.cli.options import AsJson, Servers
from pybench.cli.output import data, data_json, width
from pybench.errors import InputError
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.doctor import Finding
    from pybench.servers.redis.binaries import Source


def doctor(
    *,
    redis: Annotated[
        str | None,
        typer.Option(metavar="URL", rich_help_panel="Servers", help="A server to check.  [default: PYBENCH_REDIS_URL]"),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="URL", rich_help_panel="Servers", help="A database to check.  [default: PYBENCH_POSTGRES_URL]"
        ),
    ] = None,
    servers: Servers = "auto",
    as_json: AsJson = False,
) -> int:
    """Check whether this machine is suitable for benchmarking.

    Checks the machine, the Rust core, the servers that pybench can start, and the servers that you name: on these it
    acquires, renews and releases each lock once.

    Stops servers that killed runs left behind. Exit code 41: a server prevents a run. Exit code 40: something else
    prevents a run. Otherwise 0.
    """
    from pybench.doctor import Level, examine
    from pybench.strategies import ServerKind

    findings = examine(
        _addresses(redis, ServerKind.REDIS.variable),
        _source(servers),
        postgres=_addresses(postgres, ServerKind.POSTGRES.variable),
    )
    if as_json:
        data_json([{"level": str(f.level), "subject": f.subject, "what": f.what, "hint": f.hint} for f in findings])
    else:
        data("\n".join(line for finding in findings for line in _lines(finding)))
    bad = [finding for finding in findings if finding.level is Level.BAD]
    if any(finding.subject.startswith(("server", "postgres")) for finding in bad):
        return Exit.SERVER_UNREACHABLE
    return Exit.BAD_INPUT if bad else Exit.OK


def _source(word: str) -> Source:
    from pybench.servers.redis.binaries import Source

    for source in get_args(Source):
        if word == source:
            return cast("Source", source)
    raise InputError(f"--servers: {word!r} is not a valid value", hint=f"use one of {', '.join(get_args(Source))}")


def _addresses(option: str | None, variable: str) -> list[str]:
    import os

    # An empty option is reported as a bad address: the user meant to name a server.
    address = (os.environ.get(variable) or None) if option is None else option
    return [] if address is None else [address]


def _lines(finding: Finding) -> list[str]:
    indent = " " * 20
    head = f"{finding.level:<5} {finding.subject:<14}"
    lines = textwrap.wrap(finding.what, width(), initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)
    if finding.hint:
        lines += textwrap.wrap(f"-> {finding.hint}", width(), initial_indent=indent, subsequent_indent=f"{indent}   ")
    return lines
