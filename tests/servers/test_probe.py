from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from pybench.errors import InputError, ServerError
from pybench.servers import Endpoint
from pybench.servers.connection import MOST_BYTES
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.probe import probe
from tests.redis_client import connect

SECRET = "s3cret-w0rd"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Endpoint]:
    """A server on TCP that asks for a password."""
    server, _ = supervisor.start(binaries.find("auto"), transport="tcp", password=SecretStr(SECRET))
    yield server.endpoint
    server.stop()


def refused(endpoint: Endpoint | str, seconds: float = 2.0) -> str:
    """The error of probing it, which must come in time, and with a hint."""
    begin = time.monotonic()
    with pytest.raises(ServerError) as caught:
        probe(endpoint, seconds=seconds)
    assert time.monotonic() - begin < seconds + 1
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    return str(caught.value)


def test_the_right_password_lets_in(guarded: Endpoint):
    facts = probe(f"redis://:{SECRET}@127.0.0.1:{guarded.port}")
    assert facts.peer == "127.0.0.1"
    assert probe(f"redis://default:{SECRET}@localhost:{guarded.port}/3").peer == "127.0.0.1"


def test_no_password_and_a_wrong_one_are_told_apart(guarded: Endpoint):
    assert "asks for a password" in refused(f"redis://127.0.0.1:{guarded.port}")
    assert "refuses this user and password" in refused(f"redis://:wrong@127.0.0.1:{guarded.port}")
    assert "refuses this user and password" in refused(f"redis://nobody:{SECRET}@127.0.0.1:{guarded.port}")


def test_a_database_that_is_not_there(guarded: Endpoint):
    assert "no database 99" in refused(f"redis://:{SECRET}@127.0.0.1:{guarded.port}/99")


def test_a_user_who_may_not_ask(guarded: Endpoint):
    with connect(guarded) as client:
        client.acl_setuser("low", enabled=True, passwords=[f"+{SECRET}"], commands=["+ping"])
        client.acl_setuser("mid", enabled=True, passwords=[f"+{SECRET}"], commands=["+ping", "+info"])
    assert "does not let this user do what a run needs" in refused(f"redis://low:{SECRET}@127.0.0.1:{guarded.port}")
    facts = probe(f"redis://mid:{SECRET}@127.0.0.1:{guarded.port}")
    assert facts.appendfsync == "off"
    assert facts.io_threads is None
    assert facts.compare_and_delete == "script"


def test_a_password_for_a_server_without_one(server):
    assert "no password" in refused(Endpoint(unix=server.endpoint.unix, password=SecretStr(SECRET)))


def test_facts_of_a_plain_server(server):
    facts = probe(server.endpoint)
    assert facts.transport == "unix"
    assert facts.protocol == 3
    assert facts.maxmemory_policy == "noeviction"
    assert facts.io_threads == 1
    assert facts.run_id == server.facts.run_id
    assert "run_id" not in facts.record()


def test_probing_changes_nothing(server):
    with connect(server.endpoint) as client:
        client.set("theirs", "value")
        changes = client.info("persistence")["rdb_changes_since_last_save"]
        probe(server.endpoint)
        assert client.info("persistence")["rdb_changes_since_last_save"] == changes
        client.flushall()


