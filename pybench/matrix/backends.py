"""A backend of a matrix: servers of one kind that pybench starts, or your own servers, given by their addresses.

Promises: a password never appears in `repr`, in an error or in a record. `${NAME}` in an address is replaced from the
environment whenever the address is used, so a stored or shared matrix holds no password.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, PrivateAttr, SecretStr, WithJsonSchema

from pybench.errors import InputError
from pybench.masking import is_masked, masked_url, secrets_of
from pybench.matrix.validators import reads
from pybench.notation import BadValue, parse_choice, shortened, shown
from pybench.strategies import ServerKind

MOST_URLS = 32
_SCHEMES = {
    "redis": ServerKind.REDIS,
    "unix": ServerKind.REDIS,
    "postgres": ServerKind.POSTGRES,
    "postgresql": ServerKind.POSTGRES,
}
_URL_SCHEMA = {"type": "string", "pattern": f"^\\s*(({'|'.join(_SCHEMES)})://|\\$\\{{)"}

_FORMS = "use redis://HOST:PORT or postgresql://HOST/DATABASE"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HOST_PORT = re.compile(r"[A-Za-z0-9._-]+:(?P<port>\d{1,5})(/\w*)?")
_KINDS_LATER = {"cluster": "Cluster", "sentinel": "Sentinel"}
_NAMES_OF_POSTGRES = ("postgres", "postgresql", "pg")
"""A backend with such a name is a Postgres backend, unless its kind or address says otherwise."""


def parse_kind(value: object) -> ServerKind:
    """`redis` or `postgres`. Raises BadValue."""
    if isinstance(value, str) and value in _KINDS_LATER:
        raise BadValue(f"{_KINDS_LATER[value]} is not supported yet", hint="use redis or postgres")
    return ServerKind(parse_choice(value, tuple(ServerKind)))


def kind_of(url: str) -> ServerKind | None:
    """The kind of server by the scheme of its address; None for an unknown scheme."""
    return _SCHEMES.get(url.partition("://")[0].strip().lower())


def parse_url(value: object) -> SecretStr:
    """The address of a Redis or Postgres server, as written. Raises BadValue without the password."""
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not an address", hint=_FORMS)
    if is_masked(value):
        raise BadValue("the password of this address is masked", hint="give the password again, or write it as ${NAME}")
    address = _filled(value.strip())
    try:
        # Imported here: a matrix without addresses does not need the client libraries.
        if kind_of(address) is ServerKind.POSTGRES:
            from pybench.servers.postgres.endpoint import PostgresEndpoint

            PostgresEndpoint.parse(address)
        else:
            from pybench.servers.addresses import scheme_of
            from pybench.servers.redis.endpoint import LATER, Endpoint

            if kind_of(address) is None and scheme_of(address) not in LATER:
                raise BadValue(f"{shown(masked_url(value.strip()))} is not an address", hint=_meant(value.strip()))
            Endpoint.parse(address)
    except InputError as error:
        raise BadValue(error.message, hint=error.hint) from None
    return SecretStr(value.strip())


def _meant(text: str) -> str:
    """The hint for `text`, which is not an address: a host and port with a scheme, or the known forms."""
    host_port = _HOST_PORT.fullmatch(text)
    if host_port is None:
        return _FORMS
    scheme = "postgresql" if host_port["port"] == "5432" else "redis"
    return f"did you mean {scheme}://{text}?"


def require_kind(url: str, kind: ServerKind) -> None:
    """Raise BadValue with the option that accepts `url`, where its scheme is that of another kind."""
    other = kind_of(url)
    if other not in (None, kind):
        message = f"{shortened(url)} is not the address of a {kind.label} server"
        raise BadValue(message, hint=f"pass this address with --{other}, or set {other.variable}")


def parse_urls(value: object) -> tuple[SecretStr, ...]:
    """One or several addresses, all of different servers. Raises BadValue."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise BadValue("the list is empty", hint="add an address, or leave the key out")
    if len(values) > MOST_URLS:
        raise BadValue(f"{len(values)} addresses", hint=f"at most {MOST_URLS}")
    urls = tuple(parse_url(one) for one in values)
    for index, url in enumerate(urls):
        if url in urls[:index]:
            address = shown(masked_url(url.get_secret_value()))
            raise BadValue(f"{address} is given twice", hint="a multi-server lock needs different servers")
    if len(urls) > 1 and any(kind_of(_filled(url.get_secret_value())) is ServerKind.POSTGRES for url in urls):
        hint = "no lock uses several databases; list each server as a backend of its own"
        raise BadValue("a list of addresses contains a Postgres server", hint=hint)
    return urls


