"""Whatever is sent, the answer is JSON with a reason, and never a 5xx."""

from __future__ import annotations

import http.client
import json
import socket

import pytest

from tests.service.running import Running

LOCK = "/api/locks/simple/r"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"product_id": null}',
        b'{"product_id": true}',
        b'{"product_id": 1.5}',
        b'{"product_id": ""}',
        b'{"product_id": "\\u0000"}',
        b'{"product_id": "\\ud800"}',
        b'{"product_id": 123456789012345678901234567890}',
        b'{"product_id": "x", "quantity": 0}',
        b'{"product_id": "x", "quantity": -1}',
        b'{"product_id": "x", "quantity": 1.5}',
        b'{"product_id": "x", "quantity": "1"}',
        b'{"product_id": "x", "quantity": 1000001}',
        b'{"product_id": "x", "lock_strategy": ""}',
        b'{"product_id": "x", "lock_strategy": "no-such-lock"}',
        b'{"product_id": "x", "lock_strategy": "semaphore(permits=0)"}',
        b'{"product_id": "x", "lock_strategy": "mutex(a=1)"}',
        b'{"product_id": "x", "lock_strategy": "((((("}',
        b"[" * 10_000,
        json.dumps({"product_id": "x" * 513}).encode(),
        json.dumps({"product_id": "ä" * 300}).encode(),
        json.dumps({"product_id": "x", "lock_strategy": "s" * 201}).encode(),
    ],
    ids=lambda body: repr(body)[:40],
)
def test_a_purchase_that_makes_no_sense_is_refused(service: Running, body: bytes):
    reply = service.post("/purchase", body)
    assert reply.status == 422
    assert reply.body["error"]
    assert reply.body["message"]


@pytest.mark.parametrize("body", [b"{}", b'{"product_id": 1}', b'{"product_id": 1, "stock": -1}', b'{"stock": 1}'])
def test_a_reset_that_makes_no_sense_is_refused(service: Running, body: bytes):
    reply = service.post("/reset", body)
    assert (reply.status, reply.body["error"]) == (422, "Invalid request")


@pytest.mark.parametrize(
    "query",
    [
        "work=5",
        "work=-1ms",
        "work=61s",
        "work=1h",
        "wait=61s",
        "wait=",
        "ttl=0",
        "ttl=9ms",
        "ttl=601s",
        "ttl=10001us",
        "work=1ms&work=2ms",
        "retry=sometimes",
        "retry=fixed(base=1us)",
        "retry=fixed(bass=1ms)",
        "work=%FF",
        "&".join(f"x{n}=1" for n in range(30)),
    ],
)
def test_a_parameter_out_of_bounds_is_refused(service: Running, query: str):
    for path in (LOCK, "/purchase"):
        reply = service.post(f"{path}?{query}", b'{"product_id": "x"}')
        assert (reply.status, reply.body["error"]) == (422, "Invalid request"), query
        assert reply.body["message"]


@pytest.mark.parametrize("path", ["/api/locks/simple/%FF", "/api/locks/simple/%00", "/api/locks/%FF/x", "/stock/%FF"])
def test_a_path_that_is_no_text_is_refused(service: Running, path: str):
    reply = service.send("GET" if path.startswith("/stock") else "POST", path)
    assert reply.status == 422
    assert reply.body["message"]


def test_a_body_that_is_too_large_is_refused(service: Running):
    reply = service.post("/purchase", b" " * 70_000)
    assert (reply.status, reply.body["error"]) == (413, "Body too large")
    assert service.post(LOCK, b"x" * 70_000).status == 413


def test_an_endless_body_is_refused_before_it_ends(service: Running):
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(b"POST /purchase HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        for _ in range(4):
            connection.sendall(chunk)
        assert b"413" in connection.recv(65_536)


def test_a_head_without_an_end_is_refused(service: Running):
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx-long: ")
        for _ in range(9):
            connection.sendall(b"a" * 8_192)
        assert b" 431 " in connection.recv(65_536)


def test_a_connection_takes_any_number_of_requests(service: Running):
    """Their heads are together more than one may have."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    for _ in range(100):
        connection.request("GET", "/nowhere", headers={"X-Long": "a" * 2_000})
        assert connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("key", ["", "x" * 256, "ä"])
def test_an_idempotency_key_that_cannot_be_one_is_refused(service: Running, key: str):
    reply = service.post(LOCK, Idempotency_Key=key)
    assert (reply.status, reply.body["error"]) == (422, "Invalid request")


def test_a_lock_call_needs_no_body_and_takes_any(service: Running):
    assert service.post(LOCK).status == 200
    assert service.post(LOCK, b"anything").status == 200
