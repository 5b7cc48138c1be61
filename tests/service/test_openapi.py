"""The OpenAPI document, what it promises, and its page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from playwright.sync_api import Browser, Page
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.report.browsing import needs_chromium
from tests.service.running import OwnRedis, Running, serving

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
ROUTES = [
    ("POST", "/reset"),
    ("POST", "/purchase"),
    ("GET", "/stock/{product_id}"),
    ("POST", "/api/locks/{strategy}/{resource}"),
    ("GET", "/health"),
    ("GET", "/metrics"),
]


@pytest.fixture(scope="module")
def quick(own_redis: OwnRedis, folder: Path) -> Iterator[Running]:
    """A service without work, so that many requests take little time."""
    with serving(folder, "--redis", own_redis.url, "--work", "0", "--log-level", "error") as running:
        yield running


def document(service: Running) -> dict[str, object]:
    told: dict[str, object] = service.get("/openapi.json").body
    return told


def test_every_route_is_described_with_the_schemas_of_its_answers(quick: Running):
    paths = document(quick)["paths"]
    assert isinstance(paths, dict)
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == set(ROUTES)
    for path in ("/purchase", "/reset"):
        assert paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert paths[path]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    named = {parameter["name"] for parameter in paths["/purchase"]["post"]["parameters"]}
    assert named == {"work", "wait", "ttl", "retry", "Idempotency-Key"}


def answered(service: Running) -> float:
    """How many requests there were."""
    lines = service.get("/metrics").body.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("pybench_requests_total"))


def sent(service: Running, examples: int) -> None:
    """Send generated requests to every route, valid and invalid ones, and check the answers."""
    schema = schemathesis.openapi.from_dict(document(service))
    schema.config.update(base_url=f"http://127.0.0.1:{service.port}")
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
        @given(case=operation.as_strategy())
        def one(case: schemathesis.Case) -> None:
            # A wait of a minute, which is allowed, is no reason to wait.
            for name in ("work", "wait"):
                if case.query:
                    case.query.pop(name, None)
            case.call_and_validate(checks=list(CHECKS), timeout=20)

        before = answered(service)
        one()
        takes_anything = "{" in operation.path or operation.method == "post"
        assert answered(service) - before >= (examples / 2 if takes_anything else 1), operation.label


def test_no_generated_request_is_answered_with_a_fault(quick: Running):
    sent(quick, examples=15)
    assert not quick.logged(level="error")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_generated_request_is_answered_with_a_fault_however_many(quick: Running):
    sent(quick, examples=500)
    assert not quick.logged(level="error")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


@needs_chromium
def test_the_page_of_documents_needs_no_network(quick: Running, page: Page):
    own = f"http://127.0.0.1:{quick.port}/"
    others: list[str] = []
    failures: list[str] = []
    page.on("request", lambda request: None if request.url.startswith((own, "data:")) else others.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(f"{own}docs")
    page.wait_for_selector("#operations-shop-purchase_purchase_post")
    page.click("#operations-shop-purchase_purchase_post .opblock-summary-control")
    page.wait_for_selector("text=lock_strategy")
    assert (others, failures) == ([], [])
    assert json.loads(page.evaluate("fetch('/health').then(answer => answer.text())"))["status"] == "ok"
