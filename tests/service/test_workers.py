"""Several processes behind one address."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.service.running import OwnRedis, Running, command, environment, serving
from tests.waiting import wait_until

WORKERS = 2


@pytest.fixture(scope="module")
def several(own_redis: OwnRedis, folder: Path) -> Iterator[Running]:
    with serving(folder, "--redis", own_redis.url, "--workers", str(WORKERS)) as running:
        yield running


def workers(service: Running) -> list[psutil.Process]:
    """Those that run."""
    found = []
    for child in psutil.Process(service.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "pybench.service.worker" in child.cmdline():
                found.append(child)
    return found


def test_all_answer_and_their_figures_are_added_up(several: Running):
    several.reset("p", 1_000)
    seen: set[int] = set()
    sold = 0
    while len(seen) < WORKERS:
        replies = several.at_once(20, "/purchase?work=5ms&wait=20s", {"product_id": "p", "lock_strategy": "safe"})
        sold += sum(reply.body["success"] for reply in replies)
        seen |= {reply.body["process_id"] for reply in replies}
    assert seen == {worker.pid for worker in workers(several)}
    assert several.get("/stock/p").body["stock"] == 1_000 - sold
    # A process writes what it has counted a moment later.
    purchases = 'pybench_requests_total{route="/purchase",status="200"}'
    wait_until(lambda: several.figure(purchases) == sold, "all purchases are counted")
    assert several.figure('pybench_request_seconds_count{route="/purchase"}') == sold
    assert several.figure('pybench_locks_total{outcome="granted",strategy="mutex"}') == sold


def test_a_purchase_that_is_sent_again_to_another_process_gets_the_first_answer(several: Running):
    several.reset("once", 10)
    replies = [several.buy("once", Idempotency_Key="workers") for _ in range(20)]
    assert len({str(reply.body) for reply in replies}) == 1
    assert several.get("/stock/once").body["stock"] == 9


def test_a_worker_that_dies_is_replaced_and_its_figures_stay(several: Running):
    purchases = 'pybench_requests_total{route="/purchase",status="200"}'
    several.reset("p", 10)
    several.buy("p")
    wait_until(lambda: several.figure(purchases) > 0, "it is counted")
    before = several.figure(purchases)
    victim, *_ = workers(several)
    victim.kill()
    wait_until(lambda: victim.pid not in {worker.pid for worker in workers(several)}, "the dead worker is gone")
    wait_until(lambda: len(workers(several)) == WORKERS, "another one is there")
    assert several.logged(event="worker ended", worker=victim.pid)
    assert several.figure(purchases) >= before
    assert several.buy("p").status == 200


def test_the_end_is_orderly(several: Running, own_redis: OwnRedis):
    several.reset("of-workers", 1)
    with several.begin("POST", "/api/locks/mutex/end?work=500ms"):
        wait_until(lambda: own_redis.keys("*resource:end"), "the lock is held")
        of_service = workers(several)
        assert several.end() == 0
    assert not any(worker.is_running() for worker in of_service)
    assert not own_redis.keys("*stock:of-workers")


def test_workers_end_with_the_process_that_started_them(own_redis: OwnRedis, tmp_path: Path):
    with serving(tmp_path, "--redis", own_redis.url, "--workers", "2") as service:
        of_service = workers(service)
        assert len(of_service) == 2
        service.process.kill()
        service.process.wait()
        wait_until(lambda: not any(worker.is_running() for worker in of_service), "the workers are gone")
    assert not list(Path(os.environ["TMPDIR"]).glob("pybench-figures-*"))


@pytest.mark.slow
def test_a_worker_that_does_not_start_ends_the_service(own_redis: OwnRedis, tmp_path: Path):
    process = subprocess.Popen(
        command("--redis", own_redis.url, "--workers", "2"), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE
    )
    try:
        os.kill(own_redis.pid, signal.SIGSTOP)
        assert process.wait(60) == 41
    finally:
        os.kill(own_redis.pid, signal.SIGCONT)
        process.kill()
        process.communicate()
