"""Going on where a run stopped: its matrix again, from its own manifest, and whether trials of now fit those of then.

Promises: figures of another version, core, server or machine never come into one folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.errors import InputError, RecordError

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.plan import Plan
    from pybench.records import RunFolder

HINT = "start a new run: what was measured apart cannot be ranked together"


def open_run(path: Path) -> RunFolder:
    """The run folder at `path`, which lacks trials. Raises RecordError when it is none, or is complete."""
    from pybench.records import RunFolder

    folder = RunFolder.open(path)
    if folder.manifest["status"] == "complete":
        raise RecordError(f"{path} is complete: nothing is left to run", hint=f"pybench report {path}")
    return folder


def matrix_of(folder: RunFolder, redis: str | None) -> Matrix:
    """The matrix of a run. `redis` is the address of its given server, for a manifest keeps no password.

    Raises InputError when the address has to be given and was not, or when there is none to take it.
    """
    from pybench.matrix import matrix_from_mapping

    expanded = dict(folder.manifest["matrix"]["expanded"])
    given = [name for name, backend in expanded["backends"].items() if "url" in backend]
    if redis is not None:
        if len(given) != 1:
            raise InputError(
                f"--redis says one address, and the run has {len(given)} given servers",
                hint="write their passwords as ${NAME} in the matrix, and leave --redis out",
            )
        expanded["backends"] = {**expanded["backends"], given[0]: {"kind": "redis", "url": redis}}
    return matrix_from_mapping(expanded)


def require_same(manifest: Mapping[str, Any], plan: Plan, servers: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError naming what differs between the run in `manifest` and one that would go on with it now."""
    differences = list(_differences(manifest, plan, servers))
    if differences:
        raise InputError(f"the run cannot go on here: {'; '.join(differences)}", hint=HINT)


def _differences(manifest: Mapping[str, Any], plan: Plan, servers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from pybench.records.machine import describe_machine
    from pybench.records.manifest import describe_versions

    before, now = manifest["versions"], describe_versions()
    for part in ("pybench", "core"):
        if before.get(part) != now.get(part):
            yield f"it was begun by {part} {before.get(part)}, this is {now.get(part)}"
    if [cell["id"] for cell in manifest["cells"]] != [cell.id for cell in plan.cells]:
        yield "its cells are not those that the matrix makes now"
    elif manifest["order"] != [list(block) for block in plan.order]:
        yield "its order is not the one that its seed makes now"
    labels = [[server.get("label") for server in which] for which in (manifest["servers"], servers)]
    if labels[0] != labels[1]:
        yield f"it ran on {', '.join(map(str, labels[0]))}, now there is {', '.join(map(str, labels[1]))}"
    cpus = manifest["machine"].get("cpu"), describe_machine().get("cpu")
    if cpus[0] != cpus[1]:
        yield f"it ran on {cpus[0]}, this is {cpus[1]}"
