"""What samples of a server and of this machine show, and that they disturb nobody."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest
from pydantic import SecretStr

from pybench.running.machine_sampler import MachineSampler, steal_us
from pybench.servers import RedisSampler, Server, read_figures, sampling
from pybench.servers.sampling import Sample, Sampler
from tests.redis_client import connect
from tests.waiting import wait_until


def wait_for(sampler: Sampler, samples: int) -> None:
    wait_until(lambda: len(sampler.series) >= samples, "samples are taken")


def grown(sampler: Sampler, name: str) -> float:
    return sampler.series[-1].counters[name] - sampler.series[0].counters[name]


def test_the_commands_of_others_are_counted_and_its_own_are_not(server: Server):
    sampler = RedisSampler(server)
    with connect(server.endpoint) as client, sampler:
        wait_for(sampler, 2)
        before = read_figures(server)
        for _ in range(500):
            client.ping()
        after = read_figures(server)
        wait_for(sampler, len(sampler.series) + 2)
    # The readings are connections with some commands of their own.
    carried_out = after.commands - before.commands
    assert 500 <= grown(sampler, "commands") <= carried_out + 20
    assert grown(sampler, "cpu_us") > 0
    assert "config|set" not in after.calls


def test_a_slow_command_is_counted_even_when_the_slow_log_is_full(server: Server):
    with connect(server.endpoint) as client:
        told = client.config_get("slowlog-*")
        client.config_set("slowlog-max-len", 1)
        client.config_set("slowlog-log-slower-than", 0)
        sampler = RedisSampler(server)
        try:
            with sampler:
                wait_for(sampler, 1)
                for _ in range(20):
                    client.ping()
                wait_for(sampler, len(sampler.series) + 2)
        finally:
            for name in ("slowlog-max-len", "slowlog-log-slower-than"):
                client.config_set(name, told[name])
    assert grown(sampler, "slow") >= 20


def test_a_user_who_may_not_read_the_slow_log_has_all_other_figures(server: Server):
    with connect(server.endpoint) as client:
        client.execute_command("ACL", "SETUSER", "sampler", "reset", "on", ">pw", "+info", "~*")
        try:
            given = replace(server.endpoint, username="sampler", password=SecretStr("pw"))
            sampler = RedisSampler(replace(server, endpoint=given))
            with sampler:
                wait_for(sampler, 3)
        finally:
            client.execute_command("ACL", "DELUSER", "sampler")
    assert sampler.error is None
    assert all("slow" not in sample.counters for sample in sampler.series)
    assert all({"cpu_us", "commands"} <= sample.counters.keys() for sample in sampler.series)


def test_a_server_that_hangs_delays_nobody(binary):
    from pybench.servers.redis import supervisor

    supervised, facts = supervisor.start(binary)
    try:
        sampler = RedisSampler(Server(supervised.endpoint, facts, binary.source, supervised.pid))
        with sampler:
            wait_for(sampler, 1)
            os.kill(supervised.pid, signal.SIGSTOP)
            time.sleep(0.15)
            begun = time.monotonic()
        assert time.monotonic() - begun < 2 * sampling.STOP_S + 1
        assert not [thread for thread in threading.enumerate() if thread.name == sampling.NAME]
    finally:
        os.kill(supervised.pid, signal.SIGCONT)
        supervised.stop()


def test_this_machine_has_its_own_cpu_time_and_what_the_host_took(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 250 0 0\ncpu0 1 2 3 4 5 6 7 250 0 0\n")
    assert steal_us(stat) == 250 * 1e6 / os.sysconf("SC_CLK_TCK")
    assert steal_us(tmp_path / "absent") is None
    sampler = MachineSampler(stat)
    with sampler:
        wait_for(sampler, 2)
        spent = time.process_time() + 0.05
        while time.process_time() < spent:
            pass
    assert grown(sampler, "cpu_us") >= 50_000
    assert grown(sampler, "steal_us") == 0


class Costly(Sampler):
    """Each sample takes 5 ms of CPU time."""

    def sample(self) -> Sample:
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            pass
        return Sample(time.monotonic_ns(), {})


def test_a_costly_sample_is_taken_less_often():
    sampler = Costly(every_s=0.001)
    with sampler:
        time.sleep(0.8)
    # One at the start, one at the end, and between them at most one in each quarter of a second.
    assert len(sampler.series) <= 2 + 0.8 / (0.005 / sampling.MOST_SHARE)
    assert sampler.series[-1].counters["sampling_us"] >= 5_000


def test_of_many_samples_every_second_one_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampling, "MOST_SAMPLES", 10)
    sampler = MachineSampler()
    for at in range(13):
        sampler._keep(Sample(at, {}))
    assert [sample.at_ns for sample in sampler.series] == [0, 2, 4, 6, 8, 10, 11, 12]
    assert sampler._every_s == 0.2
