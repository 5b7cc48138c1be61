"""What the answer says of runs made by hand."""

from __future__ import annotations

import pytest

from pybench.analysis.answer import answer_of
from tests.unit.support.comparisons import lock, run_of, unsafe


def answer(*cells: dict):
    return answer_of(*run_of(*cells)).text


def test_the_lock_that_is_ahead_is_the_one_to_take():
    assert answer(lock("naive", 20_000), lock("mutex", 30_000), unsafe("none")) == (
        "Take mutex: 30,000 grants/s, 1.5 times naive's."
    )


def test_no_lock_is_said_to_tie_at_a_load_at_which_another_is_thirteen_times_faster():
    rows = []
    for clients, rates in ((16, (3_400, 3_300, 3_100)), (64, (135_000, 141_000, 10_400))):
        names = ("mutex", "naive", "pg-advisory")
        rows += [lock(name, rate, spread=0.1, concurrency=clients) for name, rate in zip(names, rates, strict=True)]
    found = answer_of(*run_of(*rows))
    assert found.headline.startswith("Take mutex: statistically tied for the first place at every load")
    assert any(one.startswith("pg-advisory is behind with 64 clients: naive gives 1") for one in found.further)
    assert "can't be told apart" not in found.text


def test_where_each_lock_is_behind_somewhere_the_one_that_loses_least_is_taken_and_its_losses_named():
    found = answer_of(
        *run_of(
            lock("mutex", 1_000, keys=1), lock("naive", 500, keys=1),
            lock("mutex", 1_000, keys=9), lock("naive", 1_500, keys=9),
        )
    )  # fmt: skip
    assert found.headline.startswith("Take mutex: ahead at 1 of 2 loads (1,000 grants/s, 2")
    assert found.further[0].startswith("but mutex is behind with 9 keys: naive gives 1.5")


def test_where_throughput_ties_the_tail_decides_and_is_named_with_its_figures():
    cells = (("mutex", 1_000, 644e3), ("fair-queue", 990, 290e3), ("pg-lease", 300, 900e3))
    assert answer(*(lock(name, rate, spread=0.05, acquire_p99_us=p99) for name, rate, p99 in cells)) == (
        "Take fair-queue: tied with mutex on throughput, and fair-queue has a lower p99 than mutex: 290 ms "
        "against 644 ms; pg-lease is behind: mutex gives 3.3 times the grants."
    )


def test_where_trials_have_too_few_grants_for_a_p99_the_longest_wait_decides():
    def waits(name: str, ms: float) -> dict:
        return lock(name, 680, spread=0.05, concurrency=8, longest_wait_us=ms * 1e3)

    assert answer(waits("mutex", 1_500), waits("fair-queue", 36)) == (
        "Take fair-queue: tied with mutex on throughput, and fair-queue has a shorter longest wait than mutex: "
        "36 ms against 1.5 s."
    )
    assert "longest wait" not in answer(waits("mutex", 60), waits("fair-queue", 36)), "less than twice"
    cells = [waits(name, ms) | {"acquire_p99_us": 9e3} for name, ms in (("mutex", 1_500), ("fair-queue", 36))]
    assert "longest wait" not in answer(*cells), "a p99 speaks for itself"
    alone = [waits(name, ms) | {"concurrency": 1} for name, ms in (("mutex", 1_500), ("fair-queue", 36))]
    assert "longest wait" not in answer(*alone), "one client waits for nobody"


def starving_run(*more: dict):
    """64 clients, of whom mutex serves two and fair-queue all, and what further cells there are."""
    quick = lock("mutex", 27_000, concurrency=64, starved=[62, 62, 61, 62, 62])
    summary, trials = run_of(quick, lock("fair-queue", 9_000, concurrency=64, starved=[0] * 5), *more)
    return summary, trials.assign(grants=9_000, window_s=1.0)


def test_a_lead_that_goes_with_clients_who_get_nothing_is_none_over_a_lock_that_serves_all():
    summary, trials = starving_run()
    assert answer_of(summary, trials).text == (
        "Take fair-queue: it serves all 64 clients, where mutex starves 62 of them; "
        "but fair-queue is behind: mutex gives 3 times the grants."
    )
    trials["grants"] = 8
    assert answer_of(summary, trials).headline.startswith("Take mutex"), "chance explains as many"


