"""Servers that go bad when a trial connects or in its middle: the core ends in time, and who asks is told."""

from __future__ import annotations

import resource
import time

import pytest

from pybench import _core
from pybench.errors import ServerError
from pybench.servers import Server, read_figures
from pybench.servers.redis.probe import probe
from tests.core_trials import MS, trial_spec
from tests.fault_proxy import Fault, FaultProxy

PATIENCE_MS = 50
DRAIN_MS = 200

HUGE = b"$1000000000000\r\n"
FAULTS = {
    "silence": (Fault(), "accepts connections but does not answer"),
    "hangs up": (Fault(hangs_up=True), "closed the connection"),
    "a web server": (Fault(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", hangs_up=True), "is a web server"),
    "TLS": (Fault(b"\x15\x03\x03\x00\x02\x02\x28", hangs_up=True), "asks for TLS"),
    "rubbish": (Fault(bytes(range(256)) * 8), "does not speak the Redis protocol"),
    "half a reply, then closed": (Fault(b"+O", hangs_up=True), "closed the connection"),
    "half a reply, then silence": (Fault(b"+O"), "sent only part of a reply"),
    "a length of 10^12": (Fault(HUGE), "does not speak the Redis protocol"),
    "a length of 10^12, and bytes": (Fault(HUGE + b"x" * 60_000), "does not speak the Redis protocol"),
    "an array of 10^9": (Fault(b"*1000000000\r\n"), "does not speak the Redis protocol"),
    "arrays in arrays": (Fault(b"*1\r\n" * 5_000), "does not speak the Redis protocol"),
    "answers that nobody asked for": (Fault(b"+OK\r\n" * 10_000), "does not report its counters"),
    "loading": (Fault(b"-LOADING Redis is loading the dataset in memory\r\n"), "is still loading"),
    "a replica": (Fault(b"-READONLY You can't write against a read only replica.\r\n"), "is a replica"),
    "out of memory": (Fault(b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"), "is out of memory"),
    "a disk error": (Fault(b"-MISCONF Errors writing to the AOF file\r\n"), "cannot save its data"),
    "another password": (Fault(b"-NOAUTH Authentication required.\r\n"), "asks for a password"),
    "protected mode": (Fault(b"-DENIED Redis is running in protected mode\r\n"), "is in protected mode"),
    "no room": (Fault(b"-ERR max number of clients reached\r\n", hangs_up=True), "has no connection left"),
}


def before(proxy: FaultProxy) -> Server:
    """What a run knows of a server from when all was well."""
    return Server(proxy.endpoint, probe(proxy.endpoint), "given")


@pytest.mark.parametrize(("fault", "told"), FAULTS.values(), ids=FAULTS)
def test_a_trial_whose_server_goes_bad_ends_in_time_and_who_asks_next_is_told(server, fault, told):
    # A key of the trial: the probe before it passes.
    with FaultProxy(server.endpoint, fault, trigger=b"gone:") as proxy:
        given = before(proxy)
        spec = trial_spec(
            given, key_prefix="gone:", ttl_ms=50, warmup_ns=0, reply_timeout_ns=PATIENCE_MS * MS, drain_ns=DRAIN_MS * MS
        )
        memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.monotonic()
        totals = _core.Trial(spec).run().totals
        took_s = time.monotonic() - begun
        assert proxy.is_bad.is_set()
        with pytest.raises(ServerError) as caught:
            read_figures(given, seconds=0.3)
    assert took_s < 5
    if not fault.says or not fault.says.startswith(b"+OK"):  # Who says yes to everything is not found out by a lock.
        assert totals["errors"] + totals["lost_calls"] + totals["unknown"] + totals["abandoned"] > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb < 100_000
    assert told in caught.value.message
    assert "valkey" in caught.value.message or "INFO" in caught.value.message
    assert caught.value.hint


# One that says nothing is given three seconds to let a client in: that of them stands for all that are silent.
QUICK = {name: fault for name, (fault, _) in FAULTS.items() if not name.endswith("silence")} | {"silence": Fault()}


@pytest.mark.parametrize("fault", QUICK.values(), ids=QUICK)
def test_a_server_that_goes_bad_when_a_trial_connects_is_named(server, fault):
    with FaultProxy(server.endpoint, fault, trigger=b"pybench-test") as proxy:
        spec = trial_spec(before(proxy))
        with pytest.raises(_core.ConnectError, match=f"127.0.0.1:{proxy.endpoint.port}: "):
            _core.Trial(spec).run()
        assert proxy.is_bad.is_set()
