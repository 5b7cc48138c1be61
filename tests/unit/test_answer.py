from __future__ import annotations

import pandas as pd

from pybench.answer import answer as answered
from pybench.records import schema


def summary(*rows: dict):
    usual = {
        "args": "",
        "backend": "redis",
        "server": "redis 8.0 (path)",
        "concurrency": 1,
        "keys": 1,
        "hold": "0",
        "retry": "full-jitter",
        "trials": 5,
        "verdict": "SAFE",
    }
    frame = pd.DataFrame([{**usual, "cell": str(n), **row} for n, row in enumerate(rows)])
    return frame.reindex(columns=[*schema.CELL_COLUMNS, *schema.SUMMARY_FIGURES])


def answer(frame):
    return answered(frame).text


def lock(name, rate, *, spread=0.01, **fields: object):
    interval = (
        {} if spread is None else {"grants_per_s_low": rate * (1 - spread), "grants_per_s_high": rate * (1 + spread)}
    )
    return {"strategy": name, "grants_per_s": rate, "safe_grants_per_s": rate, **interval, **fields}


def unsafe(name, **fields: object):
    return lock(name, 99_000, **{"verdict": "UNSAFE", "safe_grants_per_s": 0, **fields})


def test_the_winner_at_one_load():
    assert (
        answer(summary(lock("naive", 20_000), lock("mutex", 30_000), unsafe("none")))
        == "mutex gives the most safe grants: 30,000/s, 1.5 times naive's; none is unsafe in 1 of 1 cell."
    )


def test_the_winner_of_several_loads_is_shown_where_most_clients_share_fewest_keys():
    rows = []
    for concurrency, keys, naive, mutex in (
        (1, 1, 900, 1_000),
        (64, 1, 100, 150),
        (64, 1_000, 5_000, 4_000),
        (1, 1_000, 10, 10),
    ):
        at = {"concurrency": concurrency, "keys": keys}
        rows += [lock("naive", naive, **at), lock("mutex", mutex, **at), unsafe("none", **at)]
    assert answer(summary(*rows)) == (
        "mutex gives the most safe grants at 2 of 4 loads: 150/s, 1.5 times naive's with 64 clients, 1 key; "
        "ahead elsewhere: naive at 1 load; at 1 load the first can't be told apart, and mutex promises the most; "
        "none is unsafe in 4 of 4 cells."
    )


def test_loads_are_not_compared_with_each_other():
    found = answer(summary(lock("naive", 90_000, keys=1_000), lock("mutex", 100, keys=1)))
    assert found == "No two locks are safe at the same load, so that none can be compared."


def test_overlapping_intervals_tell_nothing_apart():
    found = answer(summary(lock("naive", 1_000, spread=0.1), lock("mutex", 1_050, spread=0.1)))
    assert found == "Prefer mutex: naive is not measurably faster (their intervals overlap) and promises less."


def test_one_trial_tells_nothing_apart():
    found = answer(summary(lock("naive", 1_000, spread=None, trials=1), lock("mutex", 2_000, spread=None, trials=1)))
    assert found == (
        "Prefer mutex: naive is not measurably faster (1 trial a cell is too few to tell) and promises less."
    )


def test_few_trials_come_apart_by_chance_and_tell_nothing():
    three = summary(lock("mutex", 1_000, args="a=1", trials=3), lock("mutex", 2_000, trials=5))
    assert answer(three) == (
        "mutex and mutex(a=1) can't be told apart by safe grants/s: 3 trials a cell are too few to tell."
    )
    assert answer(three.assign(trials=4)).startswith("mutex gives the most safe grants: 2,000/s")


def test_locks_that_promise_as_much_are_left_side_by_side():
    found = answer(summary(lock("mutex", 1_000, spread=0.1, args="a=1"), lock("mutex", 1_050, spread=0.1)))
    assert found == "mutex and mutex(a=1) can't be told apart by safe grants/s: their intervals overlap."


def test_a_promise_counts_only_where_its_lock_is_among_the_first_everywhere():
    rows = []
    for keys, mutex in ((1, 1_000), (1_000, 500)):
        rows += [lock("naive", 1_000, spread=0.1, keys=keys), lock("naive", 990, spread=0.1, keys=keys, args="b=1")]
        rows.append(lock("mutex", mutex, spread=0.1, keys=keys))
    assert answer(summary(*rows)) == (
        "mutex, naive and naive(b=1) can't be told apart by safe grants/s: their intervals overlap at every load."
    )


def test_a_faster_lock_is_not_praised_without_saying_that_another_promises_more():
    found = answered(summary(lock("naive", 2_000), lock("mutex", 1_000), unsafe("none")))
    assert found.headline == "naive gives the most safe grants: 2,000/s, 2 times mutex's"
    assert found.further == ("but mutex promises more than naive",)
    assert found.unsafe == "none is unsafe in 1 of 1 cell"


def test_a_lead_over_the_second_needs_to_be_one_over_all():
    found = answer(summary(lock("a", 1_000), lock("b", 900), lock("c", 800, spread=0.5)))
    assert found == "a and c can't be told apart by safe grants/s: their intervals overlap."


