"""A backend of a matrix: servers of one kind that pybench starts, or those that it is given by their addresses.

Promises: a password is never in `repr`, in an error, or in what is written down. `${NAME}` in an address is taken from
the environment each time it is asked for, so that a matrix that is kept or shared holds no secret.
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

_FORMS = "say redis://HOST:PORT or postgresql://HOST/DATABASE"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HOST_PORT = re.compile(r"[A-Za-z0-9._-]+:(?P<port>\d{1,5})(/\w*)?")
_KINDS_LATER = {"cluster": "Cluster", "sentinel": "Sentinel"}
_NAMES_OF_POSTGRES = ("postgres", "postgresql", "pg")
"""Backends that are called so are of this kind where nothing else says of which they are."""


def parse_kind(value: object) -> ServerKind:
    """`redis` or `postgres`. Raises BadValue."""
    if isinstance(value, str) and value in _KINDS_LATER:
        raise BadValue(f"{_KINDS_LATER[value]} comes in a later version", hint="say redis or postgres")
    return ServerKind(parse_choice(value, tuple(ServerKind)))


def kind_of(url: str) -> ServerKind | None:
    """What the scheme of an address says; None of one that says nothing known."""
    return _SCHEMES.get(url.partition("://")[0].strip().lower())


def parse_url(value: object) -> SecretStr:
    """The address of a Redis or Postgres server, kept as written. Raises BadValue, which does not tell its password."""
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not an address", hint=_FORMS)
    if is_masked(value):
        raise BadValue("the password of this address was not kept", hint="give it again, or write it as ${NAME}")
    address = _filled(value.strip())
    try:
        # Here, for they bring client libraries along, which a matrix without addresses does not need.
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
    """The hint for `text`, which is no address: the one that a host and port are meant to be."""
    host_port = _HOST_PORT.fullmatch(text)
    if host_port is None:
        return _FORMS
    scheme = "postgresql" if host_port["port"] == "5432" else "redis"
    return f"did you mean {scheme}://{text}?"


def require_kind(url: str, kind: ServerKind) -> None:
    """Raise BadValue, which names what takes `url`, where its scheme says that its server is not of `kind`."""
    said = kind_of(url)
    if said not in (None, kind):
        message = f"{shortened(url)} is not the address of a {kind.label} server"
        raise BadValue(message, hint=f"--{said} takes it, as does {said.variable}")


def parse_urls(value: object) -> tuple[SecretStr, ...]:
    """One address or several, each of another server. Raises BadValue."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise BadValue("the list is empty", hint="give it an address or leave the key out")
    if len(values) > MOST_URLS:
        raise BadValue(f"{len(values)} addresses", hint=f"at most {MOST_URLS}")
    urls = tuple(parse_url(one) for one in values)
    for index, url in enumerate(urls):
        if url in urls[:index]:
            told = shown(masked_url(url.get_secret_value()))
            raise BadValue(f"{told} is given twice", hint="locks of several servers need each on its own")
    if len(urls) > 1 and any(kind_of(_filled(url.get_secret_value())) is ServerKind.POSTGRES for url in urls):
        hint = "no lock takes several databases, and none mixes kinds: name each under backends"
        raise BadValue("a Postgres server is one of several addresses", hint=hint)
    return urls


class Backend(BaseModel):
    """Servers to measure on. Without `url` or `urls`, pybench starts them itself and ends them after the run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    written_kind: Annotated[
        ServerKind | None, PlainValidator(reads(parse_kind)), WithJsonSchema({"enum": list(ServerKind)})
    ] = Field(
        default=None,
        alias="kind",
        description="Redis (or Valkey), or Postgres. Left out: what the address or else the backend's name says.",
    )
    written_url: Annotated[
        SecretStr | None,
        PlainValidator(reads(parse_url)),
        WithJsonSchema(_URL_SCHEMA),
    ] = Field(
        default=None,
        alias="url",
        description="The address of a server that is there already; ${NAME} is taken from the environment.",
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
        description="The addresses of several Redis servers that know nothing of each other, for locks that take a "
        "majority.",
        examples=[["redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"]],
    )
    source: Literal["auto", "wheel", "path"] = Field(
        default="auto",
        description="Which server pybench starts: one from a Python wheel, one on PATH, or the first that there is.",
    )
    prepare: Literal["auto", "named", "unnamed"] = Field(
        default="auto",
        description="Postgres only: whether statements are prepared once for a session, or sent with each call, as a "
        "pooler wants it that lends sessions by the transaction. auto: unnamed where a pooler is found.",
    )
    _name: str = PrivateAttr(default="redis")

    @property
    def name(self) -> str:
        """Its name in the matrix."""
        return self._name

    @property
    def kind(self) -> ServerKind:
        """What its servers speak."""
        return self.written_kind or ServerKind.REDIS

    @property
    def kind_of_address(self) -> ServerKind | None:
        """What the scheme of its address says; None where pybench starts its servers."""
        return kind_of(self.urls[0].get_secret_value()) if self.is_given else None

    @property
    def is_given(self) -> bool:
        """Whether it is servers that pybench does not start."""
        return bool(self._written)

    @property
    def url(self) -> SecretStr | None:
        """The whole address of the first server; None where pybench starts them."""
        return self.urls[0] if self.is_given else None

    @property
    def urls(self) -> tuple[SecretStr, ...]:
        """The whole addresses, their variables filled in. Raises BadValue when the environment has one no more."""
        return tuple(SecretStr(_filled(url.get_secret_value())) for url in self._written)

    @property
    def shown_urls(self) -> tuple[str, ...]:
        """The addresses as written, their passwords masked: fit for screens and records."""
        return tuple(masked_url(url.get_secret_value()) for url in self._written)

    @property
    def secrets(self) -> frozenset[str]:
        """The passwords of its addresses, in each form in which other text may repeat them."""
        return frozenset().union(*(secrets_of(url.get_secret_value()) for url in (*self._written, *self.urls)))

    @property
    def _written(self) -> tuple[SecretStr, ...]:
        return self.written_urls or (() if self.written_url is None else (self.written_url,))

    def to_dict(self) -> dict[str, Any]:
        """What a matrix would say, the password masked."""
        further = {"prepare": self.prepare} if self.prepare != "auto" else {}
        if self.written_urls:
            return {"kind": self.kind.value, "urls": list(self.shown_urls), **further}
        if self.is_given:
            return {"kind": self.kind.value, "url": self.shown_urls[0], **further}
        return {"kind": self.kind.value, "source": self.source, **further}


def named(name: str, backend: Backend) -> Backend:
    """`backend` under the name that its matrix gives it, which says its kind where nothing else does."""
    meant = ServerKind.POSTGRES if name in _NAMES_OF_POSTGRES else ServerKind.REDIS
    kind = backend.written_kind or backend.kind_of_address or meant
    copy = backend.model_copy(update={"written_kind": kind})
    copy._name = name
    return copy


def at_address(backend: Backend, url: str | None) -> Backend:
    """`backend`, which pybench would start, as the server at `url` where there is one. Raises BadValue."""
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