def test_a_lock_that_leads_elsewhere_and_starves_clients_says_so_with_who_serves_all():
    further = {"concurrency": 64, "keys": 1_000, "starved": [0] * 5}
    said = answer_of(*starving_run(lock("mutex", 90_000, **further), lock("fair-queue", 45_000, **further)))
    assert said.headline == "Take mutex: ahead at 2 of 2 loads (90,000 grants/s, 2 times fair-queue's with 1,000 keys)"
    assert said.further[0] == "but mutex starves 62 of 64 clients with 1 key, and fair-queue serves all of them"


def test_a_lock_that_starves_clients_is_not_taken_beside_one_that_starves_none():
    def said(*starved: list[int]) -> str:
        names = (("mutex", 1_000), ("fair-queue", 990))
        cells = [
            lock(name, rate, spread=0.05, concurrency=64, starved=counts)
            for (name, rate), counts in zip(names, starved, strict=True)
        ]
        summary, trials = run_of(*cells)
        return answer_of(summary, trials.assign(grants=9_000, window_s=1.0)).text

    assert said([30] * 5, [0] * 5) == (
        "Take fair-queue: tied with mutex on throughput, and fair-queue starves no client, and mutex starves some."
    )
    assert "fair-queue starves fewer clients than mutex: 3 against 50" in said([50, 49, 50, 50, 48], [3, 0, 2, 3, 0])
    assert said([5, 0, 3, 5, 4], [0] * 5).startswith("Take mutex or") is False
    assert "starves no client" not in said([5, 0, 3, 5, 4], [0] * 5), "few of 64, and not in each trial"


def test_a_promise_decides_where_all_figures_tie_and_is_a_remark_where_they_do_not():
    tied = answer(lock("naive", 1_000, spread=0.1), lock("mutex", 1_050, spread=0.1))
    assert tied == "Take mutex: tied with naive on throughput, and mutex promises more than naive."
    assert answer(lock("naive", 2_000), lock("mutex", 1_000)) == (
        "Take naive: 2,000 grants/s, 2 times mutex's; but mutex promises more than naive."
    )


def test_too_few_trials_are_said_to_be_that():
    few = lock("naive", 1_000, trials=1), lock("mutex", 2_000, trials=1)
    assert answer(*few) == (
        "Take mutex: speed was not compared (1 trial per cell, and a comparison needs 4), "
        "and mutex promises more than naive."
    )
    assert answer(lock("mutex", 1_000, args="a=1", trials=3), lock("mutex", 2_000)) == (
        "No clear winner among mutex(a=1) and mutex: 3 trials per cell, and a comparison needs 4."
    )
    assert answer(lock("mutex", 1_000, args="a=1", trials=4), lock("mutex", 2_000)).startswith("Take mutex: 2,000")


def test_locks_that_tie_in_everything_are_left_side_by_side():
    found = answer(lock("mutex", 1_000, spread=0.1, args="a=1"), lock("mutex", 1_050, spread=0.1))
    assert (
        found
        == "No clear winner among mutex(a=1) and mutex: 5 trials per cell show no statistically significant difference."
    )


def test_loads_are_not_compared_with_each_other():
    found = answer(lock("naive", 90_000, keys=1_000), lock("mutex", 100, keys=1))
    assert found == "No two locks are ranked at the same load, so no locks can be compared."


def test_the_only_lock_is_compared_with_none():
    found = answer(lock("mutex", 50, keys=1), lock("mutex", 4_321, keys=10))
    assert found == "mutex gives up to 4,320 safe grants/s with 10 keys; there is no other lock to compare it with."


def test_the_only_ranked_lock_is_not_called_the_only_safe_one():
    unfinished = lock("naive", 1_000, trials=0, grants_per_s=None, safe_grants_per_s=None)
    found = answer(lock("mutex", 1_234), unsafe("none"), unfinished)
    assert found == (
        "Take mutex: no other lock of this run is ranked; mutex gives 1,230 safe grants/s; "
        "not ranked (no complete trial): naive."
    )


def test_a_lock_that_was_unsafe_anywhere_is_not_taken():
    found = answer(lock("mutex", 500), lock("naive", 900), lock("mutex", 500, keys=2), unsafe("naive", keys=2))
    assert found.startswith("Take mutex: every other ranked lock was unsafe at some load")
    assert "but mutex is behind with 1 key: naive gives 1.8" in found


