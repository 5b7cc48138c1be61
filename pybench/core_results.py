"""What the core returns as dictionaries, besides those in `_core.pyi`: the votes of a server, and a judged history.

For the type checker; at run time they are dictionaries.
"""

from __future__ import annotations

from typing import TypedDict


class NodeVotes(TypedDict):
    """What one server of a lock whose servers vote replied to the calls of the window, whenever its replies came."""

    server: int
    """The index of the server in `servers` of the spec."""
    asked: int
    """How often it was asked to grant."""
    granted: int
    refused: int
    errors: int
    late: int
    """How many of these votes came when the attempt was decided already."""
    decided: int
    """The grants of the lock that its reply completed."""
    reply_hdr: bytes
    """From the call to the vote: HdrHistogram V2, deflated."""
    validity_hdr: bytes
    """What was left of the lease, less the clock-skew margin, at the grants that it completed."""


class JudgedHistory(TypedDict):
    """The history of one trial, or the merged histories of other programs, judged by the checker."""

    header: str
    """The first line of the history, with all defaults."""
    files: list[str]
    totals: dict[str, int]
    """What the checker counted, and `grants`, by the names of a trial's totals."""
    violations: list[dict[str, object]]
    """As `Violation`; clients are texts."""
    counts: dict[str, int]
    """What the last line of the history counts."""
    events: int
    clients: int
    keys: int
    torn: list[tuple[str, int]]
    """Files whose last line was torn off, with its number."""
    finding: tuple[str, int] | None
    """File and line of the first event that its client's state does not allow."""
    first_finding: str | None
