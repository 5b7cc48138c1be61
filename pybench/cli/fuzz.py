"""`pybench fuzz` and the options that it shares with `pybench replay`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import complain, data, data_json, say_meaning
from pybench.cli.status import line
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.fuzz import Search, Shortest, Worlds

Clients = Annotated[
    str | None, typer.Option("--clients", metavar="N", rich_help_panel="Worlds", help="Clients; else 2 to 6.")
]
Ttl = Annotated[
    str | None, typer.Option("--ttl", metavar="TIME", rich_help_panel="Worlds", help="The lease; else 20ms to 1s.")
]
Hold = Annotated[
    str | None,
    typer.Option("--hold", metavar="TIME", rich_help_panel="Worlds", help="The longest hold; else 10 to 150 % of ttl."),
]
Length = Annotated[
    str | None,
    typer.Option("--length", metavar="TIME", rich_help_panel="Worlds", help="Virtual time; else 4 times ttl or hold."),
]
Faults = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="LIST",
        rich_help_panel="Worlds",
        help="Of delay, cut, pause, client-kill, kill, restart, forget, failover, clock; or none. Else all that the "
        "lock's servers can have.",
    ),
]
SHOWN_SEEDS = 10
TEXT_WIDTH = 80


def fuzz(
    *,
    strategy: Annotated[str, typer.Option("--strategy", "-s", metavar="NAME", help="Such as mutex, redlock(nodes=3).")],
    seeds: Annotated[str, typer.Option(metavar="N", help="How many worlds.")] = "1000",
    first: Annotated[str, typer.Option("--from", metavar="SEED", help="The first seed.")] = "0",
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Count broken promises; do not stop.")] = False,
    clients: Clients = None,
    ttl: Ttl = None,
    hold: Hold = None,
    length: Length = None,
    faults: Faults = None,
    as_json: AsJson = False,
) -> int:
    """Search for faults that break a lock, on virtual time.

    A seed draws a world: clients, delays, clocks and faults. The loop that measures locks runs in it over models of
    the servers, and the same checker judges it. docs/fuzz.md explains the faults. No server is started.
    """
    from pybench.fuzz import Search, parse_seed, parse_seeds, parse_worlds, search, shortest_of

    worlds = parse_worlds(strategy, clients=clients, ttl=ttl, hold=hold, length=length, faults=faults)
    start = parse_seed("--from", first)
    count, found = parse_seeds(seeds, start), Search(start)
    with line(lambda: _state(found)):
        search(worlds, found, count, keep_going=keep_going)
    shown, hint = [], f"go on with --from {start + found.worlds}" if found.interrupted else None
    if not found.interrupted:
        try:
            shown = [shortest_of(worlds, listed) for listed in (found.broken, found.outside) if listed]
        except KeyboardInterrupt:
            hint = "the search was complete; only the shortest world is missing"
    code = Exit.INTERRUPTED if hint else Exit.PROMISE_BROKEN if found.broken else Exit.OK
    if as_json:
        data_json(_json(worlds, found, shown, code))
    else:
        data("\n".join(_lines(worlds, found, shown)))
    if hint:
        complain("interrupted", hint=hint)
    say_meaning(code)
    return code


def _state(found: Search) -> str:
    return f"{found.worlds:,} worlds, {found.events:,} events, {len(found.outside) + len(found.broken):,} found"


def _lines(worlds: Worlds, found: Search, shown: list[Shortest]) -> Iterator[str]:
    from pybench.numbers import plural

    last = found.first + found.worlds - 1
    broken = f"broke its promise in {plural(len(found.broken), 'world')}" if found.broken else "broke no promise"
    seeds = f"seeds {found.first} to {last}" if found.worlds else "none"
    yield from textwrap.wrap(f"{worlds.lock} {broken}: {plural(found.worlds, 'world')}, {seeds}", TEXT_WIDTH)
    rate = found.events / found.core_seconds if found.core_seconds else 0
    yield from _indented(
        f"{found.events:,} events and {found.grants:,} grants in {found.seconds:.1f} s, "
        f"{rate:,.0f} events/s of CPU time"
    )
    struck = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.faults.items())) or "none"
    yield from _indented(f"faults that struck: {struck}")
    if found.overruns:
        yield from _indented(
            f"in {plural(found.overruns, 'world')} a client was granted the lock while another still worked "
            f"{'past its lease, which no lease' if worlds.has_lease else 'past its session, which no session'} prevents"
        )
    if found.outside:
        yield from _indented(
            f"outside its promise: violations in {plural(len(found.outside), 'world')}, {_seeds_text(found.outside)}"
        )
    if len(found.broken) > 1:
        yield from _indented(f"broken promises: {_seeds_text(found.broken)}")
    for one in shown:
        yield ""
        yield from textwrap.wrap(f"{'broken promise' if one.broken else 'outside its promise'}: {one.sentence}", 80)
        yield from _indented(f"shortest world found of seed {one.seed}: {one.size}. Play it again:")
        # One line, whatever its length, to be copied.
        yield f"  {one.command}"


def _seeds_text(seeds: list[int]) -> str:
    more = f" and {len(seeds) - SHOWN_SEEDS:,} more" if len(seeds) > SHOWN_SEEDS else ""
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds[:SHOWN_SEEDS]))}{more}"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ")


def _json(worlds: Worlds, found: Search, shown: list[Shortest], code: Exit) -> dict[str, object]:
    return {
        "exit_code": code.value,
        "strategy": worlds.lock,
        "faults": list(worlds.faults),
        "first_seed": found.first,
        "worlds": found.worlds,
        "events": found.events,
        "grants": found.grants,
        "seconds": round(found.seconds, 3),
        "core_seconds": round(found.core_seconds, 3),
        "events_per_core_s": round(found.events / found.core_seconds) if found.core_seconds else None,
        "faults_struck": dict(sorted(found.faults.items())),
        "overruns": found.overruns,
        "broken": found.broken,
        "outside": found.outside,
        "shortest": [one.to_json() for one in shown],
    }
