"""The meaning of an error of Postgres, and what the user can do about it. No error made here shows the password."""

from __future__ import annotations

import re

import psycopg

from pybench.errors import ServerError
from pybench.servers.connection import OWN_WORDS, Meaning
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.rights import NO_PRIVILEGE, postgres_hint

_SHOWN = 200

WRONG_PASSWORD = "28P01"
UNKNOWN_DATABASE = "3D000"
TOO_MANY = "53300"
STARTING = "57P03"
OUT_OF_MEMORY = "53200"

BY_CODE = {
    WRONG_PASSWORD: Meaning("refuses this user and password", "check both; special characters as %XX"),
    TOO_MANY: Meaning("has no session left", "raise its max_connections, or end other clients"),
    STARTING: Meaning("is starting up, recovering or shutting down", "wait, and try again"),
    "57P01": Meaning("ended our session: an administrator ended it, or the server shuts down", "see its log"),
    "57P02": Meaning("ended our session: another one of its processes had crashed", "see its log"),
    "53100": Meaning("has a full disk", "free some space there"),
    OUT_OF_MEMORY: Meaning("is out of memory", "give it more, or lower its max_connections"),
    "57014": Meaning(
        "cancelled a statement: statement_timeout was over, or somebody cancelled it",
        "set statement_timeout to 0 for this user",
    ),
    "25P03": Meaning(
        "ended our session: idle_in_transaction_session_timeout was over",
        "set idle_in_transaction_session_timeout to 0 for this user",
    ),
    "57P05": Meaning("ended our session: idle_session_timeout was over", "set idle_session_timeout to 0 for this user"),
    "25006": Meaning("takes no writes", "is it a standby? give its primary"),
}
"""By SQLSTATE."""

_BY_TEXT = (
    (
        OUT_OF_MEMORY,
        re.compile("shared memory|max_locks_per_transaction"),
        Meaning(
            "has no room for another lock in its shared memory", "raise its max_locks_per_transaction, and restart it"
        ),
    ),
    (
        TOO_MANY,
        re.compile("too many connections for (role|database) "),
        Meaning("has no session left", "raise the CONNECTION LIMIT that it names, or end other clients"),
    ),
)
"""Codes with several causes: the words that tell one cause, and its meaning."""

_QUOTED = frozenset({OUT_OF_MEMORY, "53100", "57014", "25006"})
"""Codes that leave the cause open. The message quotes the server's words, which name it."""


def refused_calls(endpoint: PostgresEndpoint, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
    """The error for a database that refused `calls` of a trial of `strategy`; `first` is its first error."""
    meaning = _meaning(endpoint, code, first) or Meaning("answered with errors", OWN_WORDS)
    return ServerError(
        f'{endpoint.address} {meaning.what}: it refused {calls} of {strategy}: "{first}"', hint=meaning.hint
    )


def _meaning(endpoint: PostgresEndpoint, code: str | None, text: str) -> Meaning | None:
    """The meaning of an error that may come at any time; None for any other error."""
    if code == NO_PRIVILEGE:
        hint = postgres_hint(text, database=endpoint.database, user=endpoint.user)
        return Meaning("does not let this user do what a run needs", hint)
    found = (meaning for of, words, meaning in _BY_TEXT if of == code and words.search(text))
    return next(found, BY_CODE.get(code or ""))


_UNREACHABLE = (
    (re.compile("Connection refused"), Meaning("refuses connections: nothing listens there", "start the server")),
    (re.compile("No such file or directory"), Meaning("is not there: no such socket", "start the server")),
    (re.compile("server closed the connection|Connection reset|connection is lost"), Meaning("hung up", "see its log")),
    (
        re.compile("no password supplied"),
        Meaning(
            "asks for a password",
            "put it into the URL, postgresql://USER:PASSWORD@host/db, best by way of PYBENCH_POSTGRES_URL",
        ),
    ),
    (
        re.compile("authentication method requirement"),
        Meaning(
            "asks for a log-in other than by password",
            "give this user a line with scram-sha-256 in its pg_hba.conf",
        ),
    ),
)
"""Errors of libpq itself, which are in English."""

_BY_WORDS = (
    (re.compile("password authentication failed|SCRAM"), WRONG_PASSWORD),
    (re.compile("remaining connection slots|too many (clients|connections)"), TOO_MANY),
    (re.compile('database ".*" does not exist'), UNKNOWN_DATABASE),
    (re.compile("the database system is"), STARTING),
)
"""English words of a failed log-in, for which psycopg has no SQLSTATE."""


def refused(endpoint: PostgresEndpoint, code: str | None, text: str) -> ServerError:
    """The error for a server that refused with the words `text`."""
    if endpoint.password is not None:
        text = text.replace(endpoint.password.get_secret_value(), "***")
    shown = text.strip()[:_SHOWN]
    meaning = _meaning(endpoint, code, text) or _of_words(endpoint, code, shown)
    words = f": {shown}" if code == NO_PRIVILEGE or code in _QUOTED else ""
    return ServerError(f"{endpoint} {meaning.what}{words}", hint=meaning.hint)


def failed(endpoint: PostgresEndpoint, error: psycopg.Error) -> ServerError:
    """The error for a log-in or a statement that failed."""
    # libpq puts each address that it tried before the words of the server there.
    text = " ".join(str(error).rpartition("FATAL:")[2].split())
    if error.sqlstate is None and "FATAL:" not in str(error):
        for words, meaning in _UNREACHABLE:
            if words.search(text):
                return ServerError(f"{endpoint} {meaning.what}", hint=meaning.hint)
    code = error.sqlstate or next((code for words, code in _BY_WORDS if words.search(text)), None)
    return refused(endpoint, code, text)


def _of_words(endpoint: PostgresEndpoint, code: str | None, text: str) -> Meaning:
    if code == UNKNOWN_DATABASE:
        return Meaning(f"has no database {endpoint.database!r}", "create it: createdb")
    if code == "28000":
        return Meaning(f"does not let this user in: {text}", "see its pg_hba.conf; TLS comes in a later step")
    return Meaning(f"answers with an error: {text}", OWN_WORDS)
