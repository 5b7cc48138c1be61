"""`GET /health`: the state of each server.

`ok`: all servers answer. `degraded`, still 200: a minority of the redlock servers is lost. `unavailable`, 503: one is
lost without which some route answers 503.
"""

from __future__ import annotations

from pybench.service.models import HealthAnswer, ServerState
from pybench.service.watching import Servers

SERVICE = "distributed-lock"


def health_of(servers: Servers) -> tuple[int, HealthAnswer]:
    """The status of the answer, and the answer."""
    states = [
        ServerState(
            role=role,
            state="up" if link.is_up else "lost",
            product=link.product,
            version=link.version,
            address=link.address,
            latency_ms=None if link.latency_s is None else round(link.latency_s * 1_000, 3),
        )
        for role, _, link in servers.numbered()
    ]
    status = "ok"
    for role, links in servers.by_role.items():
        up = sum(link.is_up for link in links)
        needed = len(links) // 2 + 1 if role == "redlock" and links else len(links)
        if up < needed:
            status = "unavailable"
        elif up < len(links) and status == "ok":
            status = "degraded"
    return (503 if status == "unavailable" else 200), HealthAnswer(status=status, service=SERVICE, servers=states)
