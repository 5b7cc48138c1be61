"""A real server for the core, and the smallest trial that it can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pybench.servers import Server, binaries, supervisor

MS = 1_000_000

MakeSpec = Callable[..., Any]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary)
    yield Server(supervised.endpoint, facts, binary.source, supervised.pid)
    supervised.stop()


@pytest.fixture
def make_spec(server: Server, request: pytest.FixtureRequest) -> MakeSpec:
    """A trial of a tenth of a second: eight clients of `mutex` on one key; any field can be said anew."""

    def make(**fields: object) -> dict[str, Any]:
        spec = {
            "strategy": "mutex",
            "args": {},
            "servers": [{**server.core_spec(), "compare_and_delete": "script"}],
            "connections": {"kind": "shared", "count": 2},
            "client_name": "pybench-test",
            "key_prefix": f"test:{request.node.name}:",
            "keys": 1,
            "key_choice": {"kind": "uniform"},
            "hold": {"kind": "fixed", "value_ns": 0},
            "think": {"kind": "fixed", "value_ns": 0},
            "after_lease": "continue",
            "loop": {"kind": "closed"},
            "concurrency": 8,
            "retry": {
                "kind": "full-jitter",
                "base_ns": MS,
                "factor": 2.0,
                "cap_ns": 50 * MS,
                "max_attempts": None,
                "max_wait_ns": 10_000 * MS,
            },
            "ttl_ms": 10_000,
            "patience_ns": 1_000 * MS,
            "warmup_ns": 20 * MS,
            "duration_ns": 100 * MS,
            "drain_ns": 1_000 * MS,
            "seed": 1,
            "threads": 1,
            "poll": "block",
        }
        return spec | fields

    return make


def fixed(milliseconds: float) -> dict[str, Any]:
    """A length that is always the same."""
    return {"kind": "fixed", "value_ns": round(milliseconds * MS)}
