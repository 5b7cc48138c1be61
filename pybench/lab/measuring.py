"""A measured trial as the instrument of an experiment: the core's clients and its checker, without a run around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybench.analysis import verdicts
from pybench.analysis.terms import Terms

if TYPE_CHECKING:
    from pybench._core import TrialResult
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

CLIENT_NAME = "pybench-lab"


def measure(stage: Stage, lock: ChosenLock, *, prefix: str, window_s: float, **axes: Any) -> TrialResult:  # noqa: ANN401 - values of a cell
    """One trial of a lock of Redis; `axes` are fields of a `Cell`, others have their defaults. Raises ServerError."""
    from pybench import _core
    from pybench.errors import ServerError
    from pybench.matrix.cells import Cell
    from pybench.planning.trial_spec import trial_spec
    from pybench.strategies import ServerKind

    entry = lock.entry
    assert entry is not None, "only locks of the catalogue are measured"
    cell = Cell(id="lab", strategy=lock.name, args=lock.arguments, **axes)
    servers = stage.redis(max(1, entry.servers_of_kind(ServerKind.REDIS, lock.arguments)))
    spec = trial_spec(
        cell,
        [server.core_spec() for server in servers],
        cores=(),
        key_prefix=prefix,
        client_name=CLIENT_NAME,
        seed=1,
        warmup_ns=0,
        duration_ns=round(window_s * 1e9),
    )
    try:
        return _core.Trial(spec).run()
    except (_core.ConnectError, OSError) as error:
        stage.pool.check()
        raise ServerError(f"the trial of {lock.text}: {error}", hint="does the server still run?") from None


def violations(result: TrialResult, lock: ChosenLock) -> int:
    """How many violations the checker saw."""
    entry = lock.entry
    assert entry is not None, "only locks of the catalogue are measured"
    return verdicts.violations(result.totals, Terms.of(entry))