def test_nothing_safe_a_void_run_and_an_empty_one():
    assert answer(unsafe("none")) == ("No lock can be recommended: no lock of this run is ranked.")
    void = lock("mutex", 1_000, verdict="VOID", safe_grants_per_s=None)
    assert answer(void) == "This run proves nothing: its control was not caught."
    summary, trials = run_of(lock("mutex", 1))
    assert answer_of(summary.iloc[:0], trials.iloc[:0]).text == "Nothing was measured."


def test_locks_are_named_by_arguments_and_where_they_need_it_by_backend():
    one, other = (
        lock("redlock", rate, args="nodes=5", backend=backend) for rate, backend in ((3_000, "a"), (2_000, "b"))
    )
    assert answer(one, other).startswith(
        "Take redlock(nodes=5) on a: 3,000 grants/s, 1.5 times redlock(nodes=5) on b's"
    )
    assert answer(lock("pg-row", 3_000, backend="b"), lock("mutex", 9_000)).startswith(
        "Take mutex: 9,000 grants/s, 3 times pg-row's"
    )


def test_many_locks_are_counted_and_not_listed():
    found = answer(*(lock("mutex", 1_000, spread=0.1, args=f"n={n}") for n in range(6)))
    assert found == "No clear winner among 6 locks: 5 trials per cell show no statistically significant difference."


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("semaphore", "", "not ranked (several clients may hold a key at once): semaphore (4)"),
        ("semaphore", "permits=2", "not ranked (several clients may hold a key at once): semaphore(permits=2) (2)"),
        ("pg-optimistic", "", "not ranked (the lock keeps no client out): pg-optimistic"),
    ],
)
def test_what_lets_more_in_is_not_ranked_beside_what_lets_in_one(name, args, reason):
    found = answer_of(*run_of(lock(name, 90_000, args=args), lock("mutex", 30_000), lock("pg-row", 20_000)))
    assert found.headline == "Take mutex: 30,000 grants/s, 1.5 times pg-row's"
    assert found.further == (reason,)


def test_what_lets_in_as_many_is_compared():
    assert answer(lock("semaphore", 90_000), lock("semaphore", 30_000, backend="b")).startswith(
        "Take semaphore on redis"
    )
    one = answer(lock("semaphore", 20_000, args="permits=1"), lock("mutex", 30_000))
    assert one.startswith("Take mutex: 30,000 grants/s, 1.5 times semaphore(permits=1)'s")
    assert answer(lock("pg-optimistic", 30_000), lock("pg-serializable", 20_000)).startswith("Take pg-optimistic")


def test_an_argument_of_another_version_is_no_reason_to_say_nothing():
    assert "semaphore" in answer(lock("semaphore", 90_000, args="permits=many"), lock("mutex", 30_000))


def open_cell(name, p99, *, grants=4_000.0, rate_per_s=4_000.0, **fields: object):
    return lock(name, grants, rate_per_s=rate_per_s, acquire_p99_us=p99, concurrency=64, **fields)


def test_in_an_open_loop_the_least_p99_wins_though_another_grants_a_little_more():
    assert answer(open_cell("naive", 3_400.0, grants=4_003.0), open_cell("mutex", 2_100.0)) == (
        "Take mutex: p99 response 2.1 ms, naive's is 3.4 ms."
    )


def test_in_an_open_loop_a_lock_that_does_not_keep_up_is_behind_however_soon_it_answers():
    assert answer(open_cell("naive", 90.0, grants=3_000.0), open_cell("mutex", 2_100.0)) == (
        "Take mutex: 4,000 grants/s, 1.33 times naive's."
    )


def test_that_the_lock_to_take_does_not_keep_up_either_is_said_where_it_falls_shortest():
    rows = [
        open_cell(name, 90.0, grants=grants, rate_per_s=rate_per_s)
        for rate_per_s, grants_of in ((1e3, (1_000, 1_000)), (2e3, (1_900, 1_300)), (4e3, (2_000, 1_400)))
        for name, grants in zip(("mutex", "naive"), grants_of, strict=True)
    ]
    found = answer_of(*run_of(*rows))
    assert found.headline.startswith("Take mutex: ")
    assert found.further[-1] == (
        "but mutex does not keep up with the arrivals with rate 4000/s (and at 1 further load): "
        "4,000/s offered, 2,000/s granted, so waits grow without bound"
    )
    assert "does not keep up" not in answer_of(*run_of(*rows[:2])).text


