"""What a process can do to its locks: be interrupted, be forked, end. Each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

HEAD = """
import os, signal, sys, threading, time, gc, asyncio
import redis
from pybench.lock_client import *
url = sys.argv[1]
client = LockClient(redis=url)
other = redis.Redis.from_url(url)
"""


def run(script: str, url: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", HEAD + script, url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


HOLDS = 'lock = client.lock("orders:17", ttl="1h")\nheld = lock.__enter__()\n'


@pytest.mark.parametrize(
    "ending",
    ["", "raise SystemExit(0)", "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()"],
    ids=["end", "exit", "a daemon thread still runs"],
)
def test_an_interpreter_that_exits_releases_its_locks(url, other, ending):
    run(HOLDS + 'assert other.exists("orders:17")\n' + ending, url)
    assert not other.exists("orders:17")


def test_an_interpreter_that_exits_while_a_daemon_thread_waits_leaves_nothing(url, other):
    script = """
def wait():
    with client.lock("orders:17", ttl="1h", wait="1h"):
        pass
other.set("orders:17", "somebody")
for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
"""
    run(script, url)
    assert other.get("orders:17") == b"somebody"


def test_an_event_loop_that_ends_with_the_process_leaves_nothing(url, other):
    script = """
async def main():
    async def hold(name):
        async with client.lock(name, ttl="1h", wait="1h"):
            await asyncio.sleep(1e6)
    tasks = [asyncio.ensure_future(hold(name)) for name in ("a", "a", "b")]
    while other.dbsize() < 2:
        await asyncio.sleep(0.01)
asyncio.run(main())
"""
    run(script, url)
    assert other.dbsize() == 0


def test_a_child_gets_a_clear_error_and_disturbs_nothing(url, other):
    script = """
with client.lock("orders:17", ttl="1h") as held:
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            with client.lock("other", wait="0"):
                pass
        except ClientUnusable as error:
            assert "fork" in str(error), error
            try:
                lock = client.lock("orders:17")
                held.extend()
            except ClientUnusable:
                held.lost.wait(0)
                del held, lock
                client.close()
                del client
                gc.collect()
                with LockClient(redis=url) as own, own.lock("of the child"):
                    ended = 0
        os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert other.exists("orders:17"), "the child has released the parent's lock"
    assert held.extend() > 3_000
    for _ in range(3):
        with client.lock("still works"):
            pass
assert not other.exists("orders:17")
"""
    run(script, url)


def test_a_child_that_exits_as_usual_leaves_the_parents_locks(url, other):
    script = """
with client.lock("orders:17", ttl="1h") as held:
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    assert other.exists("orders:17")
    assert held.extend() > 3_000
"""
    run(script.replace("sys.exit(0)", "raise SystemExit"), url)


def test_a_client_that_is_first_used_in_the_child_works_there(url, other):
    script = """
child = os.fork()
if child == 0:
    with client.lock("orders:17"):
        os._exit(0 if other.exists("orders:17") else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run(script, url)


WAITS = """
def wait(says=None):
    try:
        if says:
            print(says, flush=True)
        with client.lock("orders:17", ttl="1h", wait="1h"):
            print("granted")
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("leads", [True, False], ids=["as the leader", "behind another thread"])
def test_ctrl_c_ends_a_wait_and_leaves_no_lock(url, other, leads):
    script = WAITS + ("" if leads else "threading.Thread(target=wait, daemon=True).start()\ntime.sleep(0.1)\n")
    script += 'wait("waits")\nprint(other.get("orders:17"))\n'
    other.set("orders:17", "somebody")
    with subprocess.Popen(
        [sys.executable, "-c", HEAD + script, url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        wait_until(lambda: is_asleep(process.pid), "it waits")
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\nb'somebody'\n"
    other.delete("orders:17")
    assert process.returncode == 0


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "S"


def test_ctrl_c_at_any_moment_leaves_no_lock(url, other):
    """Signals at random moments of many short locks: whatever is interrupted, the key is free afterwards."""
    script = """
interrupted = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(200):
    signal.setitimer(signal.ITIMER_REAL, 0.0002 + _ * 7e-6)
    try:
        while True:
            with client.lock("orders:17", ttl="1h", wait="0"):
                pass
    except KeyboardInterrupt:
        interrupted += 1
    except NotAcquired:
        print("left behind")
        break
    signal.setitimer(signal.ITIMER_REAL, 0)
    deadline = time.monotonic() + 20
    while other.exists("orders:17") and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not other.exists("orders:17"), "left behind"
assert interrupted == 200, interrupted
"""
    run(script, url)


def test_a_killed_process_leaves_its_lock_to_the_ttl(url, other):
    script = 'held = client.lock("orders:17", ttl="500ms").__enter__()\nos.kill(os.getpid(), signal.SIGKILL)\n'
    ended = subprocess.run([sys.executable, "-c", HEAD + script, url], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    wait_until(lambda: not other.exists("orders:17"), "its ttl has passed")