def test_a_closed_port_and_an_absent_socket(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as was_open:
        port = was_open.getsockname()[1]
    assert "nothing listens" in refused(f"redis://:{SECRET}@127.0.0.1:{port}")
    assert "no such socket" in refused(f"unix://{tmp_path}/s.sock?password={SECRET}")


def test_a_name_that_does_not_exist():
    assert "no such host" in refused("redis://no-such-host.invalid")


def test_a_resolver_that_hangs(monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hangs.wait(10) and [])
    assert "does not answer within 400 ms" in refused("redis://slow-resolver", 0.4)
    hangs.set()


def test_a_port_that_never_answers(listener):
    assert "does not answer within 400 ms" in refused(listener(lambda connection: time.sleep(0.6)), 0.4)


def test_a_backlog_that_nobody_empties():
    with socket.create_server(("127.0.0.1", 0), backlog=1) as full:
        assert "does not answer" in refused(Endpoint(host="127.0.0.1", port=full.getsockname()[1]), 0.4)


def test_a_web_server(web_server: Endpoint):
    assert "web server" in refused(web_server)


def answers_info(info: bytes) -> bytes:
    return b"+PONG\r\n$%d\r\n%s\r\n" % (len(info), info)


def says(text: bytes) -> Callable[[socket.socket], None]:
    def play(connection: socket.socket) -> None:
        connection.sendall(text)
        connection.recv(4096)
        connection.recv(4096)

    return play


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "web server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak the Redis protocol: 'SSH-2.0"),
        (b"\x15\x03\x03\x00\x02\x02\x16", "asks for TLS"),
        (b"\x00\xff\x00\xff", "does not speak"),
        (b"+" + b"x" * 5000, "does not speak"),
        (b"$99999999999999\r\n", "does not speak"),
        (b"*1000000\r\n", "does not speak"),
        (b":12abc\r\n", "does not speak"),
        (b"*1\r\n" * 50, "does not speak"),
        (b"+PON", "only part of a reply within 400 ms: '+PON'"),
        (b"$10\r\nabc", "only part of a reply"),
        (b":1\r\n", "not as Redis does"),
        (b"+PONG\r\n$5\r\nhello\r\n", "does not report a version"),
        (b"-ERR max number of clients reached\r\n", "no connection left"),
        (b"-LOADING Redis is loading the dataset in memory\r\n", "still loading"),
        (b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n", "is in protected mode"),
        (b"-BUSY Redis is busy running a script.\r\n", "is busy with somebody's script"),
        (b"-MASTERDOWN Link with MASTER is down\r\n", "is a replica that has lost its primary"),
        (b"-ODD something\r\n", "answers with an error: ODD something"),
        (answers_info(b"redis_version:7.2.4\r\nredis_mode:cluster"), "cluster mode"),
        (answers_info(b"redis_version:7.2.4\r\nredis_mode:sentinel"), "sentinel mode"),
        (answers_info(b"redis_version:7.2.4\r\nrole:slave\r\nmaster_host:h\r\nmaster_port:1"), "is a replica"),
    ],
)
def test_what_is_no_usable_redis_server_is_named(listener, text: bytes, told: str):
    assert told in refused(listener(says(text)), 0.4)


def test_facts_that_no_server_has_are_not_known(listener):
    def odd(connection: socket.socket) -> None:
        info = b"redis_version:7.2.4\r\nprocess_id:" + b"9" * 5000 + b"\r\nmaxmemory:-1"
        config = b"*2\r\n$1\r\nx\r\n$2\r\n\xff\xfe\r\n"
        # All replies at once: what one read holds, a command, half of one or several, is not ours to choose.
        connection.sendall(answers_info(info) + config * 4 + b":0\r\n%0\r\n")
        while connection.recv(4096):
            pass

    facts = probe(listener(odd))
    assert (facts.version, facts.process_id, facts.maxmemory, facts.timeout_s) == ("7.2.4", None, None, None)


def test_a_server_that_hangs_up(listener):
    assert "closed the connection without an answer" in refused(listener(lambda connection: connection.recv(1)))


def test_one_byte_at_a_time_does_not_outlast_the_deadline(listener):
    def trickle(connection: socket.socket) -> None:
        for _ in range(20):
            connection.sendall(b"+")
            time.sleep(0.05)

    assert "only part of a reply" in refused(listener(trickle), 0.4)


def test_a_reply_without_end_is_cut_off(listener):
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"*60000\r\n")
        while True:
            sent += connection.send(b"$1000\r\n" + b"x" * 1000 + b"\r\n")

    assert "does not speak the Redis protocol" in refused(listener(flood))
    assert sent < 3 * MOST_BYTES, "the buffers of two sockets are in between"


def test_an_address_that_does_not_answer_leaves_time_for_the_next_one_of_its_name(guarded: Endpoint, monkeypatch):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        found = [full.getsockname(), ("127.0.0.1", guarded.port)]
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", one) for one in found]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        begin = time.monotonic()
        assert probe(f"redis://:{SECRET}@two-addresses").peer == "127.0.0.1"
        assert 0.9 < time.monotonic() - begin < 2


@pytest.mark.parametrize("before", [b"", b"?", b"$99\r\n"])
def test_what_sends_our_words_back_does_not_make_us_show_the_password(listener, before: bytes):
    def echo(connection: socket.socket) -> None:
        while data := connection.recv(4096):
            connection.sendall(before + data)

    bare = listener(echo)
    refused(Endpoint(host=bare.host, port=bare.port, password=SecretStr(SECRET)), 0.4)


def test_an_error_reply_that_quotes_the_password_is_shown_without_it(listener):
    odd = listener(says(f"-ERR unknown command 'AUTH', with args beginning with: '{SECRET}'\r\n".encode()))
    assert "***" in refused(Endpoint(host=odd.host, port=odd.port, password=SecretStr(SECRET)))


def test_a_url_is_read_before_anything_is_asked():
    with pytest.raises(InputError, match="TLS comes in a later step"):
        probe("rediss://localhost")
