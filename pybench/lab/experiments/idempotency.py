"""`idempotency`: the answer to a purchase is lost, so the client sends the purchase again."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pybench.errors import ServerError
from pybench.lab.clients import client_row
from pybench.lab.experiment import Experiment, Parameter
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.lab.locks import ChosenLock, needs_client
from pybench.servers.proxy import Proxy
from pybench.servers.redis.endpoint import Endpoint
from pybench.service.settings import Place, Settings
from pybench.strategies import Count, ServerKind

if TYPE_CHECKING:
    from pybench.lab.acting import Line
    from pybench.lab.stage import Stage

ATOMIC = "atomic"
LOST = "the answer was lost"
MOST_QUOTED = 200
"""Bytes of an answer that an error quotes, where the service itself does not say what is wrong."""


class _LosesReply(Proxy):
    """Cuts the connection instead of passing on the next reply, when it is told so."""

    def __init__(self, port: int) -> None:
        super().__init__(Endpoint(host="127.0.0.1", port=port))
        self.loses = False

    def of_server(self, client: socket.socket, data: bytes) -> None:
        if self.loses:
            self.loses = False
            self.drop(client)
        else:
            super().of_server(client, data)


def serve(line: Line, settings: str) -> None:
    """The role of the HTTP service: it says its port once it serves."""
    from pybench.service.process import serve as run

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    run(Settings.from_json(settings), listening, lambda: line.say({"port": port}))


def _run(stage: Stage) -> Iterator[Case]:
    stage.note("the HTTP service starts")
    service = stage.actor(serve, {"settings": _settings(stage).to_json()})
    with _LosesReply(service.hear()["port"]) as proxy:
        for number, lock in enumerate(stage.locks):
            for has_key in (False, True):
                stage.note(_label(lock, has_key=has_key))
                yield _case(stage, proxy, lock, f"product-{number}-{has_key}", has_key=has_key)
    service.end()


def _settings(stage: Stage) -> Settings:
    """A service with the servers that the locks of this experiment need."""
    kinds = {kind for lock in stage.locks if lock.entry for kind in lock.entry.server_kinds}
    nodes = [_nodes(lock) for lock in stage.locks]
    replicas = max((lock.entry.replicas(lock.arguments) for lock in stage.locks if lock.entry), default=0)
    (server,) = stage.redis(replicas=0 if stage.given.redis else replicas)
    settings = Settings(
        redis=Place(stage.url(server), None, replicas),
        redlock=tuple(Place(stage.url(one), None) for one in stage.redis(max(nodes))) if max(nodes) else (),
        postgres=None,
        prefix=stage.prefix,
        schema="",
        lock_schema="",
        log_level="error",
    )
    if ServerKind.POSTGRES not in kinds:
        return settings
    return replace(settings, postgres=Place(stage.url(stage.postgres()), None), lock_schema=stage.lock_schema())


def _nodes(lock: ChosenLock) -> int:
    """How many servers of the role `redlock` the service needs for a lock."""
    entry = lock.entry
    if entry is None or entry.spreads_keys or entry.argument("nodes", lock.arguments) is None:
        return 0
    return entry.servers_of_kind(ServerKind.REDIS, lock.arguments)


def _case(stage: Stage, proxy: _LosesReply, lock: ChosenLock, product: str, *, has_key: bool) -> Case:
    stock = stage.count("stock")
    _post(stage, proxy, "/reset", {"product_id": product, "stock": stock})
    body = {"product_id": product, "lock_strategy": lock.text}
    headers = {"Idempotency-Key": secrets.token_hex(16)} if has_key else {}
    began = time.monotonic()
    proxy.loses = True
    first = _sent(stage, proxy, "/purchase", body, headers)
    rows = [client_row(began, locked=False, error=LOST)]
    if first is not None:
        raise ServerError("the answer to the first purchase was not lost", hint="this is a bug: please report it")
    again = _post(stage, proxy, "/purchase", body, headers)
    left = _post(stage, proxy, f"/stock/{product}", None)["stock"]
    sold = stock - left
    rows.append(ClientRow(**again))
    return Case(
        label=_label(lock, has_key=has_key),
        strategy=lock.text if lock.entry is not None else None,
        expected=Expected.RIGHT if has_key else Expected.WRONG,
        went_wrong=sold != 1,
        sentence=f"one purchase was sent twice and sold {sold}: the stock is {left}",
        figures=(
            Figure("requests", "requests sent", 2),
            Figure("answers", "answers received", 1),
            Figure("initial_stock", "initial stock", stock),
            Figure("stock_before", "stock that the answer saw", again["stock_before"]),
            Figure("final_stock", "final stock", left),
            Figure("sold", "sold", sold),
        ),
        clients=tuple(rows),
    )


def _label(lock: ChosenLock, *, has_key: bool) -> str:
    return f"{lock.text} {'with key' if has_key else 'without key'}"


def _post(stage: Stage, proxy: Proxy, path: str, body: object, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """The parsed answer of the service. Raises ServerError where there is none."""
    answer = _sent(stage, proxy, path, body, headers or {})
    if answer is None:
        raise ServerError("the HTTP service closed the connection without an answer", hint="does its server still run?")
    return answer


def _sent(stage: Stage, proxy: Proxy, path: str, body: object, headers: dict[str, str]) -> dict[str, Any] | None:
    """One request on a connection of its own; None if the connection ended without an answer. Raises ServerError."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.endpoint.port, timeout=stage.left_s)
    try:
        data = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, data, {**kind, **headers})
        answer = connection.getresponse()
        text = answer.read()
    except (http.client.HTTPException, ConnectionError):
        return None
    except OSError as error:
        raise ServerError(f"the HTTP service does not answer: {error}", hint="raise --time-limit") from None
    finally:
        connection.close()
    return _parsed(answer.status, text)


def _parsed(status: int, text: bytes) -> dict[str, Any]:
    """What the service answered. Raises ServerError for anything but success and a JSON object."""
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if status == http.client.OK and isinstance(told, dict):
        return told
    said = (told.get("detail") or told.get("error")) if isinstance(told, dict) else None
    quoted = said or text[:MOST_QUOTED].decode(errors="replace") or "nothing"
    raise ServerError(f"the HTTP service answered {status}: {quoted}", hint="does its server still run?")


IDEMPOTENCY = Experiment(
    name="idempotency",
    summary="A purchase whose answer is lost is sent again",
    steps=(
        "A client sends one purchase to the HTTP service of pybench. The service sells, and its answer is lost.",
        "The client cannot tell whether it has bought, and sends it again: once without a key, once with one.",
    ),
    learn="A lock cannot tell a second purchase from a first one sent twice: only a key of the request can.",
    run=_run,
    strategies=("mutex",),
    beside_locks=(ATOMIC,),
    unfit=needs_client,
    parameters=(Parameter("stock", Count(2, 100_000), "10", "Pieces at the beginning."),),
    modules=("fastapi", "fastapi_offline", "httptools", "prometheus_client", "uvicorn", "uvloop"),
    extra="service",
)
