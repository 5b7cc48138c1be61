"""`pybench replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.fuzz import Clients, Faults, Hold, Length, Ttl
from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, write_file
from pybench.exits import Exit


def replay(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="Such as mutex or redlock(nodes=3).")],
    seed: Annotated[str, typer.Argument(metavar="SEED", help="The world.")],
    *,
    only_clients: Annotated[
        str | None, typer.Option(metavar="LIST", rich_help_panel="Part", help="Only these clients, such as 0,2.")
    ] = None,
    only_faults: Annotated[
        str | None, typer.Option(metavar="LIST", rich_help_panel="Part", help="Only these faults, or none.")
    ] = None,
    requests: Annotated[
        str | None, typer.Option(metavar="N", rich_help_panel="Part", help="The first N requests of each client.")
    ] = None,
    earlier: Annotated[
        str | None, typer.Option(metavar="TIME", rich_help_panel="Part", help="Let the faults strike earlier.")
    ] = None,
    clients: Clients = None,
    ttl: Ttl = None,
    hold: Hold = None,
    length: Length = None,
    faults: Faults = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the time line as a page too.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show the time line of one world of fuzz.

    The same seed with the same options is the same world. Exits 20 if the lock breaks its promise in it.
    """
    from pybench.fuzz import page, parse_part, parse_seed, parse_worlds, replay_command, time_line

    worlds = parse_worlds(strategy, clients=clients, ttl=ttl, hold=hold, length=length, faults=faults)
    part = parse_part(only_clients=only_clients, only_faults=only_faults, requests=requests, earlier=earlier)
    number = parse_seed("SEED", seed)
    line = time_line(worlds, number, part, replay_command(worlds, number, part))
    if html is not None:
        write_file(html, page(line))
    if as_json:
        data_json(line.to_json())
    else:
        data(line.text())
    return Exit.PROMISE_BROKEN if line.is_broken else Exit.OK
