"""Asks the user before load goes to a server on another machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pybench.cli.figures import wall_time
from pybench.cli.output import say
from pybench.errors import InputError
from pybench.numbers import plural
from pybench.planning.fault_rules import harms_of_given
from pybench.servers import Server

if TYPE_CHECKING:
    from pybench.planning.plan import Plan
    from pybench.running.job import Consent
    from pybench.servers import AnyServer


class NotConfirmed(InputError):
    """The user did not agree to load on another machine."""


def asking(*, yes: bool) -> Consent:
    """A consent that announces the load on servers of other machines, and asks unless `yes`."""

    def consent(plan: Plan, servers: Sequence[AnyServer]) -> None:
        for line in _harms(plan):
            say(line)
        elsewhere = [server for server in servers if not server.is_local()]
        if not elsewhere:
            return
        for line in _what_comes(plan, elsewhere):
            say(line)
        _confirm(yes=yes)

    return consent


def asking_in_lab(*, yes: bool) -> Callable[[Sequence[AnyServer]], None]:
    """As `asking`, for servers on another machine that an experiment of the lab is about to use."""

    def consent(elsewhere: Sequence[AnyServer]) -> None:
        for line in map(_not_here, elsewhere):
            say(line)
        say("The experiment takes and releases locks there, and reads and writes a resource that they guard.")
        for what in dict.fromkeys(map(_made_on, elsewhere)):
            say(f"{what} at the end of the experiment. pybench touches no other data there.")
        _confirm(yes=yes)

    return consent


def _confirm(*, yes: bool) -> None:
    """Ask the user, unless `yes`. Raises NotConfirmed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed(
            "load on another machine needs confirmation, and stdin is no terminal", hint="pass --yes to confirm"
        )
    print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        hint = "--redis and --postgres name other servers; without them pybench starts its own"
        raise NotConfirmed("not confirmed: nothing was sent", hint=hint)


def _what_comes(plan: Plan, servers: Sequence[AnyServer]) -> list[str]:
    matrix = plan.matrix
    clients = max(cell.concurrency for cell in plan.cells)
    connections = max(need.connections for need in plan.servers)
    trials = len(plan.cells) * matrix.trials
    made = dict.fromkeys(_made_on(server) for server in servers)
    return [
        *map(_not_here, servers),
        f"The run sends load there for about {wall_time(plan.seconds)}: {plural(trials, 'trial')} of up to "
        f"{plural(clients, 'client')} over up to {plural(connections, 'connection')}. "
        "Each client acquires and releases locks as fast as it can.",
        *(f"{what} after each trial. pybench touches no other data there." for what in made),
    ]


_HARMS = {
    "client-kill": "close the connections of pybench",
    "script-flush": "forget the scripts of all programs",
    "slow": "serve no program while a script runs",
    "pause": "hold back the commands of all programs",
}
"""What faults make a given server do."""


def _harms(plan: Plan) -> list[str]:
    """The faults that the run causes on servers that the user named."""
    found = {(url, fault.do): None for cell in plan.cells for fault, url in harms_of_given(cell, plan.matrix)}
    return [f"--break-my-servers: the run makes {url} {_HARMS[do]} ({do})." for url, do in found]


def _not_here(server: AnyServer) -> str:
    return f"{server.endpoint} ({server.label}) is not on this machine."


def _made_on(server: AnyServer) -> str:
    if isinstance(server, Server):
        return "pybench's keys begin with pybench: and are removed"
    return "pybench's tables are in schemas that begin with pybench_ and are dropped"
