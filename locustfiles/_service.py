"""The service under load, as a scenario prepares and reads it. These requests are not part of the statistics."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from urllib.parse import quote, urlsplit

from locust.contrib.fasthttp import FastHttpSession
from locust.event import EventHook

DEFAULT_HOST = "http://127.0.0.1:8080"
"""Where `pybench serve` listens unless told otherwise."""

TIMEOUT_S = 10.0


def add_lock_strategy(parser: ArgumentParser) -> None:
    """The option of scenarios that buy."""
    parser.add_argument(
        "--lock-strategy",
        default="safe",
        env_var="PYBENCH_LOCK_STRATEGY",
        help="The lock around each purchase: none, naive, safe, or any strategy of the service.",
    )


class ServiceError(Exception):
    """The service does not answer, or not as expected."""


class Service:
    """The service at `host`. Every method raises ServiceError."""

    def __init__(self, host: str | None) -> None:
        url = urlsplit(host or "")
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ServiceError(f"{address_of(host)} is no address of a service: use --host {DEFAULT_HOST}")
        self._address = address_of(host)
        session: dict[str, Any] = {"connection_timeout": TIMEOUT_S, "network_timeout": TIMEOUT_S}
        self._http = FastHttpSession(host, EventHook(), None, **session)

    def reset(self, product: str, stock: int) -> None:
        """Set the stock of a product."""
        self._call("POST", "/reset", {"product_id": product, "stock": stock})

    def stock(self, product: str) -> int:
        """The stock of a product."""
        answer = self._call("GET", f"/stock/{quote(product, safe='')}")
        if not isinstance(answer.get("stock"), int):
            raise ServiceError(f"{self._address} is another service: GET /stock/{product} has no stock")
        return answer["stock"]

    def check(self) -> None:
        """Check that the service is there."""
        self._call("GET", "/health")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._http.request(method, path, json=body)
        if not answer.status_code:
            hint = "start it with pybench serve, or name another service with --host"
            raise ServiceError(f"{self._address} does not answer: {hint}")
        if answer.status_code != 200:
            raise ServiceError(
                f"{self._address} answers {method} {path} with {answer.status_code}: {answer.text[:200]}"
            )
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise ServiceError(f"{self._address} is another service: {method} {path} has no JSON object")
        return content


def address_of(host: str | None) -> str:
    """Scheme, host and port of an address, without its user and password."""
    url = urlsplit(host or "")
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}" if url.netloc else repr((host or "").rpartition("@")[2])
