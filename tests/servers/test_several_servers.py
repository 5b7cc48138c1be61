"""Groups of servers: each on its own, or a primary with replicas."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import Server, ServerPool, remove_keys
from pybench.servers.processes import ProcessId
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.binaries import Source


@dataclass(frozen=True)
class Backend:
    name: str
    urls: tuple[SecretStr, ...] = ()
    source: Source = "auto"


def test_whoever_needs_fewer_servers_gets_the_first_of_those_that_are_there():
    with ServerPool() as pool:
        three = pool.redis(Backend("here"), servers=3)
        five = pool.redis(Backend("here"), servers=5)
        assert five[:3] == three
        assert pool.redis(Backend("here")) == five[:1]
        assert len({server.pid for server in five}) == 5
        assert len({server.facts.run_id for server in five}) == 5
        pids = [server.pid for server in five]
    assert not any(ProcessId.of(pid) for pid in pids if pid)


@pytest.mark.parametrize("source", ["wheel", "path"])
@pytest.mark.parametrize("appendfsync", ["off", "everysec"])
def test_replicas_have_what_their_primary_was_told_when_it_waited_for_them(source, appendfsync):
    with ServerPool() as pool:
        [primary] = pool.redis(Backend("here", source=source), appendfsync, replicas=2)
        assert len(primary.replicas) == 2
        with primary.conversation() as conversation:
            conversation.ask("SET", "pybench:1:{0}", "token")
            assert conversation.ask("WAIT", "2", "2000") == 2
        assert [value_at(replica) for replica in primary.replicas] == [b"token", b"token"]
        remove_keys(primary, "pybench:")
        with primary.conversation() as conversation:
            assert conversation.ask("WAIT", "2", "2000") == 2
        assert [value_at(replica) for replica in primary.replicas] == [None, None]
        pids = [primary.pid, *(replica.pid for replica in primary.replicas)]
    assert not any(ProcessId.of(pid) for pid in pids if pid)


@pytest.mark.parametrize("source", ["wheel", "path"])
def test_replicas_answer_at_once_from_the_first_moment(source):
    with ServerPool() as pool:
        [primary] = pool.redis(Backend("here", source=source), replicas=2)
        with primary.conversation() as conversation:
            conversation.ask("SET", "pybench:1:{0}", "token")
            # Servers round what they wait up to their next look at the clock, some tenths of a second.
            assert conversation.ask("WAIT", "2", "1") == 2


def test_a_server_with_replicas_is_another_one_and_its_replicas_stand_in_the_record():
    with ServerPool() as pool:
        [alone] = pool.redis(Backend("here"))
        [followed] = pool.redis(Backend("here"), replicas=1)
        assert alone.pid != followed.pid
        assert "replicas" not in alone.manifest()
        assert [replica["label"] for replica in followed.manifest()["replicas"]] == [followed.label]
        secret = followed.endpoint.password
        assert secret is not None
        assert secret.get_secret_value() not in repr(followed)
        assert secret.get_secret_value() not in str(followed.manifest())


def test_a_replica_that_ends_in_the_middle_is_noticed():
    with ServerPool() as pool:
        [primary] = pool.redis(Backend("here"), replicas=1)
        pool.check()
        with primary.replicas[0].conversation() as conversation, pytest.raises(ServerError):
            conversation.ask("SHUTDOWN", "NOSAVE")
        with pytest.raises(ServerError, match="in the middle of the run"):
            check_until_told(pool)


def test_several_given_servers_are_used_in_their_order_and_two_addresses_of_one_are_refused():
    given = [supervisor.start(binaries.find("auto"), transport="tcp")[0] for _ in range(2)]
    urls = [SecretStr(f"redis://127.0.0.1:{server.endpoint.port}") for server in given]
    try:
        with ServerPool() as pool:
            found = pool.redis(Backend("given", tuple(urls)), servers=2)
            assert [server.endpoint.port for server in found] == [server.endpoint.port for server in given]
            same = SecretStr(f"redis://localhost:{given[0].endpoint.port}/3")
            with pytest.raises(ServerError, match="are the same server"):
                pool.redis(Backend("twice", (urls[0], same)), servers=2)
    finally:
        for server in given:
            server.stop()


def check_until_told(pool: ServerPool) -> None:
    """A keeper tells of an end some milliseconds after it."""
    for _ in range(200):
        pool.check()
        time.sleep(0.01)


def value_at(server: Server) -> object:
    with server.conversation() as conversation:
        return conversation.ask("GET", "pybench:1:{0}")
