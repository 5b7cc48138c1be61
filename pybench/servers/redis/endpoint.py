"""The address of one server, with the credentials for it.

Promises: no text made from an endpoint, and no error raised here, contains the password.
Does not connect; `pybench.servers.redis.probe` finds out what stands behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from pydantic import SecretStr
from redis.connection import parse_url

from pybench.errors import InputError
from pybench.masking import MASK, unknown_option
from pybench.servers.addresses import AS_CODES, is_host, is_number, scheme_of, shown_address, unreadable

DEFAULT_PORT: Final = 6379
HIGHEST_DB: Final = 2**31 - 1

_FORMS = "redis://[user:password@]host[:port][/db] or unix:///path[?db=N]"
LATER = {
    "rediss": "TLS",
    "redis+sentinel": "Sentinel",
    "sentinel": "Sentinel",
    "redis+cluster": "Cluster",
    "rediscluster": "Cluster",
}
_UNDERSTOOD = {"redis": {"db", "username", "password"}, "unix": {"db", "username", "password"}}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Either a Unix socket's path, or a host and a port."""

    unix: str | None = None
    host: str | None = None
    port: int = 0
    username: str | None = field(default=None, repr=False)
    """Masked where no password follows: it may be one, since redis-cli once read `redis://PASSWORD@host` so."""
    password: SecretStr | None = None
    db: int = 0

    def __post_init__(self) -> None:
        assert (self.unix is None) != (self.host is None), "an endpoint is a path or a host"

    def core_spec(self, host: str | None, **server: object) -> dict[str, Any]:
        """For the Rust core, with the numeric address of the host: the core resolves no names."""
        return {
            "kind": "redis",
            "unix": self.unix,
            "host": host,
            "port": self.port,
            "username": self.username,
            "password": None if self.password is None else self.password.get_secret_value(),
            "db": self.db,
            **server,
        }

    @classmethod
    def parse(cls, url: str | SecretStr) -> Endpoint:
        """Read a URL. Raises InputError that names it without its password."""
        text = (url.get_secret_value() if isinstance(url, SecretStr) else url).strip()
        shown = shown_address(text)
        scheme = scheme_of(text)
        if scheme in LATER:
            raise InputError(f"{shown}: {LATER[scheme]} comes in a later step", hint=f"for now give {_FORMS}")
        if scheme not in _UNDERSTOOD:
            hint = "--postgres takes it" if scheme in ("postgres", "postgresql") else f"give {_FORMS}"
            raise InputError(f"{shown} is not the URL of a Redis server", hint=hint)
        if wrong := unreadable(text):
            raise InputError(f"{shown}: {wrong.reason}", hint=f"give {_FORMS}; {wrong.hint}")
        try:
            _refuse_what_would_be_dropped(text, scheme)
            parts: dict[str, Any] = parse_url(scheme + text[len(scheme) :])  # type: ignore[no-untyped-call]
        except ValueError as error:
            # Without its cause: the parser quotes pieces of the URL, and a piece of a password may be among them.
            reason = str(error) if isinstance(error, _Dropped) else "it cannot be parsed"
            raise InputError(f"{shown}: {reason}", hint=f"give {_FORMS}; {AS_CODES}") from None
        password = parts.get("password")
        return cls(
            unix=parts["path"] if scheme == "unix" else None,
            host=parts.get("host", "localhost") if scheme == "redis" else None,
            port=parts.get("port", DEFAULT_PORT) if scheme == "redis" else 0,
            username=parts.get("username"),
            password=None if password is None else SecretStr(password),
            db=parts.get("db", 0),
        )

    @property
    def user(self) -> str:
        """The user that the server logs in."""
        return self.username or "default"

    @property
    def address(self) -> str:
        """Where it is, without credentials: `redis://host:port/db` or `unix:///path?db=N`."""
        return self._url("")

    @property
    def url(self) -> SecretStr:
        """With its credentials, for a client: never to be shown."""
        secret = "" if self.password is None else f":{quote(self.password.get_secret_value(), safe='')}"
        return SecretStr(self._url(f"{quote(self.username or '', safe='')}{secret}@" if self.has_secret else ""))

    @property
    def has_secret(self) -> bool:
        """Whether the address holds a secret."""
        return self.password is not None or bool(self.username)

    def __str__(self) -> str:
        if self.password is None:
            return self._url(f"{MASK}@" if self.username else "")
        return self._url(f"{quote(self.username or '', safe='')}:{MASK}@")

    def _url(self, user: str) -> str:
        if self.unix is not None:
            return f"unix://{user}{quote(self.unix)}" + (f"?db={self.db}" if self.db else "")
        host = f"[{self.host}]" if self.host is not None and ":" in self.host else self.host
        return f"redis://{user}{host}:{self.port}/{self.db}"


class _Dropped(ValueError):
    """The reason to refuse a URL that the parser would silently misread."""


def _refuse_what_would_be_dropped(url: str, scheme: str) -> None:
    parts = urlsplit(url)
    if "@" in parts.query:
        raise _Dropped("it holds an unescaped '?'")
    query = parse_qs(parts.query, keep_blank_values=True)
    if unknown := unknown_option(parts.query, _UNDERSTOOD[scheme]):
        raise _Dropped(unknown)
    if parts.fragment:
        raise _Dropped("it holds an unescaped '#'")
    if scheme == "unix" and "@" in parts.path:
        # The parser would take a password with a slash for the path of the socket.
        raise _Dropped("it holds an unescaped '/' or '@'")
    if twice := _said_twice(parts, query):
        raise _Dropped(f"it names {twice} twice")
    db = query.get("db", [""])[-1]
    for number in (db, parts.path.removeprefix("/") if scheme == "redis" else ""):
        # The parser reads any other text as 0.
        if number and not is_number(number, highest=HIGHEST_DB):
            raise _Dropped(f"the database is not a number from 0 to {HIGHEST_DB}")
    if scheme == "unix" and (not parts.path.startswith("/") or parts.hostname):
        raise _Dropped("the path of a socket is absolute: three slashes in a row")
    if parts.hostname and not is_host(parts.hostname):
        raise _Dropped("its host is not the name of a host")
    if scheme == "redis" and parts.port == 0:
        raise _Dropped("the port is no number from 1 to 65535")


def _said_twice(parts: SplitResult, query: Mapping[str, Sequence[str]]) -> str | None:
    """The part that a URL has twice. The parser would silently take one of the two."""
    before = {"db": parts.scheme == "redis" and parts.path.strip("/"), "username": parts.username}
    before["password"] = parts.password
    names = {"db": "the database", "username": "the user", "password": "the password"}
    return next((names[name] for name, said in query.items() if len(said) > 1 or before[name]), None)
