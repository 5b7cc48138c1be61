"""What a trial of the core measures on a real server."""

from __future__ import annotations

import base64
import os
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from pybench import _core
from tests.core_trials import MS, fixed, run_for_grants, running
from tests.redis_client import connect
from tests.waiting import wait_until


def run(spec):
    return _core.Trial(spec).run()


def test_a_mutex_is_granted_again_and_again_and_never_twice(make_spec):
    result = run_for_grants(make_spec(hold=fixed(1)), 20)
    totals = result.totals
    assert 20 < totals["grants"] <= totals["window_ns"] / MS + 1, "one key, held for 1 ms at a time"
    assert totals["contended_grants"] > 0
    assert totals["double_grants"] == totals["lease_overruns"] == 0
    assert not result.violations


@pytest.mark.parametrize("threads", [1, 2])
def test_of_two_queues_that_acknowledge_places_one_keeps_their_order(make_spec, threads):
    hot = {"concurrency": 16, "hold": fixed(1), "threads": threads}
    # Under the same names: neither takes what the other left there for its own.
    stream, queue = (run_for_grants(make_spec(strategy=name, **hot), 100) for name in ("fair", "fair-queue"))
    assert stream.totals["fifo_inversions"] > 0
    assert queue.totals["fifo_inversions"] == 0
    assert queue.totals["grants"] > 20
    assert stream.totals["double_grants"] == queue.totals["double_grants"] == 0
    assert stream.violations == queue.violations == [], "what is only counted is not told as a violation"


def test_no_lock_at_all_is_caught(make_spec):
    # Without a warm-up, so that the holds of all violations are measured.
    result = run_for_grants(make_spec(strategy="none", hold=fixed(1), warmup_ns=0), 200)
    assert result.totals["double_grants"] > 100
    assert len(result.violations) == 100, "the first hundred are told in full"
    first = result.violations[0]
    assert first["kind"] == "double-grant"
    assert first["first_granted_ns"] <= first["second_granted_ns"] == first["at_ns"]
    # A busy machine makes holds longer, and overlaps with them: none is longer than the longest hold.
    holds = [_core.histogram_buckets(row.hdr)[0][-1] for row in result.histograms if row.phase == "hold"]
    assert 0 < first["overlap_ns"] <= max(holds)
    assert first["key"] == f"{make_spec()['key_prefix']}{{0}}"


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_share_clients_keys_and_the_checker(make_spec, threads):
    caught = run(make_spec(strategy="none", hold=fixed(1), threads=threads))
    assert caught.totals["double_grants"] > 100
    kept = run(make_spec(hold=fixed(1), threads=threads))
    assert kept.totals["double_grants"] == 0
    assert kept.totals["contended_grants"] > 0
    assert len(kept.clients["grants"]) == 8
    assert kept.clients["grants"].sum() == kept.totals["grants"]


def test_a_hold_beyond_the_lease_is_an_overrun_and_no_double_grant(make_spec):
    result = run(make_spec(ttl_ms=20, hold=fixed(35), duration_ns=400 * MS))
    assert result.totals["lease_overruns"] > 0
    assert result.totals["double_grants"] == result.totals["double_grants_after_overrun"] == 0
    assert result.totals["outlived"] >= result.totals["lost"] > 0
    violation = result.violations[0]
    assert violation["kind"] == "lease-overrun"
    assert violation["first_until_ns"] <= violation["second_granted_ns"]


def test_a_holder_that_stops_with_its_lease_overruns_nothing(make_spec):
    result = run(make_spec(ttl_ms=20, hold=fixed(35), duration_ns=400 * MS, after_lease="stop"))
    assert result.totals["grants"] > 5
    assert result.totals["lease_overruns"] == 0


def test_a_naive_lock_that_is_outlived_is_deleted_by_the_wrong_hand(make_spec):
    result = run(make_spec(strategy="naive", ttl_ms=1_000, hold=fixed(1_400), duration_ns=5_000 * MS, warmup_ns=0))
    assert result.totals["double_grants_after_overrun"] > 0
    assert result.totals["double_grants"] == 0, "what naive promises, while nobody outlives the lease, it keeps"


def test_an_open_loop_keeps_its_rate_and_counts_from_the_due_time(make_spec):
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 2_000.0, "max_in_flight": 1_000}
    result = run(make_spec(loop=loop, keys=1_000, duration_ns=500 * MS))
    assert result.totals["arrivals"] == pytest.approx(1_000, abs=2)
    assert result.totals["grants"] + result.totals["unfinished"] >= 990
    phases = {row.phase for row in result.histograms}
    assert {"queue", "service", "response", "send_delay"} <= phases


def test_an_open_loop_beyond_what_the_lock_can_do_drops_and_says_so(make_spec):
    loop = {"kind": "open", "arrivals": "poisson", "rate_per_s": 5_000.0, "max_in_flight": 20}
    result = run(make_spec(loop=loop, hold=fixed(2), duration_ns=300 * MS))
    assert result.totals["drops"] > 500
    assert result.totals["grants"] <= 150


