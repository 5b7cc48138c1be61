"""Start a Postgres for one run.

Promises: the server runs in a private folder, also when we are root, whom it refuses; it listens on a Unix socket
there, and on loopback only where that is asked for, with a password of its own; `supervised` says how it ends.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers.folder import ServerFolder
from pybench.servers.keeper import POSTGRES_DATA
from pybench.servers.postgres import account, config
from pybench.servers.postgres.account import Account
from pybench.servers.postgres.connecting import session
from pybench.servers.postgres.endpoint import DEFAULT_PORT, PostgresEndpoint
from pybench.servers.postgres.probe import PostgresFacts, probe
from pybench.servers.postgres.template import make_data
from pybench.servers.programs import Binary
from pybench.servers.supervised import LOOPBACK, START_S, Launch, Supervised, Transport, free_port, launched

ENDINGS = (signal.SIGINT, signal.SIGQUIT)
"""SIGINT ends the sessions of its clients. SIGQUIT ends it without writing its memory to disk."""

_READY = "ready"


class SupervisedPostgres(Supervised):
    """A server that `start` started."""

    def __init__(self, binary: Binary, endpoint: PostgresEndpoint, folder: ServerFolder, launch: Launch) -> None:
        super().__init__(binary, folder, launch, endpoint.password)
        self.endpoint = endpoint

    @property
    def private(self) -> PostgresEndpoint:
        """Its Unix socket, which other users cannot reach, and which asks for no password."""
        return replace(self.endpoint, folder=str(self.folder / POSTGRES_DATA), host=None, password=None)

    def wait_until_ready(self) -> PostgresFacts:
        """Wait until it answers. Raises ServerError with the end of its log when it does not."""
        self.await_ready(lambda: self._has_noted_that_it_is_ready() or None)
        if self.endpoint.password is not None:
            _set_password(self.private, self.endpoint.password)
        return probe(self.endpoint, seconds=START_S)

    def _has_noted_that_it_is_ready(self) -> bool:
        try:
            lines = (self.folder / POSTGRES_DATA / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        # A killed server leaves the file, which then tells of the process before.
        return len(lines) > 7 and lines[0].strip() == str(self.pid) and lines[7].strip() == _READY


@dataclass(frozen=True, slots=True)
class _Wanted:
    transport: Transport
    sessions: int
    cores: Sequence[int]
    runs_as: Account | None


def start(
    binary: Binary, *, transport: Transport = "unix", sessions: int = 0, cores: Sequence[int] = ()
) -> tuple[SupervisedPostgres, PostgresFacts]:
    """A new server that answers, and its facts.

    It takes at least `sessions` sessions, and keeps to `cores` where any are named. Raises ServerError.
    """
    runs_as = account.account()
    binary = account.executable(binary, runs_as)
    wanted = _Wanted(transport, sessions, cores, runs_as)
    return launched(lambda: _launch(binary, wanted), SupervisedPostgres.wait_until_ready)


def _launch(binary: Binary, wanted: _Wanted) -> SupervisedPostgres:
    runs_as = wanted.runs_as
    port = free_port() if wanted.transport == "tcp" else None
    socket = f"{POSTGRES_DATA}/.s.PGSQL.{port or DEFAULT_PORT}"
    folder = ServerFolder.create(socket=socket, group=None if runs_as is None else runs_as.group)
    try:
        data = folder.path / POSTGRES_DATA
        make_data(binary, runs_as, data)
        config.write(data, sessions=wanted.sessions, port=port)
        launch = Launch(
            (str(binary.path), "-D", str(data)),
            files=config.FILES_WANTED,
            cores=wanted.cores,
            user=None if runs_as is None else runs_as.numbers,
            endings=ENDINGS,
        )
        return SupervisedPostgres(binary, _endpoint(data, port), folder, launch)
    except OSError as error:
        folder.remove()
        raise ServerError(
            f"cannot prepare a data folder for Postgres in {folder.path.parent}: {error.strerror}",
            hint="free some space there, or set TMPDIR",
        ) from error
    except BaseException:
        folder.remove()
        raise


def _endpoint(data: Path, port: int | None) -> PostgresEndpoint:
    if port is None:
        return PostgresEndpoint(config.ROLE, config.DATABASE, folder=str(data))
    # Every user of this machine can reach a port.
    password = SecretStr(secrets.token_hex(16))
    return PostgresEndpoint(config.ROLE, config.DATABASE, host=LOOPBACK, port=port, password=password)


def _set_password(private: PostgresEndpoint, password: SecretStr) -> None:
    """Set the password of our role. The server gets only the verifier that SCRAM needs."""
    with session(private, seconds=START_S) as opened:
        verifier = opened.pgconn.encrypt_password(
            password.get_secret_value().encode(), private.user.encode(), b"scram-sha-256"
        )
        opened.execute(f"ALTER ROLE {config.ROLE} PASSWORD '{verifier.decode()}'".encode())
