"""The address of one Postgres database, with the credentials for it.

Promises: no text made from an endpoint, and no error raised here, contains the password.
Does not connect; `pybench.servers.postgres.probe` finds out what stands behind it.
"""

from __future__ import annotations

import getpass
import os
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from pybench.errors import InputError
from pybench.notation import is_text, visible
from pybench.servers.addresses import AS_CODES, is_host, is_number, scheme_of, shown_address, unreadable

DEFAULT_PORT: Final = 5432
DEFAULT_FOLDER: Final = "/var/run/postgresql"
"""The folder of the socket on Debian and its kin, for an address without host and folder."""

_FORMS = "postgresql://[user[:password]@]host[:port]/database or postgresql:///database?host=/socket/folder"
_SCHEMES = ("postgresql", "postgres")
_UNDERSTOOD = {"host", "hostaddr", "port", "user", "password", "dbname", "sslmode"}
_NAMES = {
    "user": "the user",
    "password": "the password",
    "dbname": "the database",
    "port": "the port",
    "host": "the host",
}
_WITHOUT_TLS = {"disable", "allow", "prefer"}


@dataclass(frozen=True, slots=True)
class PostgresEndpoint:
    """Either the folder of a Unix socket, or a host; and a port, which is part of the socket's name, too."""

    user: str
    database: str
    folder: str | None = None
    host: str | None = None
    port: int = DEFAULT_PORT
    password: SecretStr | None = None

    def __post_init__(self) -> None:
        assert (self.folder is None) != (self.host is None), "an endpoint is a folder or a host"

    def core_spec(self, host: str | None, **server: object) -> dict[str, Any]:
        """For the Rust core, with the numeric address of the host: the core resolves no names."""
        return {
            "unix": self.unix,
            "host": host,
            "port": self.port,
            "user": self.user,
            "password": None if self.password is None else self.password.get_secret_value(),
            "database": self.database,
            **server,
        }

    @classmethod
    def parse(cls, url: str | SecretStr) -> PostgresEndpoint:
        """Read a URL. Raises InputError that names it without its password."""
        text = (url.get_secret_value() if isinstance(url, SecretStr) else url).strip()
        shown = shown_address(text)
        scheme = scheme_of(text)
        if scheme not in _SCHEMES:
            hint = "--redis takes it" if scheme in ("redis", "unix") else f"give {_FORMS}"
            raise InputError(f"{shown} is not the URL of a Postgres database", hint=hint)
        if wrong := unreadable(text):
            raise InputError(f"{shown}: {wrong.reason}", hint=f"give {_FORMS}; {wrong.hint}")
        reason = _reason_to_refuse(text)
        try:
            # libpq knows its schemes in lower case only.
            parts = {} if reason else conninfo_to_dict(re.sub(r"^\w+", lambda scheme: scheme[0].lower(), text))
        except ProgrammingError:
            # Without its cause: the parser quotes pieces of the URL, and a piece of a password may be among them.
            reason = "it cannot be parsed"
        if not reason:
            reason = _said_twice(text) or _reason_to_refuse_parts({name: str(value) for name, value in parts.items()})
        if reason:
            raise InputError(f"{shown}: {reason}", hint=f"give {_FORMS}; {AS_CODES}") from None
        return cls._of({name: str(value) for name, value in parts.items()})

    @classmethod
    def _of(cls, parts: dict[str, str]) -> PostgresEndpoint:
        place = parts.get("hostaddr") or parts.get("host") or DEFAULT_FOLDER
        is_folder = place.startswith("/")
        user = parts.get("user") or _own_name()
        return cls(
            user=user,
            database=parts.get("dbname") or user,
            folder=place if is_folder else None,
            host=None if is_folder else place,
            port=int(parts.get("port") or DEFAULT_PORT),
            password=SecretStr(parts["password"]) if parts.get("password") else None,
        )

    @property
    def unix(self) -> str | None:
        """The path of the Unix socket; None: it is a host and a port."""
        return None if self.folder is None else f"{self.folder.rstrip('/')}/.s.PGSQL.{self.port}"

    @property
    def has_secret(self) -> bool:
        """Whether the address holds a secret."""
        return self.password is not None

    @property
    def address(self) -> str:
        """Where it is, without credentials."""
        return self._url("")

    def __str__(self) -> str:
        secret = ":***" if self.password is not None else ""
        return self._url(f"{quote(self.user, safe='')}{secret}@")

    def _url(self, user: str) -> str:
        database = quote(self.database, safe="")
        if self.folder is not None:
            port = f"&port={self.port}" if self.port != DEFAULT_PORT else ""
            return f"postgresql://{user}/{database}?host={quote(self.folder)}{port}"
        host = f"[{self.host}]" if self.host is not None and ":" in self.host else self.host
        return f"postgresql://{user}{host}:{self.port}/{database}"


def _own_name() -> str:
    """The name of the user of this process. Raises InputError where there is none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        message = f"the address names no user, and the user number {os.getuid()} of this process has no name"
        raise InputError(message, hint=f"give {_FORMS}") from None
    if not is_text(name):
        # The name comes from LOGNAME or USER, and no client could send it.
        message = f"the address names no user, and that of this process is not UTF-8: {visible(name)}"
        raise InputError(message, hint=f"give {_FORMS}")
    return name


def _said_twice(url: str) -> str | None:
    """The part that a URL has twice. libpq would silently take one of the two."""
    place, _, query = url.partition("://")[2].partition("?")
    authority, _, database = place.partition("/")
    user, _, host = authority.rpartition("@")
    name, colon, password = user.partition(":")
    port = re.search(r":(\d+)$", host)
    before = {"user": name, "password": colon and password, "dbname": database, "port": port, "host": host}
    said: set[str] = set()
    for option in filter(None, query.split("&")):
        key = unquote(option.partition("=")[0])
        if key in said or before.get(key):
            return f"it names {_NAMES.get(key, 'an option')} twice"
        said.add(key)
    return None


def _reason_to_refuse(url: str) -> str | None:
    """Why to refuse a URL that the parser would silently misread."""
    if "#" in url:
        return "it holds an unescaped '#'"
    place, _, query = url.partition("://")[2].partition("?")
    authority, _, database = place.partition("/")
    # With two of them the rest of a password would become the host, which is looked up and shown.
    if authority.count("@") > 1 or "@" in database + query:
        return "it holds an unescaped '@', '/' or '?'"
    return None


def _reason_to_refuse_parts(parts: dict[str, str]) -> str | None:
    unknown = sorted(set(parts) - _UNDERSTOOD)
    if unknown:
        return f"unknown option {unknown[0]!r}"
    if parts.get("sslmode", "prefer") not in _WITHOUT_TLS:
        return f"TLS comes in a later step: sslmode={parts['sslmode']} asks for it"
    if any("," in parts.get(name, "") for name in ("host", "hostaddr", "port")):
        return "it names several servers"
    if any(not is_host(parts[name]) for name in ("host", "hostaddr") if not parts.get(name, "/").startswith("/")):
        return "its host is not the name of a host"
    if not is_number(port := parts.get("port", "1"), highest=65535) or not int(port):
        return "the port is no number from 1 to 65535"
    return None