def test_in_an_open_loop_where_trials_have_too_few_grants_for_a_p99_the_longest_wait_places_the_locks():
    def waits(name: str, ms: float) -> dict:
        return open_cell(name, None, longest_wait_us=ms * 1e3)

    found = answer_of(*run_of(waits("mutex", 2_100), waits("fair-queue", 104)))
    assert found.headline == "Take fair-queue: longest wait 104 ms, mutex's is 2.1 s"
    assert answer(waits("mutex", 150), waits("fair-queue", 104)).startswith("Take fair-queue") is False
    one_has_it = answer_of(*run_of(open_cell("a", None, longest_wait_us=9e3), open_cell("b", 2e3, longest_wait_us=3e3)))
    assert one_has_it.headline == "Take b: longest wait 3 ms, a's is 9 ms"


def test_a_p99_that_only_all_trials_together_have_places_no_lock():
    pooled = {"longest_wait_us": 2e6, "acquire_p99_pooled": True}
    summary, trials = run_of(open_cell("a", 900e3, **pooled), open_cell("b", 70e3, **pooled | {"longest_wait_us": 1e5}))
    trials["acquire_p99_us"] = None
    assert answer_of(summary, trials).headline == "Take b: longest wait 100 ms, a's is 2 s"


def test_who_wins_by_throughput_and_lets_clients_wait_longer_says_so():
    cells = (("mutex", 2_000, 664e3), ("fair-queue", 1_000, 35e3))
    said = answer(*(lock(name, rate, acquire_p99_us=p99) for name, rate, p99 in cells))
    assert said == (
        "Take mutex: 2,000 grants/s, 2 times fair-queue's; "
        "but mutex has a p99 response above that of fair-queue: 664 ms against 35 ms."
    )
    near = answer(lock("mutex", 2_000, acquire_p99_us=60e3), lock("fair-queue", 1_000, acquire_p99_us=35e3))
    assert "p99" not in near, "less than twice"


def test_a_further_load_is_one_where_the_same_is_true_of_the_same_locks():
    def at(keys: int, **p99: float) -> list[dict]:
        return [
            lock(name.replace("_", "-"), 1_000, keys=keys, spread=0.05, acquire_p99_us=us) for name, us in p99.items()
        ]

    told = answer(
        *at(1, mutex=644e3, fair_queue=290e3, pg_row=291e3), *at(2, mutex=500e3, fair_queue=200e3, pg_row=501e3)
    )
    assert "and at" not in told
    same = answer(*at(1, mutex=644e3, fair_queue=290e3), *at(2, mutex=500e3, fair_queue=200e3))
    assert "fair-queue has a lower p99 than mutex: 200 ms against 500 ms with 2 keys (and at 1 further load)" in same


def test_a_lock_that_was_granted_nothing_somewhere_is_not_taken_beside_one_that_was():
    none_at_all = lock("redlock", 0.0, keys=9, verdict="UNDECIDED", safe_grants_per_s=None) | {"grants": 0}
    said = answer(lock("multilock", 1_000), lock("redlock", 1_010), lock("multilock", 900, keys=9), none_at_all)
    assert said.startswith("Take multilock: ")
    assert "redlock got no grant with 9 keys" in said
    only_there = answer(lock("multilock", 1_000, keys=9), none_at_all, lock("redlock", 1_010, keys=1))
    assert "but redlock got no grant" not in only_there


def test_that_the_lock_to_take_was_granted_nothing_or_too_little_somewhere_is_said():
    thin = lock("mutex", 5.0, keys=9, verdict="UNDECIDED", safe_grants_per_s=None) | {"grants": 3}
    said = answer(lock("mutex", 2_000), lock("naive", 1_000), thin, lock("naive", 4.0, keys=9))
    assert "but mutex has too little evidence for SAFE with 9 keys" in said


def test_who_gives_up_is_not_better_for_those_it_serves():
    """Of 1,000 acquires 996 are refused, and the rest wait for nobody."""
    cells = (("none", 1_000, 1e3, [0] * 5), ("full-jitter", 3_000, 90e3, [50] * 5))
    rows = [
        lock("mutex", rate, retry=retry, concurrency=64, acquire_p99_us=p99, starved=starved)
        for retry, rate, p99, starved in cells
    ]
    summary, trials = run_of(*rows)
    trials = trials.assign(grants=9_000, timeouts=0, window_s=1.0, refused=0)
    trials.loc[trials["cell"] == "0", "refused"] = 2_000_000
    said = answer_of(summary, trials).text
    assert said.startswith("Take retry full-jitter: 3,000 grants/s, 3 times")
    assert "p99" not in said


