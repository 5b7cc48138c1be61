from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from pybench.errors import ServerError
from pybench.servers import Server, difference, read_figures, remove_keys
from pybench.servers.redis.binaries import find
from pybench.servers.redis.cleanup import KEYS_A_STEP
from pybench.servers.redis.supervisor import start
from tests.redis_client import connect


def fill(server: Server, prefix: str, count: int) -> None:
    with connect(server.endpoint) as client:
        client.eval("for i = 1, ARGV[1] do redis.call('SET', KEYS[1] .. i, 1) end", 1, prefix, count)


def left(server: Server) -> set[bytes]:
    with connect(server.endpoint) as client:
        keys: set[bytes] = set(client.keys("*"))
        client.flushall()
        return keys


@pytest.mark.parametrize(
    ("prefix", "neighbours"),
    [
        ("pb:1:", {b"pb:2:1", b"pb:1", b"xpb:1:1"}),
        ("a*b", {b"axb1", b"ab1", b"a\\*b"}),
        ("a?b[c-d]^", {b"axbc^1", b"a?bd^", b"a?bc^"}),
        ("[^x]", {b"y1", b"x1", b"^1"}),
        ("back\\slash", {b"backslash1", b"back"}),
        ("{tag}:é", {b"{tag}:e1", b"{tag}"}),
    ],
)
def test_only_keys_with_the_prefix_itself_are_removed(server: Server, prefix: str, neighbours: set[bytes]):
    with connect(server.endpoint) as client:
        for key in neighbours:
            client.set(key, "keep")
    fill(server, prefix, 2500)
    assert remove_keys(server, prefix) == 2500
    assert left(server) == neighbours


def test_nothing_to_remove_is_fine(server: Server):
    assert remove_keys(server, "nobody:") == 0


def test_other_databases_are_left_alone(server: Server):
    from dataclasses import replace

    other = replace(server, endpoint=replace(server.endpoint, db=5))
    fill(server, "pb:", 10)
    fill(other, "pb:", 10)
    assert remove_keys(other, "pb:") == 10
    assert len(left(server)) == 10


def test_an_empty_prefix_is_our_own_mistake(server: Server):
    with pytest.raises(AssertionError):
        remove_keys(server, "")


def test_too_many_keys_for_the_time_is_an_error_that_says_how_far_it_came(server: Server):
    fill(server, "pb:", 5000)
    with pytest.raises(ServerError, match=r"\d+ keys of the run removed, and more are left"):
        remove_keys(server, "pb:", seconds=0)
    left(server)


def test_many_keys_are_removed_by_few_commands(server: Server):
    many = 50_000
    fill(server, "pb:", many)
    before = read_figures(server)
    assert remove_keys(server, "pb:") == many
    # SCAN may answer fewer keys than it was asked for, and now and then one step has none of ours.
    calls = difference(before, read_figures(server)).calls
    assert 0 < calls["unlink"] <= calls["scan"] < 2 * many / KEYS_A_STEP


def test_figures_count_what_happened_in_between(server: Server):
    before = read_figures(server)
    with connect(server.endpoint) as client:
        for _ in range(50):
            client.set("k", "v", px=1)
        client.eval("local n = 0 for i = 1, 3000000 do n = n + i end return n", 0)
        client.config_get("maxmemory")
    after = read_figures(server)
    spent = difference(before, after)
    assert spent.calls["set"] == 50
    assert spent.calls["eval"] == 1
    assert spent.calls["config|get"] == 1
    assert spent.cpu_us > 1000
    assert "ping" not in spent.calls


def test_a_restart_between_two_readings_is_not_taken_for_a_figure(server: Server):
    other, facts = start(find("auto"))
    reading = read_figures(Server(other.endpoint, facts, "given"))
    other.stop()
    with pytest.raises(ServerError, match="restarted"):
        difference(read_figures(server), reading)


def test_counters_that_were_reset_are_not_taken_for_a_figure(server: Server):
    before = read_figures(server)
    with connect(server.endpoint) as client:
        client.config_resetstat()
    with pytest.raises(ServerError, match="reset"):
        difference(before, read_figures(server))


def test_a_server_that_evicts_keys_cannot_be_measured():
    full, facts = start(find("auto"))
    server = Server(full.endpoint, facts, "given")
    with connect(server.endpoint) as client:
        client.config_set("maxmemory-policy", "volatile-ttl")
        client.config_set("maxmemory", "3mb")
        before = read_figures(server)
        # As locks are: keys that end by themselves, which policies for caches take first.
        with client.pipeline(transaction=False) as pipe:
            for index in range(5_000):
                pipe.set(f"lock:{index}", "x" * 1_000, px=60_000)
            pipe.execute()
    with pytest.raises(ServerError, match=r"evicted [\d,]+ keys") as raised:
        difference(before, read_figures(server))
    assert "noeviction" in (raised.value.hint or "")
    full.stop()


@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB"])
def test_a_server_that_somebody_flushes_cannot_be_measured(server: Server, command: str):
    before = read_figures(server)
    with connect(server.endpoint) as client:
        client.execute_command(command)
    with pytest.raises(ServerError, match="somebody flushed"):
        difference(before, read_figures(server))


def test_a_server_that_is_gone_is_a_server_error_with_its_address():
    gone, facts = start(find("auto"))
    server = Server(gone.endpoint, facts, "given")
    gone.stop()
    for ask in (read_figures, lambda one: remove_keys(one, "pb:")):
        with pytest.raises(ServerError, match=r"s\.sock"):
            ask(server)


def test_counters_that_are_no_numbers_are_a_server_error(server: Server, listener):
    info = b"run_id:x\r\nused_cpu_user:inf\r\nused_cpu_sys:0"

    def odd(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"$%d\r\n%s\r\n" % (len(info), info) * 6)

    where = listener(odd)
    with pytest.raises(ServerError, match="does not report its counters"):
        read_figures(Server(where, replace(server.facts, peer=where.host), "given"))
