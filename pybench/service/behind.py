"""The application behind the front: documents, health, figures, and the description of all routes.

FastAPI makes the OpenAPI document. The routes that the front answers are declared here for that document, with the
models by which the front checks requests; their functions here are never called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException

from pybench.service.answers import Problem
from pybench.service.calls import LENGTH, MOST_IDEMPOTENCY_KEY
from pybench.service.health import health_of
from pybench.service.models import (
    MOST_NAME_BYTES,
    MOST_STRATEGY,
    ErrorAnswer,
    HealthAnswer,
    LockAnswer,
    LockedAnswer,
    PurchaseAnswer,
    PurchaseRequest,
    ResetAnswer,
    ResetRequest,
    StockAnswer,
)

if TYPE_CHECKING:
    from pybench.service.figures import Figures
    from pybench.service.watching import Servers

_ABOUT = """
A shop with stock, and resources to lock, on the locks that `pybench` measures. Load generators drive it.
"""
_ERRORS: dict[int | str, dict[str, Any]] = {
    408: {"model": ErrorAnswer, "description": "The body did not come in time."},
    413: {"model": ErrorAnswer, "description": "The body is too large."},
    422: {"model": ErrorAnswer, "description": "The request cannot be understood, or asks for what is out of bounds."},
    503: {"model": ErrorAnswer, "description": "A server is lost, or the service is busy; see Retry-After."},
}
_LOCKED: dict[int | str, dict[str, Any]] = {
    409: {"model": LockedAnswer | ErrorAnswer, "description": "Another client holds the lock; see Retry-After."}
}
_IN_PROGRESS: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorAnswer, "description": "The first request with this Idempotency-Key is still under way."}
}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorAnswer, "description": "There is no such product."}}

Work = Annotated[str | None, Query(pattern=LENGTH, description="Work while the lock is held, up to 60s.")]
Wait = Annotated[str | None, Query(pattern=LENGTH, description="How long to wait for the lock, up to 60s; 0: do not.")]
Ttl = Annotated[str | None, Query(pattern=LENGTH, description="Lease of the lock, 10ms to 600s.  Default: 10s.")]
Retry = Annotated[
    str | None, Query(description="When to try again, as in a matrix: `fixed(base=100ms)`; else the lock's own way.")
]
Repeat = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MOST_IDEMPOTENCY_KEY,
        pattern="^[ -~]+$",
        description="A repeated request with the same key gets the first answer, and does nothing.",
    ),
]
Product = Annotated[str, Path(min_length=1, max_length=MOST_NAME_BYTES)]


def application_behind(servers: Servers, figures: Figures) -> FastAPI:
    """The application."""
    app = FastAPIOffline(title="pybench serve", description=_ABOUT, version="1")
    app.add_exception_handler(HTTPException, _http_problem)
    _describe(app)

    @app.get("/health", response_model=HealthAnswer, responses={503: {"model": HealthAnswer}}, tags=["service"])
    async def health() -> JSONResponse:
        """The state of the service and of each server."""
        status, answer = health_of(servers)
        return JSONResponse(answer.model_dump(), status)

    @app.get("/metrics", response_class=Response, tags=["service"])
    async def metrics() -> Response:
        """The figures of all processes, for Prometheus."""
        text, content_type = figures.exposition()
        return Response(text, headers={"content-type": content_type})

    return app


def _describe(app: FastAPI) -> None:
    """Declare the routes that the front answers."""

    @app.post("/reset", response_model=ResetAnswer, responses=_ERRORS, tags=["shop"])
    async def reset(body: ResetRequest) -> NoReturn:
        """Set the stock of a product."""
        _never_called()

    @app.post("/purchase", response_model=PurchaseAnswer, responses={**_ERRORS, **_IN_PROGRESS}, tags=["shop"])
    async def purchase(
        body: PurchaseRequest,
        work: Work = None,
        wait: Wait = None,
        ttl: Ttl = None,
        retry: Retry = None,
        idempotency_key: Repeat = None,
    ) -> NoReturn:
        """Buy: acquire the lock, read the stock, work, write what is left, release. A refusal is a 200, too."""
        _never_called()

    @app.get("/stock/{product_id}", response_model=StockAnswer, responses={**_ERRORS, **_NOT_FOUND}, tags=["shop"])
    async def stock(product_id: Product) -> NoReturn:
        """The stock of a product."""
        _never_called()

    @app.post(
        "/api/locks/{strategy}/{resource}",
        response_model=LockAnswer,
        responses={**_ERRORS, **_LOCKED},
        tags=["locks"],
    )
    async def lock(
        strategy: Annotated[str, Path(min_length=1, max_length=MOST_STRATEGY)],
        resource: Product,
        work: Work = None,
        wait: Wait = None,
        ttl: Ttl = None,
        retry: Retry = None,
        idempotency_key: Repeat = None,
    ) -> NoReturn:
        """Acquire the lock of a resource, work, release. `simple` is a mutex; `simple` and `redlock` do not wait."""
        _never_called()


def _never_called() -> NoReturn:
    raise AssertionError("the front answers this route")


async def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {404: "Not found", 405: "Method not allowed"}
    answer = Problem(error.status_code, texts.get(error.status_code, str(error.detail))).answer()
    return Response(answer.body, answer.status, dict(error.headers or {}), media_type="application/json")
