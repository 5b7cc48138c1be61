"""The axis `rtt` in a plan: what pybench's own network adds to the calls of a grant, and what does not fit into it.

Promises: functions of a cell alone. The time of a grant is the least possible one: a lock of several servers is granted
when a majority has replied, and asks all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pybench.matrix.durations import MS, format_duration, format_rate
from pybench.matrix.values import Distribution
from pybench.numbers import format_percent, plural
from pybench.planning.needs import parts_of, servers_of
from pybench.planning.trial_spec import REPLY_TIMEOUT_NS
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

LEAST_SHARE = 0.001
"""Below this share of round trips that are longer than a timeout there is no warning."""
NODE_TIMEOUTS_MS = (1, 50)
"""The shortest and the longest `node_timeout_ms` that a lock takes by itself; in between it is a tenth of the ttl."""

Length = Callable[[Distribution], float]


def rtts_of(cell: Cell) -> tuple[Distribution, ...]:
    """The round-trip time to each server of `cell`, which names enough of them."""
    return cell.rtt.of(servers_of(cell))


def added_ns(cell: Cell, length: Length = Distribution.mean) -> float:
    """The least time that the axis adds to one call to each backend of `cell`, in sequence; 0 for too few times."""
    added, first = 0.0, 0
    if _lacks_servers(cell):
        return added
    times = rtts_of(cell)
    for part in parts_of(cell):
        ours = sorted(length(time) for time in times[first : first + part.servers])
        added += ours[part.servers // 2]
        first += part.servers
    return added


def why_not(cell: Cell) -> str | None:
    """The reason of the axis against `cell`, with what to change; None without a reason."""
    if _lacks_servers(cell):
        strategy, servers = cell.strategy, plural(servers_of(cell), "server")
        return f"rtt names {cell.rtt.servers_named} servers, and {strategy} has {servers}; name at least {servers}"
    for place, time in enumerate(rtts_of(cell), start=1):
        if time.median() >= REPLY_TIMEOUT_NS:
            server = f" to server {place}" if cell.rtt.servers_named else ""
            limit = format_duration(REPLY_TIMEOUT_NS)
            return (
                f"the rtt of {time.text}{server} is not shorter than the reply timeout of {limit}, after which a "
                "command counts as lost; shorten rtt"
            )
    timeout_ns = _node_timeout_ns(cell)
    if timeout_ns is not None and added_ns(cell, Distribution.median) >= timeout_ns:
        return (
            f"with an rtt of {cell.rtt.text} no majority of the servers replies within {format_duration(timeout_ns)}, "
            f"the time that {cell.strategy} allows each server; shorten rtt, or raise node_timeout_ms"
        )
    return None


def network_warnings(cells: Sequence[Cell]) -> list[str]:
    """What the axis does to the figures of `cells`, a sentence each: replies too late, servers that no lock has."""
    found: dict[str, None] = {}
    for cell in cells:
        if not cell.rtt.is_zero:
            found |= dict.fromkeys([*_late_replies(cell), *_distant_servers(cell)])
    return [*found, *_spare_times(cells)]


def rate_warnings(cells: Sequence[Cell], most_per_s: Callable[[Cell], float]) -> list[str]:
    """A sentence for each rate that the round trips make impossible; `most_per_s` is the highest rate of a cell."""
    found: dict[str, None] = {}
    for cell in cells:
        if cell.rate_per_s is None or cell.rtt.is_zero:
            continue
        most = most_per_s(cell)
        if most < cell.rate_per_s:
            rate = format_rate(cell.rate_per_s)
            which = f"the highest rate of the stages, {rate}," if cell.stages else f"a rate of {rate}"
            found[
                f"{which} cannot be kept: {plural(cell.concurrency, 'client')} of {cell.strategy} at an rtt of "
                f"{cell.rtt.text} make at most {most:,.4g} grants/s"
            ] = None
    return list(found)


def _lacks_servers(cell: Cell) -> bool:
    return cell.rtt.servers_named is not None and cell.rtt.servers_named < servers_of(cell)


def _node_timeout_ns(cell: Cell) -> int | None:
    """How long one server of a quorum may take to reply; None for a lock without such a limit."""
    given_ms = CATALOGUE[cell.strategy].argument("node_timeout_ms", cell.args)
    if given_ms is None:
        return None
    shortest_ms, longest_ms = NODE_TIMEOUTS_MS
    timeout_ms = int(given_ms) or min(max(cell.ttl_ms // 10, shortest_ms), longest_ms)
    return min(timeout_ms * MS, REPLY_TIMEOUT_NS)


def _late_replies(cell: Cell) -> Iterator[str]:
    for time in dict.fromkeys(rtts_of(cell)):
        late = time.share_above(REPLY_TIMEOUT_NS)
        if late > LEAST_SHARE:
            yield (
                f"{format_percent(late)} of the round trips of {time.text} are longer than the reply timeout of "
                f"{format_duration(REPLY_TIMEOUT_NS)}: their commands count as lost"
            )


def _distant_servers(cell: Cell) -> Iterator[str]:
    timeout_ns = _node_timeout_ns(cell)
    for place, time in enumerate(rtts_of(cell), start=1):
        if timeout_ns is not None and timeout_ns <= time.median() < REPLY_TIMEOUT_NS:
            yield (
                f"server {place} of {cell.strategy}, at an rtt of {time.text}, never counts: the lock waits "
                f"{format_duration(timeout_ns)} for each server; raise node_timeout_ms to count it"
            )


def _spare_times(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence for each value that names more servers than any cell with it has."""
    most: dict[str, tuple[int, int]] = {}
    for cell in cells:
        named = cell.rtt.servers_named
        if named is not None:
            most[cell.rtt.text] = named, max(servers_of(cell), most.get(cell.rtt.text, (0, 0))[1])
    for text, (named, servers) in most.items():
        if named > servers:
            yield f"rtt {text} names {named} servers, and no lock with it has more than {servers}"
