"""A measured trial as the instrument of an experiment: the core's clients and its checker, without a run around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.analysis import verdicts
from pybench.analysis.terms import Terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench._core import TrialResult
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

CLIENT_NAME = "pybench-lab"


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a trial, and what is left in the guarded resource of each key, if the trial had a guard."""

    result: TrialResult
    values: NDArray[np.int64] | None


def measure(stage: Stage, lock: ChosenLock, *, prefix: str, window_s: float, **axes: Any) -> Measured:  # noqa: ANN401 - values of a cell
    """One trial of a lock of Redis; `axes` are fields of a `Cell`, others have their defaults. Raises ServerError."""
    from pybench import _core
    from pybench.errors import ServerError
    from pybench.matrix.cells import Cell
    from pybench.planning.trial_spec import trial_spec
    from pybench.running.guard_side import RedisGuard
    from pybench.strategies import ServerKind

    entry = lock.entry
    assert entry is not None, "only locks of the catalogue are measured"
    cell = Cell(id="lab", strategy=lock.name, args=lock.arguments, **axes)
    servers = stage.redis(max(1, entry.servers_of_kind(ServerKind.REDIS, lock.arguments)))
    guard = RedisGuard(cell, servers[0], prefix, is_alone=False) if cell.guard else None
    if guard is not None:
        guard.prepare()
    spec = trial_spec(
        cell,
        [server.core_spec() for server in servers],
        cores=(),
        key_prefix=prefix,
        client_name=CLIENT_NAME,
        seed=1,
        warmup_ns=0,
        duration_ns=round(window_s * 1e9),
        guard=None if guard is None else guard.spec(),
    )
    try:
        result = _core.Trial(spec).run()
    except (_core.ConnectError, OSError) as error:
        stage.pool.check()
        raise ServerError(f"the trial of {lock.text}: {error}", hint="does the server still run?") from None
    return Measured(result, None if guard is None else guard.values())


def violations(result: TrialResult, lock: ChosenLock) -> int:
    """How many violations the checker saw."""
    entry = lock.entry
    assert entry is not None, "only locks of the catalogue are measured"
    return verdicts.violations(result.totals, Terms.of(entry))
