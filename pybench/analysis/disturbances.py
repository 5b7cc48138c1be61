"""What came between clients and servers, in words: connections that broke, calls and acquires without an answer.

Such a trial counts, for that is what its clients lived through; whoever reads its figures has to know.
"""

from __future__ import annotations

from pybench.numbers import plural

DISTURBANCES = ("reconnects", "lost_calls", "unknown", "unknown_writes")
"""The totals of a trial that tell of them."""


def disturbances(*, reconnects: int, lost_calls: int, unknown: int, unknown_writes: int = 0) -> str:
    """Such as `2 connections broke, 5 calls were lost, 3 acquires got no answer`; empty when nothing was amiss.

    They are not added up: an acquire whose call was lost with its connection counts in the first three.
    """
    told = (
        (reconnects, f"{plural(reconnects, 'connection')} broke"),
        (lost_calls, f"{plural(lost_calls, 'call was', 'calls were')} lost"),
        (unknown, f"{plural(unknown, 'acquire')} got no answer"),
        (unknown_writes, f"{plural(unknown_writes, 'write')} got no answer"),
    )
    return ", ".join(words for count, words in told if count)
