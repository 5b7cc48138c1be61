"""The user that Postgres is run as: it refuses root, so that for root it is `nobody`, and otherwise whoever we are.

Promises: makes no account, and changes nothing of a file that is not ours. A program that this user cannot execute, for
a virtual environment below root's home is closed to it, is copied once to where it can.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import pwd
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from pybench.errors import ServerError
from pybench.servers.postgres import cache
from pybench.servers.postgres.binaries import WHEEL, beside
from pybench.servers.programs import Binary

UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine."""

    name: str
    user: int
    group: int

    @property
    def numbers(self) -> tuple[int, int]:
        """User and group."""
        return self.user, self.group


def account() -> Account | None:
    """Whom to run Postgres as; None: ourselves. Raises ServerError when there is nobody."""
    if os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        # initdb looks its user up, so that a number of nobody's does not do.
        raise ServerError(
            f"Postgres refuses to be run by root, and there is no user {UNPRIVILEGED!r} to run it as",
            hint="run pybench as another user, or give a server with --postgres URL",
        ) from None
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def require_name() -> None:
    """Raise ServerError where we are a user without an entry in the system's list: initdb looks its own up.

    The server does not, so that one whose data are there already can be started.
    """
    number = os.geteuid()
    try:
        pwd.getpwuid(number)
    except KeyError:
        raise ServerError(
            f"Postgres cannot be set up: the user number {number} of this process has no name here",
            hint="run pybench as a user that the system knows, or give a server with --postgres URL",
        ) from None


def executable(binary: Binary, runs_as: Account | None) -> Binary:
    """`binary`, or a copy of it that `runs_as` can execute. Raises ServerError."""
    if runs_as is None or _runs(binary, runs_as):
        return binary
    if not binary.source.startswith("wheel "):
        raise ServerError(
            f"the user {runs_as.name}, as whom root runs Postgres, cannot execute {binary.path}",
            hint="let it read that folder, or run pybench as another user",
        )
    copied = replace(binary, path=_copied(binary))
    if not _runs(copied, runs_as):
        raise ServerError(
            f"the user {runs_as.name}, as whom root runs Postgres, cannot execute {copied.path}",
            hint=f"set {cache.ENVIRONMENT} to a folder that all users can pass through",
        )
    return copied


@functools.cache
def _runs(binary: Binary, runs_as: Account) -> bool:
    try:
        answers = [
            subprocess.run(
                [program, "--version"],
                user=runs_as.user,
                group=runs_as.group,
                extra_groups=[],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=5,
                check=False,
            ).returncode
            for program in (binary.path, beside(binary, "initdb"))
        ]
    except PermissionError:
        return False
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(
            f"cannot run {binary.path} as the user {runs_as.name}: {error}",
            hint="run pybench as another user, or give a server with --postgres URL",
        ) from error
    return not any(answers)


def _copied(binary: Binary) -> Path:
    """The program in a copy of its wheel that is kept, made where there is none yet."""
    package = binary.path.parents[2]
    # The wheel's own list of its files, with a hash of each.
    record = importlib.metadata.distribution(WHEEL).read_text("RECORD") or ""
    key = f"{WHEEL}-{importlib.metadata.version(WHEEL)}-{hashlib.sha256(record.encode()).hexdigest()[:12]}"
    kept = cache.find(key)
    if kept is None:
        libraries = package.with_name(f"{package.name}.libs")
        folders = {f"{package.name}/pginstall": package / "pginstall", libraries.name: libraries}
        kept = cache.keep(key, {name: path for name, path in folders.items() if path.is_dir()})
    return kept / package.name / binary.path.relative_to(package)
