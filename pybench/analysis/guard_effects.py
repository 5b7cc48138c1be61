"""What the final values of guarded resources prove, each key judged by itself.

A key must have its first value and the changes of all acknowledged writes. A write without a reply may have been
carried out, or not; an absolute one may even be carried out late, over other writes. So a key with such a write is
judged only where its writes are relative, and then within the bounds that they leave.

Promises: pure functions. No write without a reply is taken for a lost update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.matrix.guards import Guard

COUNTED = ("acknowledged_writes", "unknown_writes", "abandoned_works")
"""What the core counts of all works, in the whole trial."""
COUNTED_OF = {
    "stock": ("sold_out",),
    "fenced-write": ("stale_writes", "stale_writes_accepted"),
}
"""What it counts besides, of works of this kind."""


def guard_effects(
    guard: Guard,
    totals: Mapping[str, int],
    writes: Mapping[str, NDArray[Any]],
    values: NDArray[np.int64] | None,
    *,
    is_atomic: bool,
) -> dict[str, int | None]:
    """The effects of the guarded works of a trial, by column. `values` are the final values; None: they were not read.

    `is_atomic`: the writes of a counter add one on the server, and are no absolute values.
    """
    names = [*COUNTED, *COUNTED_OF.get(guard.kind, ()), *(["refused_writes"] if guard.constraint else [])]
    effects: dict[str, int | None] = {name: totals[name] for name in names}
    if values is None:
        return effects
    unknown = writes["unknown"].astype(np.int64)
    # How far each key is from what the acknowledged writes make of it.
    beyond = values - (guard.initial + writes["changed"].astype(np.int64))
    effects["final_value"] = int(values.sum())
    match guard.kind:
        case "transfer":
            effects["sum_error"] = int(np.abs(beyond[unknown == 0]).sum())
        case "stock":
            effects["oversold"] = _sum_above(-values)
            effects |= {"lost_updates": _sum_above(beyond), "surplus_updates": _sum_above(-beyond - unknown)}
        case _:
            judged = beyond if is_atomic else beyond[unknown == 0]
            effects |= {"lost_updates": _sum_above(-judged), "surplus_updates": _sum_above(beyond - unknown)}
    return effects


def _sum_above(numbers: NDArray[np.int64]) -> int:
    """The sum of the numbers above 0."""
    return int(np.maximum(numbers, 0).sum())
