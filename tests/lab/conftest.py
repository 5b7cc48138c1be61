"""One stage with real servers for all experiments of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pybench.lab.carrying_out import carry_out
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.findings import Findings
from pybench.lab.stage import Given, Stage

SMALL: dict[str, dict[str, str]] = {
    "oversell": {"concurrency": "12", "work": "10500us"},
    "ttl-edge": {"ttl": "200ms", "work": "700ms"},
    "crash": {"ttl": "100ms"},
    "deadlock": {"ttl": "400ms"},
    "fencing": {"reply-timeout": "50ms"},
    "transfer": {"transfers": "4", "work": "2ms"},
    "restart": {"ttl": "200ms"},
    "quorum": {"grants": "3", "node-timeout-ms": "40"},
    "pause": {"ttl": "300ms"},
    "partition": {"ttl": "300ms"},
    "retry": {"cap": "40ms", "rounds": "2"},
    "leader": {"candidates": "4", "ttl": "600ms"},
}
"""Parameters with which an experiment takes a second or less, where it can."""

Experimented = Callable[..., Findings]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(Given()) as opened:
        yield opened


@pytest.fixture
def experimented(stage: Stage, no_running_loop: None) -> Experimented:
    """Carries out an experiment with small parameters, in a loop of its own."""

    def run(name: str, *strategies: str, every: bool = False, **given: str | bool) -> Findings:
        texts = {key.replace("_", "-"): value for key, value in given.items()}
        return carry_out(EXPERIMENTS[name], stage, {**SMALL.get(name, {}), **texts}, strategies=strategies, every=every)

    return run
