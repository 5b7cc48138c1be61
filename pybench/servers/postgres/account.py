"""The user that runs Postgres: the user of this process, or `nobody` for root, which Postgres refuses.

Promises: creates no account, and changes no file of another user. A program that `nobody` cannot execute, as in a
virtual environment below root's home, is copied once to a folder where it can.
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
    """The user to run Postgres as; None: the user of this process. Raises ServerError when there is none."""
    if os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        # initdb looks up the name of its user, so that an unused number does not do.
        raise ServerError(
            f"Postgres refuses to be run by root, and there is no user {UNPRIVILEGED!r} to run it as",
            hint="run pybench as another user, or give a server with --postgres URL",
        ) from None
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def require_name() -> None:
    """Raise ServerError where the user of this process has no name, which initdb looks up.

    The server itself needs no name: it can start where its data folder exists already.
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
    """The program in a copy of its wheel, which is made where the cache has none."""
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
