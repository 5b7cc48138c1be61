"""A backend of a matrix: servers that pybench starts, or those that it is given by their addresses.

Promises: a password is never in `repr`, in an error, or in what is written down. `${NAME}` in an address is taken from
the environment each time it is asked for, so that a matrix that is kept or shared holds no secret.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, PrivateAttr, SecretStr, WithJsonSchema

from pybench.errors import InputError
from pybench.matrix.reading import reads
from pybench.notation import BadValue, parse_choice, shown

SOURCES = ("auto", "wheel", "path")
MOST_URLS = 32
_URL_SCHEMA = {"type": "string", "pattern": "^\\s*(redis://|unix://|\\$\\{)"}

_MASK = ":***@"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_KINDS_LATER = {"postgres": "Postgres", "postgresql": "Postgres", "cluster": "Cluster", "sentinel": "Sentinel"}


def parse_kind(value: object) -> str:
    """`redis`. Raises BadValue."""
    if isinstance(value, str) and value in _KINDS_LATER:
        raise BadValue(f"{_KINDS_LATER[value]} comes in a later version", hint="say redis")
    return parse_choice(value, ("redis",))


def parse_url(value: object) -> SecretStr:
    """A `redis://` or `unix://` address, kept as written. Raises BadValue, which does not tell its password."""
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not an address", hint="say redis://HOST:PORT or unix:///PATH")
    # Here, for it brings the client library along, which a matrix without addresses does not need.
    from pybench.servers.endpoint import Endpoint

    if _MASK in value:
        raise BadValue("the password of this address was not kept", hint="give it again, or write it as ${NAME}")
    try:
        Endpoint.parse(_filled(value.strip()))
    except InputError as error:
        raise BadValue(error.message, hint=error.hint) from None
    return SecretStr(value.strip())


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
            told = shown(_masked(url.get_secret_value()))
            raise BadValue(f"{told} is given twice", hint="locks of several servers need each on its own")
    return urls


def parse_source(value: object) -> str:
    """One of `SOURCES`. Raises BadValue."""
    return parse_choice(value, SOURCES)


class Backend(BaseModel):
    """Servers to measure on. Without `url` or `urls`, pybench starts them itself and ends them after the run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Annotated[Literal["redis"], PlainValidator(reads(parse_kind)), WithJsonSchema({"enum": ["redis"]})] = Field(
        default="redis", description="Redis or Valkey."
    )
    written_url: Annotated[
        SecretStr | None,
        PlainValidator(reads(parse_url)),
        WithJsonSchema(_URL_SCHEMA),
    ] = Field(
        default=None,
        alias="url",
        description="The address of a server that is there already; ${NAME} is taken from the environment.",
        examples=["redis://localhost:6379/0", "unix:///run/redis.sock", "redis://:${REDIS_PASSWORD}@db.example:6379"],
    )
    written_urls: Annotated[
        tuple[SecretStr, ...] | None,
        PlainValidator(reads(parse_urls)),
        WithJsonSchema({"type": "array", "items": _URL_SCHEMA, "minItems": 1, "maxItems": MOST_URLS}),
    ] = Field(
        default=None,
        alias="urls",
        description="The addresses of several servers that know nothing of each other, for locks that take a majority.",
        examples=[["redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"]],
    )
    source: Annotated[
        Literal["auto", "wheel", "path"],
        PlainValidator(reads(parse_source)),
        WithJsonSchema({"enum": list(SOURCES)}),
    ] = Field(
        default="auto",
        description="Which server pybench starts: one from a Python wheel, one on PATH, or the first that there is.",
    )
    _name: str = PrivateAttr(default="redis")

    @property
    def name(self) -> str:
        """Its name in the matrix."""
        return self._name

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
        return tuple(_masked(url.get_secret_value()) for url in self._written)

    @property
    def _written(self) -> tuple[SecretStr, ...]:
        return self.written_urls or (() if self.written_url is None else (self.written_url,))

    def to_dict(self) -> dict[str, Any]:
        """What a matrix would say, the password masked."""
        if self.written_urls:
            return {"kind": self.kind, "urls": list(self.shown_urls)}
        if self.is_given:
            return {"kind": self.kind, "url": self.shown_urls[0]}
        return {"kind": self.kind, "source": self.source}


def named(name: str, backend: Backend) -> Backend:
    """`backend` under the name that its matrix gives it."""
    copy = backend.model_copy()
    copy._name = name
    return copy


def _filled(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise BadValue(f"the environment has no variable {match[1]}", hint=f"export {match[1]}=...")
        return os.environ[match[1]]

    return _VARIABLE.sub(value, text)


def _masked(url: str) -> str:
    """The address as written: a password that is one `${NAME}` is no secret and stays."""
    from pybench.servers.endpoint import without_password

    password = re.search(r"://[^:@/]*:(.*)@", url)
    if password and _VARIABLE.fullmatch(password[1]):
        return url
    return without_password(url)
