"""`pybench serve`."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pybench.cli.options import Servers
from pybench.errors import InputError
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.servers.redis.binaries import Source
    from pybench.service.hosting import Wanted
    from pybench.service.settings import LogLevel, Settings, StockKind

EXTRA = ("fastapi", "fastapi_offline", "httptools", "prometheus_client", "uvicorn", "uvloop")
_STOCKS = ("redis", "postgres")
_LEVELS = ("debug", "info", "warning", "error")


def _option(metavar: str | None, help_: str, panel: str | None = None, flag: str | None = None) -> Any:  # noqa: ANN401 - an option's description is typer's own
    return typer.Option(*([flag] if flag else []), metavar=metavar, help=help_, rich_help_panel=panel)


Host = Annotated[str, _option("ADDRESS", "Address to listen on.")]
Port = Annotated[int, _option("N", "Port to listen on; 0: a free one.")]
Workers = Annotated[int, _option("N", "Processes that serve.")]
Work = Annotated[str, _option("TIME", "Work of a request while it holds its lock.")]
Stock = Annotated[str, _option("redis|postgres", "Where the stock lives.")]
RowLock = Annotated[bool, _option(None, "Postgres: SELECT ... FOR UPDATE in one transaction.", flag="--stock-row-lock")]
Constraint = Annotated[
    bool, _option(None, "Postgres: CHECK (stock >= 0), and SET stock = stock - n.", flag="--stock-constraint")
]
BreakerAfter = Annotated[int, _option("N", "After N failures of a lock in a row, answer 503 at once; 0: never.")]
Connections = Annotated[
    int, _option("N", "Locks at once of a strategy that needs a connection for each; sessions of a stock in Postgres.")
]
MaxWaiting = Annotated[int, _option("N", "Requests at once in each process; others are answered 503.")]
Level = Annotated[str, _option("LEVEL", "debug, info, warning or error.")]
Redis = Annotated[
    str | None,
    _option(
        "URL",
        "Redis for the locks of one server, and for the stock. If no server is named, PYBENCH_REDIS_URL is used.",
        "Servers",
    ),
]
Redlock = Annotated[str | None, _option("URL,URL,...", "Servers of redlock.", "Servers")]
Postgres = Annotated[
    str | None,
    _option("URL", "Postgres for locks of Postgres. If no server is named, PYBENCH_POSTGRES_URL is used.", "Servers"),
]


def serve(
    *,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    workers: Workers = 1,
    work: Work = "5ms",
    stock: Stock = "redis",
    stock_row_lock: RowLock = False,
    stock_constraint: Constraint = False,
    breaker: BreakerAfter = 0,
    connections: Connections = 16,
    max_waiting: MaxWaiting = 2_000,
    log_level: Level = "info",
    redis: Redis = None,
    redlock: Redlock = None,
    postgres: Postgres = None,
    servers: Servers = "auto",
) -> int:
    """Serve locks and a shop over HTTP, for load generators.

    POST /reset, POST /purchase, GET /stock/ID, POST /api/locks/STRATEGY/RESOURCE, GET /health, /metrics and /docs.
    pybench starts the servers that the locks need, unless --redis, --redlock or --postgres names one: then it uses
    those alone. SIGTERM or Ctrl-C finishes the requests that hold a lock, and releases all locks.
    """
    _require_extra()
    from pybench.service.hosting import new_names
    from pybench.service.settings import MOST_WORKERS, Settings

    _within("--port", port, 0, 65_535)
    _within("--workers", workers, 1, MOST_WORKERS)
    _within("--breaker", breaker, 0, 1_000_000)
    _within("--connections", connections, 1, 1_000)
    _within("--max-waiting", max_waiting, 1, 16_000)
    _one_of("--stock", stock, _STOCKS)
    _one_of("--log-level", log_level, _LEVELS)
    if stock != "postgres" and (stock_row_lock or stock_constraint):
        raise InputError("--stock-row-lock and --stock-constraint are about Postgres", hint="add --stock postgres")
    wanted = _wanted(redis, redlock, postgres, servers)
    _must_hold(stock, wanted)
    prefix, schema, lock_schema = new_names()
    settings = Settings(
        redis=None,
        redlock=(),
        postgres=None,
        prefix=prefix,
        schema=schema,
        lock_schema=lock_schema,
        stock=cast("StockKind", stock),
        row_lock=stock_row_lock,
        constraint=stock_constraint,
        work_ns=_work(work),
        breaker=breaker,
        connections=connections,
        most_waiting=max_waiting,
        workers=workers,
        log_level=cast("LogLevel", log_level),
    )
    return _serve(host, port, wanted, settings)


def _serve(host: str, port: int, wanted: Wanted, settings: Settings) -> int:
    from pybench.cli.output import say
    from pybench.running.job import open_files
    from pybench.service.hosting import hosted
    from pybench.service.process import serve
    from pybench.service.workers import Workers

    with _bound(host, port) as listening, open_files(), hosted(wanted, settings, say) as ready:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"

        def on_ready() -> None:
            say(f"serving on {address} (documents: {address}/docs); Ctrl-C ends")

        if settings.workers == 1:
            orderly = serve(ready, listening, on_ready)
        else:
            orderly = Workers(ready, listening).serve(on_ready)
    return Exit.OK if orderly else Exit.INTERRUPTED


def _bound(host: str, port: int) -> socket.socket:
    """A socket that has the address, and does not listen yet. Raises InputError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InputError(f"--host {host}: {error.strerror or error}", hint="give an address of this machine") from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        hint = "give another --port; 0 takes a free one"
        raise InputError(f"{host}:{port} cannot be listened on: {error.strerror or error}", hint=hint) from None
    return bound


