"""The smallest trial that the core can be asked for, as a dictionary; any field can be said anew."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pybench import _core
from pybench.servers import Server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

MS = 1_000_000


def trial_spec(server: Server, **fields: object) -> TrialSpec:
    """Eight clients of `mutex` on one key without a hold, released by script, for a tenth of a second."""
    return trial_spec_of([{**server.core_spec(), "compare_and_delete": "script"}]) | fields


def trial_spec_of(servers: Sequence[Mapping[str, Any]], **fields: object) -> TrialSpec:
    """The same on `servers` as the core takes them."""
    spec = {
        "strategy": "mutex",
        "args": {},
        "servers": servers,
        "connections": {"kind": "shared", "count": 2},
        "client_name": "pybench-test",
        "key_prefix": "test:",
        "keys": 1,
        "key_choice": {"kind": "uniform"},
        "keys_per_grant": 1,
        "key_order": "random",
        "read_share": 0.0,
        "nesting": 1,
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
        "reply_timeout_ns": 1_000 * MS,
        "warmup_ns": 20 * MS,
        "duration_ns": 100 * MS,
        "drain_ns": 1_000 * MS,
        "dies": False,
        "seed": 1,
        "threads": 1,
        "cores": [],
        "poll": "block",
        "least_belief_ns": 0,
    }
    # Of fields that are said by name the type checker cannot know the types.
    return cast("TrialSpec", spec | fields)


@contextlib.contextmanager
def running(spec: TrialSpec) -> Iterator[Any]:
    """A trial in a thread of its own; at the end it is waited for, and whoever does not want to wait stops it."""
    # With its result, which it has in the end, as `Any`: no test asks whether it is there.
    trial: Any = _core.Trial(spec)
    thread = threading.Thread(target=trial.run)
    thread.start()
    try:
        yield trial
    finally:
        thread.join()


def run_for_grants(spec: TrialSpec, grants: int) -> _core.TrialResult:
    """What a trial measured that lasted until its window had more than so many: on a busy machine it takes longer."""
    with running(spec | {"duration_ns": 60_000 * MS}) as trial:
        wait_until(lambda: trial.progress().grants > grants or trial.progress().phase == "done", "locks are granted")
        trial.stop()
    result: _core.TrialResult = trial.result
    return result


def fixed(milliseconds: float) -> dict[str, Any]:
    """A length that is always the same."""
    return {"kind": "fixed", "value_ns": round(milliseconds * MS)}
