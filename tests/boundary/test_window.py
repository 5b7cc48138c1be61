"""What a trial counts where its window opens and closes, and that the window opens on a running system."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pybench import _core
from pybench.analysis.histograms import lowest_of
from tests.core_trials import MS, fixed
from tests.waiting import wait_until

HOT = {"concurrency": 48, "hold": fixed(1), "warmup_ns": 400 * MS, "duration_ns": 600 * MS}

# Says when the window is open, and goes on until it is told to stop.
STANDS_STILL = """
import json, sys, threading
from pybench import _core
from pybench.analysis.histograms import lowest_of
trial = _core.Trial(json.loads(sys.argv[1]))
results = []
thread = threading.Thread(target=lambda: results.append(trial.run()))
thread.start()
while trial.progress().phase != "measuring":
    thread.join(0.01)
print("measuring", flush=True)
sys.stdin.readline()
trial.stop()
thread.join()
print(json.dumps(results[0].totals))
"""


def run(spec):
    return _core.Trial(spec).run()


def values_of(result, phase, outcome):
    """The values of a histogram in ns, one a sample; none where nothing was recorded."""
    for row in result.histograms:
        if (row.phase, row.outcome) == (phase, outcome):
            values, counts = _core.histogram_buckets(row.hdr)
            return np.repeat(values, counts.astype(np.int64))
    return np.array([])


@pytest.mark.parametrize("threads", [1, 2])
def test_who_holds_when_the_warm_up_ends_goes_on_holding(make_spec, threads):
    """A drain would have taken the lock away, and the window would have begun with a grant."""
    result = run(make_spec(hold=fixed(60_000), ttl_ms=600_000, warmup_ns=200 * MS, threads=threads))
    totals = result.totals
    assert (totals["all_grants"], totals["grants"], totals["unfinished"]) == (1, 0, 7)
    waits = values_of(result, "response", "waiting")
    assert len(waits) == 7
    assert waits.min() >= totals["window_ns"], "all have waited since the warm-up"
    assert totals["longest_wait_ns"] >= totals["window_ns"] == 100 * MS
    assert totals["nominal_hold_ns"] == totals["window_ns"], "the key is held all the time"
    assert (np.sort(result.clients["wait_max_ns"])[1:] >= totals["window_ns"]).all()


def test_the_first_steps_of_a_hot_key_are_like_the_later_ones(make_spec):
    steps = np.array([run(make_spec(seed=seed, **HOT)).timeline["grants"] for seed in range(4)]).sum(axis=0)
    assert len(steps) == 6
    assert 0.5 < steps[0] / steps[1:].mean() < 1.5, "what begins with empty queues grants more, or fewer, at first"


def test_a_wait_that_the_window_does_not_see_the_end_of_is_a_sample_of_at_least_so_long(make_spec):
    result = run(make_spec(hold=fixed(60_000), ttl_ms=600_000, warmup_ns=0))
    totals = result.totals
    assert (totals["grants"], totals["unfinished"]) == (1, 7)
    waits = values_of(result, "response", "waiting")
    assert len(waits) == 7
    # Buckets are 0.1 % wide.
    assert waits.max() <= totals["window_ns"] * 1.001
    assert lowest_of(waits.max()) <= totals["longest_wait_ns"] <= waits.max(), "a bound that holds"
    assert list(waits) == list(values_of(result, "service", "waiting")), "in a closed loop the two are one"


def test_samples_are_of_acquires_that_were_due_in_the_window(make_spec):
    result = run(make_spec(**HOT))
    totals = result.totals
    responses = values_of(result, "response", "granted")
    assert totals["grants"] - 48 <= len(responses) <= totals["grants"]
    assert responses.max() <= totals["window_ns"] * 1.001, "who was due before has waited longer"
    assert len(values_of(result, "response", "waiting")) == totals["unfinished"] <= 48
    assert result.timeline["grants"].sum() == totals["grants"], "a grant is in the step in which it happened"
    assert totals["contended_grants"] <= totals["grants"]
    assert totals["refused_attempts"] <= totals["attempts"]
    assert result.clients["attempts"].sum() == totals["attempts"]


def test_arrivals_that_still_queue_when_the_window_closes_have_waited(make_spec):
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 1_000.0, "max_in_flight": 1_000}
    result = run(make_spec(loop=loop, hold=fixed(60_000), ttl_ms=600_000, duration_ns=200 * MS))
    totals = result.totals
    assert (totals["arrivals"], totals["drops"], totals["all_grants"]) == (200, 0, 1)
    # The warm-up's arrivals wait, too.
    assert len(values_of(result, "response", "waiting")) == totals["unfinished"] >= 200
    assert totals["longest_wait_ns"] > totals["window_ns"]


def test_a_trial_that_is_stopped_in_its_warm_up_has_no_window_and_gives_back(make_spec):
    trial = _core.Trial(make_spec(hold=fixed(1), warmup_ns=60_000 * MS))
    trial.stop()
    result = trial.run()
    assert result.stopped
    assert result.totals["window_ns"] == result.totals["grants"] == result.totals["abandoned"] == 0
    assert len(result.timeline["grants"]) == 0


def of_a_generator_that_stood(spec, seconds, times=1):
    """The totals of a trial whose process was stopped `times`, and for how many nanoseconds it was at least."""
    process = subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL, json.dumps(spec)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "measuring\n"
        status = Path(f"/proc/{process.pid}/stat")
        shortest = math.inf
        for _ in range(times):
            os.kill(process.pid, signal.SIGSTOP)
            wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "it stands still")
            began = time.monotonic_ns()
            time.sleep(seconds)
            shortest = min(shortest, time.monotonic_ns() - began)
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.05)
        totals = json.loads(process.communicate("stop\n")[0])
    return totals, shortest


def test_a_generator_that_stood_still_says_for_how_long(make_spec):
    spec = make_spec(keys=8, hold=fixed(1), duration_ns=60_000 * MS)
    totals, stood_still = of_a_generator_that_stood(spec, 0.3)
    # It may have meant to sleep for 20 ms of that.
    assert totals["longest_stall_ns"] > stood_still - 25 * MS


def test_no_key_counts_as_stalled_while_the_generator_stood_still(make_spec):
    spec = make_spec(ttl_ms=50, reply_timeout_ns=50 * MS, duration_ns=60_000 * MS)
    totals, _ = of_a_generator_that_stood(spec, 0.5, times=10)
    assert totals["longest_stall_ns"] > 400 * MS, "longer than a key may be free"
    assert totals["stalls"] == 0