class Backend(BaseModel):
    """Servers to measure on. Without `url` or `urls`, pybench starts the servers and stops them after the run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    written_kind: Annotated[
        ServerKind | None, PlainValidator(reads(parse_kind)), WithJsonSchema({"enum": list(ServerKind)})
    ] = Field(
        default=None,
        alias="kind",
        description="Redis (or Valkey), or Postgres. By default the address, else the backend's name decides.",
    )
    written_url: Annotated[
        SecretStr | None,
        PlainValidator(reads(parse_url)),
        WithJsonSchema(_URL_SCHEMA),
    ] = Field(
        default=None,
        alias="url",
        description="The address of a running server; ${NAME} is replaced from the environment.",
        examples=[
            "redis://localhost:6379/0",
            "unix:///run/redis.sock",
            "redis://:${REDIS_PASSWORD}@db.example:6379",
            "postgresql://me:${PGPASSWORD}@db.example:5432/shop",
        ],
    )
    written_urls: Annotated[
        tuple[SecretStr, ...] | None,
        PlainValidator(reads(parse_urls)),
        WithJsonSchema({"type": "array", "items": _URL_SCHEMA, "minItems": 1, "maxItems": MOST_URLS}),
    ] = Field(
        default=None,
        alias="urls",
        description="The addresses of several independent Redis servers, for locks that need a majority of them.",
        examples=[["redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"]],
    )
    source: Literal["auto", "wheel", "path"] = Field(
        default="auto",
        description="Which server pybench starts: from a Python wheel, from PATH, or (auto) the first that it finds.",
    )
    prepare: Literal["auto", "named", "unnamed"] = Field(
        default="auto",
        description="Postgres only: named prepares statements once per session; unnamed sends them with each call, as "
        "a pooler in transaction mode needs. auto: unnamed behind a pooler, else named.",
    )
    _name: str = PrivateAttr(default="redis")

    @property
    def name(self) -> str:
        """The name of the backend in the matrix."""
        return self._name

    @property
    def kind(self) -> ServerKind:
        """The kind of its servers."""
        return self.written_kind or ServerKind.REDIS

    @property
    def kind_of_address(self) -> ServerKind | None:
        """The kind by the scheme of its address; None where pybench starts its servers."""
        return kind_of(self.urls[0].get_secret_value()) if self.is_given else None

    @property
    def is_given(self) -> bool:
        """Whether the servers are the user's own, and pybench does not start them."""
        return bool(self._written)

    @property
    def url(self) -> SecretStr | None:
        """The full address of the first server; None where pybench starts the servers."""
        return self.urls[0] if self.is_given else None

    @property
    def urls(self) -> tuple[SecretStr, ...]:
        """The full addresses with variables replaced. Raises BadValue when the environment lacks a variable."""
        return tuple(SecretStr(_filled(url.get_secret_value())) for url in self._written)

    @property
    def shown_urls(self) -> tuple[str, ...]:
        """The addresses as written, with passwords masked, for screens and records."""
        return tuple(masked_url(url.get_secret_value()) for url in self._written)

    @property
    def secrets(self) -> frozenset[str]:
        """The passwords of its addresses, in every form in which other text may contain them."""
        return frozenset().union(*(secrets_of(url.get_secret_value()) for url in (*self._written, *self.urls)))

    @property
    def _written(self) -> tuple[SecretStr, ...]:
        return self.written_urls or (() if self.written_url is None else (self.written_url,))

    def to_dict(self) -> dict[str, Any]:
        """The backend as in a matrix, with the password masked."""
        further = {"prepare": self.prepare} if self.prepare != "auto" else {}
        if self.written_urls:
            return {"kind": self.kind.value, "urls": list(self.shown_urls), **further}
        if self.is_given:
            return {"kind": self.kind.value, "url": self.shown_urls[0], **further}
        return {"kind": self.kind.value, "source": self.source, **further}


def named(name: str, backend: Backend) -> Backend:
    """`backend` with its name in the matrix; the name decides the kind where kind and address are not given."""
    by_name = ServerKind.POSTGRES if name in _NAMES_OF_POSTGRES else ServerKind.REDIS
    kind = backend.written_kind or backend.kind_of_address or by_name
    copy = backend.model_copy(update={"written_kind": kind})
    copy._name = name
    return copy


def at_address(backend: Backend, url: str | None) -> Backend:
    """`backend` with the server at `url` in place of a started one; unchanged without `url`. Raises BadValue."""
    if url is None:
        return backend
    require_kind(url, backend.kind)
    return backend.model_copy(update={"written_url": parse_url(url)})


def _filled(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise BadValue(f"the environment has no variable {match[1]}", hint=f"export {match[1]}=...")
        return os.environ[match[1]]

    return _VARIABLE.sub(value, text)
