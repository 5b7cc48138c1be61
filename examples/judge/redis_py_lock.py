"""Histories of redis-py's Lock: redis_py_lock.py URL FOLDER."""

from __future__ import annotations

import sys
from multiprocessing import Process
from pathlib import Path

import redis
from history import History, contend

KEY = "pybench-judge:redis-py"
LEASE_S = 2


def work(url: str, folder: Path, number: int) -> None:
    """Contend for the key as one worker."""
    lock = redis.Redis.from_url(url).lock(KEY, timeout=LEASE_S)

    def release() -> bool:
        try:
            lock.release()
        except redis.exceptions.LockError:
            return False
        return True

    contend(
        History(folder / f"redis-py-{number}.jsonl", lock="redis-py Lock", key=KEY),
        seconds=2,
        lease_ns=LEASE_S * 10**9,
        hold_s=0.001,
        take=lambda: lock.acquire(blocking=False),
        give=release,
    )


if __name__ == "__main__":
    workers = [Process(target=work, args=(sys.argv[1], Path(sys.argv[2]), number)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))
