"""Histories of a lock that is broken on purpose: broken_lock.py URL FOLDER.

Its release deletes the key without a look at the owner, and its work sometimes takes longer than its lease: then it
deletes the lock of the next holder.
"""

from __future__ import annotations

import sys
from multiprocessing import Process
from pathlib import Path

import redis
from history import History, contend

KEY = "pybench-judge:broken"
LEASE_MS = 20


def work(url: str, folder: Path, number: int) -> None:
    """Contend for the key as one worker."""
    client = redis.Redis.from_url(url)
    contend(
        History(folder / f"broken-{number}.jsonl", lock="DEL without a check of the owner", key=KEY),
        seconds=2,
        lease_ns=LEASE_MS * 10**6,
        hold_s=0.018,
        take=lambda: bool(client.set(KEY, "held", nx=True, px=LEASE_MS)),
        give=lambda: bool(client.delete(KEY)),
    )


if __name__ == "__main__":
    workers = [Process(target=work, args=(sys.argv[1], Path(sys.argv[2]), number)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))
