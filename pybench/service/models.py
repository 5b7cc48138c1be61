"""The bodies of requests and answers, as the OpenAPI document shows them and as requests are checked."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_NAME_BYTES = 512
"""Of a product or a resource. A lock's name has at most 1,024 bytes, with the prefix of the service."""
MOST_STOCK = 2**53
MOST_STRATEGY = 200


def checked_name(name: str) -> str:
    """`name`, if it can be the name of a key and of a lock. Raises ValueError."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode") from None
    if not 1 <= length <= MOST_NAME_BYTES:
        raise ValueError(f"has from 1 to {MOST_NAME_BYTES} bytes")
    if "\0" in name:
        raise ValueError("holds a zero byte")
    return name


Name = Annotated[str, Field(min_length=1, max_length=MOST_NAME_BYTES), AfterValidator(checked_name)]
Number = Annotated[int, Field(ge=-(2**53), le=2**53, strict=True)]
ProductId = Annotated[
    Number | Name, Field(description="A text or a whole number; 42 and '42' are one product.", examples=["laptop"])
]


class Body(BaseModel):
    """Of a request: unknown fields are ignored, as load scripts send some."""

    model_config = ConfigDict(extra="ignore")


class ResetRequest(Body):
    """Sets the stock of a product."""

    product_id: ProductId
    stock: Annotated[int, Field(ge=0, le=MOST_STOCK, strict=True)]


class PurchaseRequest(Body):
    """Buys `quantity` of a product under a lock."""

    product_id: ProductId
    quantity: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 1
    lock_strategy: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_STRATEGY,
            description="`none`, `naive`, `safe` (the same as `mutex`), `atomic` (no lock, one conditional write), or "
            "any strategy that `pybench strategies` lists, such as `semaphore(permits=4)`.",
        ),
    ] = "safe"


class ResetAnswer(BaseModel):
    """The stock that was set."""

    status: str
    product_id: int | str
    stock: int


class StockAnswer(BaseModel):
    """The stock of a product."""

    product_id: int | str
    stock: int


class PurchaseAnswer(BaseModel):
    """Whether the purchase succeeded, and what it saw."""

    success: bool
    process_id: Annotated[int, Field(description="The process of the service that answered.")]
    lock_acquired: bool
    stock_before: int | None
    stock_after: int | None
    duration_ms: float
    error: str | None


class LockAnswer(BaseModel):
    """The lock was held, the work was done, and the lock was released."""

    success: bool
    resourceId: str
    durationMs: float


class LockedAnswer(BaseModel):
    """Another client holds the lock."""

    error: str
    retryAfterMs: int | None


class ErrorAnswer(BaseModel):
    """Why there is no result."""

    model_config = ConfigDict(extra="allow")

    error: str
    message: str | None = None


class ServerState(BaseModel):
    """One server of the service."""

    role: Annotated[str, Field(description="`redis`, `redlock` or `postgres`.")]
    state: Annotated[str, Field(description="`up` or `lost`.")]
    product: str | None
    version: str | None
    address: Annotated[str | None, Field(description="Without credentials; null for a server that pybench started.")]
    latency_ms: Annotated[float | None, Field(description="Of the last look at it; null while it is lost.")]


class HealthAnswer(BaseModel):
    """The state of the service and of its servers."""

    status: Annotated[str, Field(description="`ok`, `degraded` (still serves every route) or `unavailable`.")]
    service: str
    servers: list[ServerState]


def explain(errors: list[Any]) -> str:
    """The first errors of a body in one sentence."""
    texts = []
    for error in errors[:3]:
        # The union of product_id names its branches, which tell a client nothing.
        place = ".".join(str(part) for part in error["loc"][:1]) or "body"
        text = f"{place}: {error['msg']}"
        if text not in texts:
            texts.append(text)
    return "; ".join(texts)