def test_a_refusal_is_no_grant_and_an_attempt_no_acquisition(make_spec):
    retry = {**make_spec()["retry"], "kind": "none"}
    result = run(make_spec(retry=retry, hold=fixed(5), think=fixed(1)))
    totals = result.totals
    assert totals["refused"] > totals["grants"]
    assert totals["attempts"] - totals["refused_attempts"] == pytest.approx(totals["grants"], abs=8)
    outcomes = {row.outcome: row.count for row in result.histograms if row.phase == "response"}
    # A wait counts as an outcome where it was due: of each client one may have been due before the window opened.
    for outcome, counted in (("granted", totals["grants"]), ("refused", totals["refused"])):
        assert 0 <= counted - outcomes.pop(outcome, 0) <= 8
    # Those that the window left unfinished, at most one of each client.
    assert outcomes.pop("waiting", 0) <= 8
    assert not outcomes


def test_waiting_too_long_is_a_timeout(make_spec):
    retry = {**make_spec()["retry"], "max_wait_ns": 10 * MS}
    result = run(make_spec(retry=retry, hold=fixed(50), duration_ns=300 * MS))
    assert result.totals["timeouts"] > 10
    assert result.totals["refused"] == 0


def test_histograms_are_read_alike_by_an_independent_decoder(make_spec):
    result = run(make_spec(keys=100))
    rows = [row for row in result.histograms if row.phase == "response"]
    for row in rows:
        values, counts = _core.histogram_buckets(row.hdr)
        other = HdrHistogram.decode(base64.b64encode(row.hdr))
        assert counts.sum() == row.count == other.get_total_count()
        assert np.all(np.diff(values.astype(np.int64)) > 0)
        assert values[-1] == pytest.approx(other.get_max_value(), rel=0.002)
    merged = _core.merge_histograms([row.hdr for row in rows] * 2)
    assert _core.histogram_buckets(merged)[1].sum() == 2 * sum(row.count for row in rows)
    with pytest.raises(ValueError, match="HdrHistogram"):
        _core.histogram_buckets(b"not a histogram")
    with pytest.raises(ValueError, match="nothing"):
        _core.merge_histograms([])


def test_the_time_line_adds_up_to_the_grants(make_spec):
    result = run(make_spec(duration_ns=500 * MS, keys=100))
    assert list(result.timeline["start_ns"]) == [step * 100 * MS for step in range(5)]
    assert result.timeline["grants"].sum() == pytest.approx(result.totals["grants"], rel=0.01)
    assert np.all(result.timeline["p50_ns"] <= result.timeline["p99_ns"])


def test_warm_up_is_not_measured_but_its_violations_count(make_spec):
    result = run(make_spec(strategy="none", hold=fixed(1), warmup_ns=300 * MS, duration_ns=50 * MS))
    assert result.totals["double_grants"] > 4 * result.totals["grants"]
    assert result.totals["all_grants"] > 4 * result.totals["grants"]


def test_the_same_seed_gives_the_same_keys_and_tokens(make_spec, server):
    """Seen from the server: one client alone, so that nothing but the seed decides what it sends."""

    def commands(seed):
        spec = make_spec(seed=seed, concurrency=1, keys=50, hold=fixed(1), warmup_ns=0)
        with connect(server.endpoint) as client, client.monitor() as monitor:
            run_for_grants(spec, 25)
            sent = []
            while len(sent) < 20:
                words = monitor.next_command()["command"].split()
                if words[0] == "SET":
                    sent.append((words[1], words[2]))
        return sent

    first = commands(5)
    assert commands(5) == first
    assert commands(6) != first
    assert len(set(first)) == 20, "a fresh token for every attempt"


def test_how_late_a_retry_was_is_lag_too(make_spec):
    result = run(make_spec())
    late = next(row for row in result.histograms if row.phase == "send_delay")
    assert late.count >= 0.5 * result.totals["refused_attempts"] > 5, "nothing else is timed here: no hold, no pause"


def test_where_the_server_is_the_limit_a_retry_goes_out_with_the_next_answers(make_spec):
    shared = {"kind": "shared", "count": 4}
    totals = run(make_spec(concurrency=64, keys=500, connections=shared, duration_ns=1_000 * MS)).totals
    assert totals["refused_attempts"] > 100
    own_writes = totals["writes"] - totals["reads"]
    assert own_writes < 0.6 * totals["refused_attempts"], "each would have a write of its own otherwise"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core there is no other to be bound to")
def test_a_thread_keeps_to_its_core(make_spec):
    bound = max(os.sched_getaffinity(0))
    seen = set()

    def look():
        for status in Path("/proc/self/task").glob("*/status"):
            with suppress(OSError):  # A thread that has ended meanwhile.
                seen.add(re.search(r"Cpus_allowed_list:\s*(\S+)", status.read_text())[1])
        return str(bound) in seen

    with running(make_spec(cores=[bound], duration_ns=60_000 * MS)) as trial:
        wait_until(look, "a thread is bound to the core")
        trial.stop()
    assert len(seen) > 1, "the others are free"


def test_cores_are_named_for_all_threads_or_for_none(make_spec):
    with pytest.raises(ValueError, match="cores"):
        _core.Trial(make_spec(threads=2, cores=[0]))


def test_nothing_is_left_on_the_server_by_a_lock_that_gives_back(make_spec, server):
    spec = make_spec(keys=20, hold=fixed(1))
    assert run(spec).totals["abandoned"] == 0
    with connect(server.endpoint) as client:
        assert list(client.scan_iter(match=spec["key_prefix"] + "*")) == []
