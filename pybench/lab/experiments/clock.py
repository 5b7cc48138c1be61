"""`clock`: the wall clocks of servers jump, and leases end there too early."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pybench.errors import InputError, ServerError
from pybench.lab.contest import attempt, client_on, servers_of
from pybench.lab.experiment import Experiment, Lease, Parameter, Time
from pybench.lab.findings import Case, Expected, Figure
from pybench.lab.locks import ChosenLock

if TYPE_CHECKING:
    from pybench.lab.experiment import Values
    from pybench.lab.stage import Stage
    from pybench.servers import Server

REDLOCK = ChosenLock("redlock", (("nodes", 5),))


def _require(values: Values) -> None:
    if values["jump"] < values["ttl"]:
        raise InputError("--jump is shorter than --ttl", hint="the lease has to end by the jump")


def _run(stage: Stage) -> Iterator[Case]:
    from pybench.lab.carrying_out import ToolMissing
    from pybench.servers.redis import wall_clock

    try:
        wall_clock.find_library()
    except ServerError as error:
        raise ToolMissing(error.message, hint=error.hint) from None
    yield _case(stage, ChosenLock("mutex"), 1, Expected.WRONG)
    yield _case(stage, REDLOCK, 3, Expected.WRONG)
    yield _case(stage, REDLOCK, 2, Expected.RIGHT)


def _case(stage: Stage, lock: ChosenLock, jumping: int, expected: Expected) -> Case:
    from pybench.servers import harm

    servers = stage.own_redis(servers_of(lock), moves_clock=True)
    label = f"{lock.name}, {jumping} of {len(servers)}"
    stage.note(label)
    name = f"{stage.prefix}lock:{lock.name}:{jumping}"
    endpoints = [server.endpoint for server in servers]
    ttl = stage.length("ttl")
    with attempt(client_on(stage, lock, endpoints), name, ttl=ttl) as first:
        # A quorum lock is held before its last servers have carried out their commands.
        for server in servers:
            stage.wait_until(partial(_has, server, name), what="all servers had the lock")
        for server in servers[:jumping]:
            harm.Clock(stage.pool, server, stage.count("jump")).begin()
        with attempt(client_on(stage, lock, endpoints), name, ttl=ttl) as second:
            is_double = first.holds and second.holds
            left_ms = first.left_ms
    if is_double:
        sentence = "the lease had ended there: the lock was granted again while its first holder still had it"
    elif first.held is None:
        sentence = f"the first client had no lock: {first.reason}"
    elif second.held is None:
        kept_true = 2 * jumping < len(servers)
        why = "a majority of the servers kept the true time" if kept_true else "the lease had not ended there"
        sentence = f"the second client was refused: {why}"
    else:
        sentence = "the second client followed the first, whose lease had ended by its own clock, too"
    return Case(
        label=label,
        strategy=lock.text,
        expected=expected,
        went_wrong=is_double,
        sentence=sentence,
        figures=(
            Figure("servers", "servers", len(servers)),
            Figure("jumped", "clocks that jumped", jumping),
            Figure("jump_ms", "jump", stage.count("jump") / 1e6),
            Figure("ttl_ms", "ttl", stage.seconds("ttl") * 1e3),
            Figure("second", "second client", "refused" if second.held is None else "held the lock"),
            Figure("first_left_ms", "lease of the first left", left_ms),
        ),
        clients=(first.row, second.row),
    )


def _has(server: Server, name: str) -> bool:
    with server.conversation() as conversation:
        return conversation.ask("EXISTS", name) == 1


CLOCK = Experiment(
    name="clock",
    summary="The wall clocks of servers jump ahead",
    steps=(
        "The first client holds the lock with a ttl of {ttl}. Then the wall clocks of some servers jump by {jump}.",
        "The second client asks for the lock. Only the servers see the other time (libfaketime).",
    ),
    learn="A lease on Redis ends by the wall clock of the server: when most clocks jump, even redlock breaks.",
    run=_run,
    require=_require,
    harms_servers=True,
    parameters=(
        Parameter("ttl", Lease(), "30s", "The lease."),
        Parameter("jump", Time(longest_ns=3_600_000_000_000), "60s", "How far the clocks jump."),
    ),
)
