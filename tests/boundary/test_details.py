"""What the core counts of single clients, steps and servers, against its own totals and the servers' counts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from pybench import _core
from pybench.analysis import histograms, stats
from pybench.servers import Server, read_figures
from pybench.servers.redis import binaries, supervisor
from tests.core_trials import MS, fixed, run_for_grants, trial_spec_of

NO_RETRY = {
    "kind": "none",
    "base_ns": MS,
    "factor": 2.0,
    "cap_ns": MS,
    "max_attempts": None,
    "max_wait_ns": 10_000 * MS,
}
HOT: dict[str, Any] = {"concurrency": 12, "keys": 2, "warmup_ns": 0}
FAR_MS = 30


@pytest.fixture(scope="module")
def three(server: Server) -> Iterator[list[Server]]:
    binary = binaries.find("auto")
    started = [supervisor.start(binary) for _ in range(2)]
    yield [server, *(Server(one.endpoint, facts, binary.source, one.pid) for one, facts in started)]
    for one, _ in started:
        one.stop()


def quorum_spec(three: list[Server], name: str, strategy: str, **fields: Any) -> Any:  # noqa: ANN401 - a spec
    rtts = fields.pop("rtts", (0, 0, 0))
    servers = [
        {**one.core_spec(), "compare_and_delete": "script", **({"rtt": fixed(rtt)} if any(rtts) else {})}
        for one, rtt in zip(three, rtts, strict=True)
    ]
    return trial_spec_of(servers, **{**HOT, "strategy": strategy, "key_prefix": f"{name}:", **fields})


def voted(node: Any) -> int:  # noqa: ANN401 - its numbers
    return int(node["granted"] + node["refused"] + node["errors"])


def reply_us(node: Any, q: float) -> float:  # noqa: ANN401 - its histogram
    quantile = stats.quantile(*histograms.merged([node["reply_hdr"]]), q)
    assert quantile is not None, "there are enough replies"
    return quantile / 1e3


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sums_over_clients_and_steps_are_the_totals_of_the_trial(make_spec, threads):
    result = run_for_grants(make_spec(**{**HOT, "warmup_ns": 20 * MS}, hold=fixed(0.2), threads=threads), 200)
    totals, clients = result.totals, result.clients
    assert len(clients["grants"]) == 12
    assert clients["grants"].sum() == totals["grants"] > 200
    assert clients["attempts"].sum() == totals["attempts"]
    granted = [row for row in result.histograms if (row.phase, row.outcome) == ("response", "granted")]
    assert clients["waits"].sum() == sum(row.count for row in granted)
    assert result.commands["commands"].sum() == totals["commands"] > 0
    length = len(result.commands["commands"])
    assert abs(length * 10 * MS - totals["window_ns"]) <= 10 * MS, "a step takes 10 ms"
    for q in ("p50", "p90", "p99"):
        assert (clients[f"wait_{q}_ns"] <= clients["wait_max_ns"]).all()


def test_refusals_are_those_of_each_client(make_spec):
    result = run_for_grants(make_spec(**HOT, hold=fixed(2), retry=NO_RETRY), 30)
    totals = result.totals
    assert result.clients["refused"].sum() == totals["refused"] + totals["timeouts"] > 0
    assert result.clients["errors"].sum() == totals["errors"] + totals["unknown"] == 0


@pytest.mark.parametrize(
    ("strategy", "args"),
    [
        ("redlock", {"nodes": 3}),
        ("redlock", {"nodes": 3, "fanout": "sequential"}),
        ("multilock", {"nodes": 3}),
        ("redisson-redlock", {"nodes": 3}),
        ("redisson-multilock", {"nodes": 3}),
    ],
    ids=lambda given: given if isinstance(given, str) else given.get("fanout", ""),
)
def test_votes_of_each_server_are_what_it_was_asked(three, request, strategy, args):
    before = [read_figures(one).calls for one in three]
    result = run_for_grants(quorum_spec(three, request.node.name, strategy, args=args, hold=fixed(2)), 60)
    totals = result.totals
    assert sum(map(voted, result.nodes)) > 60
    called = [read_figures(one).calls for one in three]
    command = "evalsha" if strategy == "multilock" else "set"
    for node, was, now in zip(result.nodes, before, called, strict=True):
        # Who asks at the end of the window gets its reply after it; the script of a release is a call too.
        carried_out = now.get(command, 0) - was.get(command, 0)
        assert voted(node) <= min(node["asked"], carried_out)
        # A trial that is stopped does not wait long for its last replies. Where a server stands still, its connections
        # fill up and are closed, and then calls to it do not even leave.
        assert node["asked"] - voted(node) <= 3 * HOT["concurrency"] or totals["reconnects"]
        assert node["errors"] == 0
        if command == "set":
            assert carried_out - node["asked"] <= 3 * HOT["concurrency"]
    if strategy in ("redlock", "multilock") and not args.get("fanout"):
        attempts = {node["asked"] for node in result.nodes}
        assert all(abs(asked - totals["attempts"]) <= HOT["concurrency"] for asked in attempts)
    decided = sum(node["decided"] for node in result.nodes)
    # A timeout decides a few grants where a server is slow.
    assert 0.8 * totals["grants"] <= decided <= totals["grants"]
    _, counts = histograms.merged([node["validity_hdr"] for node in result.nodes])
    assert counts.sum() == decided


def test_a_far_server_votes_late_and_decides_nothing(three, request):
    # A hold longer than the round trip: otherwise calls to the far server pile up until its connection is closed.
    fields = {"args": {"nodes": 3}, "keys": 1_000, "rtts": (0, 0, FAR_MS), "hold": fixed(2 * FAR_MS)}
    near, second, far = run_for_grants(quorum_spec(three, request.node.name, "redlock", **fields), 60).nodes
    assert reply_us(far, 0.5) >= FAR_MS * 999 > reply_us(near, 0.5)
    assert far["late"] >= 0.9 * voted(far) > 0, "two near ones have decided by then"
    assert far["decided"] == 0
    assert near["decided"] + second["decided"] > 0
    values_ns, _ = histograms.merged([near["validity_hdr"], second["validity_hdr"]])
    assert values_ns[-1] <= 10_000 * MS, "never more than the lease"


def test_a_server_that_hangs_has_calls_without_a_reply(request):
    binary = binaries.find("auto")
    started = [supervisor.start(binary) for _ in range(3)]
    servers = [Server(one.endpoint, facts, binary.source, one.pid) for one, facts in started]
    hung = started[2][0].pid
    trial = _core.Trial(quorum_spec(servers, request.node.name, "redlock", args={"nodes": 3}, duration_ns=400 * MS))
    try:
        trial.start()
        while trial.progress().grants < 20:
            assert not trial.wait(0.001), "it is stopped while it measures"
        os.kill(hung, signal.SIGSTOP)
        trial.wait()
        result = trial.result
        assert result is not None
        assert result.totals["grants"] > 20, "two servers are a quorum"
        alive, _, silent = result.nodes
        assert silent["asked"] - voted(silent) > alive["asked"] - voted(alive)
        assert voted(silent) > 0, "until it hung it replied"
    finally:
        os.kill(hung, signal.SIGCONT)
        for one, _ in started:
            one.stop()


def test_a_lock_of_one_server_has_no_votes(make_spec, three, request):
    assert run_for_grants(make_spec(), 5).nodes == []
    spec = quorum_spec(three, request.node.name, "redlock", args={"nodes": 1})
    assert run_for_grants(spec | {"servers": spec["servers"][:1]}, 5).nodes == []