def _wanted(redis: str | None, redlock: str | None, postgres: str | None, source: str) -> Wanted:
    from pydantic import SecretStr

    from pybench.servers.redis.endpoint import Endpoint
    from pybench.service.hosting import Wanted

    _one_of("--servers", source, ("auto", "wheel", "path"))
    if redis is None and redlock is None and postgres is None:
        redis = os.environ.get("PYBENCH_REDIS_URL") or None
        postgres = os.environ.get("PYBENCH_POSTGRES_URL") or None
    if redis is not None:
        Endpoint.parse(redis)
    urls = [part.strip() for part in redlock.split(",")] if redlock is not None else []
    for url in urls:
        Endpoint.parse(url)
    if postgres is not None:
        from pybench.servers.postgres.endpoint import PostgresEndpoint

        PostgresEndpoint.parse(postgres)
    return Wanted(
        redis=None if redis is None else SecretStr(redis),
        redlock=[SecretStr(url) for url in urls],
        postgres=None if postgres is None else SecretStr(postgres),
        source=cast("Source", source),
    )


def _must_hold(stock: str, wanted: Wanted) -> None:
    """Raise InputError where servers are named, and none of them can hold the stock."""
    if wanted.names_none:
        return
    if stock == "postgres" and wanted.postgres is None:
        raise InputError("the stock is to live in Postgres, and none is named", hint="add --postgres URL")
    if stock == "redis" and wanted.redis is None:
        hint = "add --redis URL" + ("; or --stock postgres" if wanted.postgres is not None else "")
        raise InputError("the stock is to live in Redis, and none is named", hint=hint)


def _work(text: str) -> int:
    from pybench.matrix.durations import MINUTE, parse_duration
    from pybench.notation import BadValue

    try:
        return parse_duration(text, longest_ns=MINUTE)
    except BadValue as problem:
        raise InputError(f"--work: {problem.message}", hint=problem.hint) from None


def _require_extra() -> None:
    """Raise InputError where a package of the extra is missing."""
    from importlib.util import find_spec

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise InputError(f"pybench serve needs {', '.join(missing)}", hint="pip install 'pybench[service]'")


def _within(option: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise InputError(f"{option} is a number from {lowest:,} to {highest:,}, not {value:,}")


def _one_of(option: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise InputError(f"{option} is {' or '.join(words)}, not {value!r}")