def test_the_only_lock_is_compared_with_none():
    found = answer(summary(lock("mutex", 50, keys=1), lock("mutex", 4_321, keys=10)))
    assert found == "mutex gives up to 4,321 safe grants/s with 10 keys; there is no other lock to compare it with."


def test_the_only_safe_lock_wins():
    found = answer(summary(lock("mutex", 1_234), unsafe("none"), unsafe("naive")))
    assert found == (
        "mutex is the only lock of this run that is safe: 1,234 safe grants/s; "
        "none is unsafe in 1 of 1 cell and naive is unsafe in 1 of 1 cell."
    )


def test_nothing_safe():
    assert answer(summary(unsafe("none"))) == "No lock of this run can be called safe; none is unsafe in 1 of 1 cell."


def test_a_void_run_and_an_empty_one():
    void = lock("mutex", 1_000, verdict="VOID", safe_grants_per_s=None)
    assert answer(summary(void)) == "This run proves nothing: its control was not caught."
    assert answer(summary({"strategy": "mutex"}).iloc[:0]) == "Nothing was measured."


def test_locks_are_told_apart_by_arguments_and_backends():
    found = answer(
        summary(
            lock("redlock", 3_000, args="nodes=5", backend="valkey"),
            lock("redlock", 2_000, args="nodes=5", backend="redis"),
        )
    )
    assert found.startswith(
        "redlock(nodes=5) on valkey gives the most safe grants: 3,000/s, 1.5 times redlock(nodes=5) on redis's"
    )


def test_many_locks_are_counted_and_not_listed():
    tied = answered(summary(*(lock("mutex", 1_000, spread=0.1, args=f"n={n}") for n in range(6))))
    assert tied.headline == "6 locks can't be told apart by safe grants/s: their intervals overlap"
    worse = answered(
        summary(lock("mutex", 1_000, spread=0.1), *(lock("naive", 1_000, args=f"n={n}") for n in range(6)))
    )
    assert (
        worse.headline == "Prefer mutex: 6 others are not measurably faster (their intervals overlap) and promise less"
    )
    unsafe_ones = answered(summary(lock("mutex", 1_000), *(unsafe("naive", args=f"n={n}") for n in range(6))))
    assert unsafe_ones.unsafe == "6 of 7 locks are unsafe in some cell"


def semaphore(rate, *, permits=4, **fields: object):
    return lock("semaphore", rate, args="" if permits == 4 else f"permits={permits}", **fields)


def test_what_lets_several_hold_a_key_is_not_compared_with_what_lets_in_one():
    found = answer(summary(semaphore(90_000), lock("naive", 20_000), lock("mutex", 30_000)))
    assert found == (
        "mutex gives the most safe grants: 30,000/s, 1.5 times naive's; "
        "not compared, for more may hold a key at a time: semaphore (4)."
    )


def test_a_lock_beside_a_semaphore_is_alone_and_the_semaphore_not_unsafe():
    assert answer(summary(semaphore(90_000, permits=2), lock("mutex", 30_000))) == (
        "mutex gives 30,000 safe grants/s; there is no other lock to compare it with; "
        "not compared, for more may hold a key at a time: semaphore(permits=2) (2)."
    )


def test_semaphores_that_let_in_as_many_are_compared_with_each_other():
    found = answer(summary(semaphore(90_000), semaphore(30_000, server="other", backend="b")))
    assert found == "semaphore on redis gives the most safe grants: 90,000/s, 3 times semaphore on b's."


def test_a_semaphore_of_one_permit_is_compared_with_a_mutex():
    found = answer(summary(semaphore(20_000, permits=1), lock("mutex", 30_000)))
    assert found == "mutex gives the most safe grants: 30,000/s, 1.5 times semaphore(permits=1)'s."


def test_an_argument_of_another_version_is_no_reason_to_say_nothing():
    found = answer(summary(lock("semaphore", 90_000, args="permits=many"), lock("mutex", 30_000)))
    assert found.startswith("mutex gives 30,000 safe grants/s")


def test_what_keeps_nobody_out_is_not_compared():
    assert answer(summary(lock("pg-optimistic", 90_000), lock("mutex", 30_000), lock("pg-row", 20_000))) == (
        "mutex gives the most safe grants: 30,000/s, 1.5 times pg-row's; "
        "not compared, for nobody is kept out: pg-optimistic."
    )


def test_what_keeps_nobody_out_is_compared_with_its_like():
    found = answer(summary(lock("pg-optimistic", 30_000), lock("pg-serializable", 20_000)))
    assert found == "pg-optimistic gives the most safe grants: 30,000/s, 1.5 times pg-serializable's."


def test_a_guarded_lock_is_not_said_to_promise_less():
    found = answer(summary(lock("layered", 30_000), lock("mutex", 20_000)))
    assert found == "layered gives the most safe grants: 30,000/s, 1.5 times mutex's."


def test_a_lock_that_is_on_one_backend_is_not_named_with_it():
    found = answer(summary(lock("pg-row", 3_000, backend="postgres"), lock("mutex", 9_000, backend="redis")))
    assert found == "mutex gives the most safe grants: 9,000/s, 3 times pg-row's."