def test_where_throughput_ties_a_policy_that_refuses_what_is_asked_is_not_taken():
    rows = [lock("mutex", 1_000, retry=retry, spread=0.05, concurrency=8) for retry in ("none", "fixed")]
    summary, trials = run_of(*rows)
    trials = trials.assign(grants=900, timeouts=0, refused=0)
    trials.loc[trials["cell"] == "0", "refused"] = 99_000
    assert answer_of(summary, trials).text == (
        "Take retry fixed: tied with retry none on throughput, and retry fixed refuses fewer acquires than retry none: "
        "0 % against 99.1 %."
    )
    trials.loc[trials["cell"] == "0", "refused"] = 60
    assert "refuses" not in answer_of(summary, trials).text, "near the limit"


def test_those_that_are_taken_come_first_and_others_beside_them_are_counted():
    p99 = {"mutex": 40e3, "fenced": 290e3, "notify": 291e3, "fair-queue": 1e3, "redlock": 1.01e3}
    cells = [
        lock(name, 1_000, keys=keys, spread=0.05, concurrency=8, acquire_p99_us=us if keys == 1 else 1e3)
        for keys in (1, 2)
        for name, us in p99.items()
    ]
    assert "a lower p99" in answer(*cells)


def test_each_lock_that_a_figure_drops_is_named_though_each_was_dropped_at_another_load():
    def at(clients: int, **p99: float) -> list[dict]:
        return [lock(name, 1_000, concurrency=clients, spread=0.05, acquire_p99_us=us) for name, us in p99.items()]

    said = answer(*at(1, mutex=40, fenced=90, notify=41), *at(8, mutex=4_000, fenced=4_100, notify=14_000))
    assert "than notify: 4 ms against 14 ms with 8 clients" in said or "than notify: 4.1 ms against 14 ms" in said
    assert "than fenced: 41 µs against 90 µs with 1 client" in said


def test_a_lock_that_no_tie_is_broken_against_is_named_where_one_of_the_taken_is_better():
    """At 1 client `mutex` lies between: there nobody is better than all that are left out."""
    p99 = {1: {"mutex": 52, "pg-row": 67, "fair-queue": 148}, 16: {"mutex": 14e3, "pg-row": 2.6e3, "fair-queue": 2.5e3}}
    cells = [
        lock(name, 1_000, concurrency=clients, spread=0.12, acquire_p99_us=us)
        for clients, of in p99.items()
        for name, us in of.items()
    ]
    said = answer_of(*run_of(*cells)).headline
    assert said.startswith("Take pg-row: ")
    assert "with 16 clients" in said
    assert "than fair-queue: 67 µs against 148 µs with 1 client" in said


def test_of_one_lock_the_retry_policies_are_compared():
    slow = lock("mutex", 1_000, retry="none"), lock("mutex", 2_000, retry="fixed(1ms)")
    assert answer(*slow, unsafe("none", retry="none")) == (
        "Take retry fixed(1ms): 2,000 grants/s, 2 times retry none's."
    )


def test_closed_and_open_loops_of_one_run_are_each_compared_by_their_own():
    cells = open_cell("a", 100.0), open_cell("b", 300.0)
    closed = open_cell("a", 9.0, rate_per_s=None, grants=800.0), open_cell("b", 9.0, rate_per_s=None)
    assert answer(*cells, *closed) == (
        "Take b: ahead at 1 of 2 loads (4,000 grants/s, 5 times a's with a closed loop); "
        "but b is behind with rate 4000/s: p99 response 300 µs, a's is 100 µs."
    )


def test_with_too_few_trials_no_lock_is_called_tied_at_any_number_of_loads():
    loads = [lock(name, 1_000, concurrency=clients, trials=3) for clients in (1, 8) for name in ("mutex", "naive")]
    told = answer(*loads)
    assert told.startswith(
        "Take mutex: speed was not compared (3 trials per cell, and a comparison needs 4), and mutex "
    )
    assert "tied" not in told
