"""What the answer says of locks that were measured with different guards, which are different loads."""

from __future__ import annotations

from pybench.analysis.answer import answer_of
from tests.unit.support.comparisons import lock, run_of, unsafe

NO_GUARD, COUNTED = {"guard": "none", "guard_on": "none"}, {"guard": "counter", "guard_on": "redis"}


def answer(*cells: dict) -> str:
    return answer_of(*run_of(*cells)).text


def test_the_answer_names_a_lock_that_was_unsafe_only_where_the_one_to_take_is_not_ranked():
    found = answer(lock("mutex", 500, **NO_GUARD), lock("fenced", 900, **NO_GUARD), unsafe("fenced", **COUNTED))
    assert found.startswith(
        "Take mutex: every other ranked lock was unsafe at some load (fenced only where mutex is not ranked); "
        "but mutex is behind with no guard: fenced gives 1.8"
    )
    both = answer(
        *(lock("mutex", 500, **guard) for guard in (NO_GUARD, COUNTED)),
        lock("fenced", 900, **NO_GUARD), unsafe("fenced", **COUNTED),
    )  # fmt: skip
    assert both.startswith("Take mutex: every other ranked lock was unsafe at some load; but mutex is behind")


def test_a_lock_that_was_measured_with_another_guard_only_is_not_compared():
    others = unsafe("fenced", **NO_GUARD), lock("fenced", 900, keys=4, **NO_GUARD)
    nothing = "No two locks are ranked at the same load, so no locks can be compared; fenced is unsafe at 1 of "
    assert answer(lock("mutex", 500, **COUNTED), *others) == f"{nothing}2 loads."
    assert answer(lock("mutex", 500, **COUNTED), others[0]) == f"{nothing}1 load."
    contested = (*others, lock("naive", 800, keys=4, **NO_GUARD), unsafe("naive", **NO_GUARD))
    assert answer(lock("mutex", 500, **COUNTED), *contested).startswith(
        "No lock can be recommended: only mutex was unsafe at no load, and no other ranked lock has its loads"
    )
    elsewhere = COUNTED | {"guard_on": "postgres"}
    assert answer(lock("mutex", 500, **COUNTED), unsafe("fenced", **elsewhere)).startswith(nothing)
