"""Resuming a run: reading the matrix from the manifest, and checking that the conditions are the same as before.

Promises: one folder never mixes figures of different versions, cores, servers or machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pybench.errors import InputError, RecordError
from pybench.masking import MASK, is_masked
from pybench.numbers import plural
from pybench.quota import binding
from pybench.strategies import ServerKind

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.planning.placement import Placement
    from pybench.planning.plan import Plan
    from pybench.records import RunFolder

HINT = "start a new run: trials under different conditions cannot be compared"


def open_run(path: Path) -> RunFolder:
    """The unfinished run folder at `path`. Raises RecordError for another folder, or for a complete run."""
    from pybench.records import RunFolder

    folder = RunFolder.open(path)
    require_unfinished(folder)
    return folder


def require_unfinished(folder: RunFolder) -> None:
    """Raise RecordError when the run in `folder` is complete, or is one side of a gate."""
    if "gate" in folder.manifest:
        raise RecordError(
            f"{folder.path} is a side of a gate: its trials alone would not be pairs", hint="run pybench gate again"
        )
    if folder.manifest["status"] == "complete":
        raise RecordError(
            f"{folder.path} is complete: no trial is left to run", hint=f"pybench report {quote(str(folder.path))}"
        )


def matrix_of(folder: RunFolder, addresses: Mapping[str, Sequence[str]]) -> Matrix:
    """The matrix of a run. `addresses` has its given servers by kind, since a manifest keeps no passwords.

    Raises InputError when an address is needed and missing, or given and not needed.
    """
    from pybench.matrix import matrix_from_mapping

    expanded = dict(folder.manifest["matrix"]["expanded"])
    again = command(folder.manifest, str(folder.path))
    for kind in ServerKind:
        urls = list(addresses.get(kind, ()))
        masked = [url for url in given_servers(folder.manifest, kind) if is_masked(url)]
        if masked and not urls:
            raise InputError(f"the record does not contain the password of {masked[0]}", hint=again)
        if urls:
            name = _taking(folder.manifest, kind, urls, again)
            given = {"url": urls[0]} if len(urls) == 1 else {"urls": urls}
            kept = {key: value for key, value in expanded["backends"][name].items() if key not in ("url", "urls")}
            expanded["backends"] = {**expanded["backends"], name: {**kept, **given}}
    return matrix_from_mapping(expanded)


def _taking(manifest: Mapping[str, Any], kind: str, urls: Sequence[str], again: str) -> str:
    """The backend of the run in `manifest` with the addresses `urls`. Raises InputError where there is none."""
    given, wanted = _given(manifest, kind), len(given_servers(manifest, kind))
    if len(given) == 1 and len(urls) == wanted:
        return next(iter(given))
    raise InputError(
        f"--{kind} gives {plural(len(urls), 'address', 'addresses')}, and the run has {plural(wanted, 'given server')}",
        hint=again if len(given) == 1 else f"write passwords as ${{NAME}} in the matrix, and leave --{kind} out",
    )


def given_servers(manifest: Mapping[str, Any], kind: str) -> list[str]:
    """The addresses of the given servers of `kind` in `manifest`, with passwords masked."""
    return [url for urls in _given(manifest, kind).values() for url in urls]


def _given(manifest: Mapping[str, Any], kind: str) -> dict[str, list[str]]:
    """The addresses of each given backend of `kind`."""
    backends = manifest["matrix"]["expanded"]["backends"].items()
    # In an old record, a backend without a kind is a Redis backend.
    of_kind = {name: _urls(backend) for name, backend in backends if backend.get("kind", "redis") == kind}
    return {name: urls for name, urls in of_kind.items() if urls}


def _urls(backend: Mapping[str, Any]) -> list[str]:
    return list(backend.get("urls", ())) or ([backend["url"]] if "url" in backend else [])


def command(manifest: Mapping[str, Any], folder: str) -> str:
    """The command that resumes the run in `folder`, with placeholders for passwords."""
    again: list[str] = []
    for kind in ServerKind:
        given = list(_given(manifest, kind).values())
        if len(given) == 1 and any(is_masked(url) for url in given[0]):
            again += [f"--{kind} {_to_fill_in(url)}" for url in given[0]]
    return " ".join(["pybench run --resume", quote(folder), *again])


def _to_fill_in(url: str) -> str:
    # A user without a password is masked too, since it may be a misplaced password.
    return url.replace(f"://{MASK}@", "://USER@").replace(MASK, "PASSWORD")


def require_same(
    manifest: Mapping[str, Any], plan: Plan, placement: Placement, servers: Sequence[Mapping[str, Any]]
) -> None:
    """Raise InputError with the differences between the run in `manifest` and the conditions now."""
    differences = list(_differences(manifest, plan, placement, servers))
    if differences:
        raise InputError(f"this run cannot be resumed here: {'; '.join(differences)}", hint=HINT)


def _differences(
    manifest: Mapping[str, Any], plan: Plan, placement: Placement, servers: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    from pybench.machine import describe_machine
    from pybench.planning.placement import Placement
    from pybench.records.manifest import describe_versions

    before, now = manifest["versions"], describe_versions()
    for part in ("pybench", "core"):
        if before.get(part) != now.get(part):
            yield f"{part} {before.get(part)} began the run, and this is {part} {now.get(part)}"
    if [cell["id"] for cell in manifest["cells"]] != [cell.id for cell in plan.cells]:
        yield "the matrix now gives other cells"
    elif manifest["order"] != [list(block) for block in plan.order]:
        yield "the seed now gives another order of cells"
    before_on, now_on = _named(manifest["servers"]), _named(servers)
    if before_on != now_on:
        yield f"the run used {', '.join(before_on)}, and now there is {', '.join(now_on)}"
    cores_before, cores_now = manifest.get("placement") or Placement().manifest(), placement.manifest()
    if cores_before != cores_now:
        yield f"the run was bound to {_cores(cores_before)}, and now it would be bound to {_cores(cores_now)}"
    yield from _other_settings(manifest["servers"], servers)
    yield from _other_machine(manifest["machine"], describe_machine())


_MACHINE = {
    "cpu": "",
    "cores": " cores",
    "memory_bytes": " bytes of memory",
    "kernel": " (kernel)",
}
"""The facts that identify a machine, each with the unit for its text."""


def _other_machine(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The differences between the machines, in facts that the older record has."""
    for name, unit in _MACHINE.items():
        if before.get(name) is not None and before[name] != now.get(name):
            yield f"the machine of the run had {before[name]}{unit}, and this machine has {now.get(name)}{unit}"
    # None is a value here: no control group limits the run.
    if "cpu_quota" in before:
        quotas = [binding(machine.get("cpu_quota"), machine.get("cores_allowed")) for machine in (before, now)]
        if quotas[0] != quotas[1]:
            yield f"the run had {_quota(quotas[0])}, and this one would have {_quota(quotas[1])}"


def _quota(quota: float | None) -> str:
    return "no CPU quota" if quota is None else f"a CPU quota of {quota:g} cores"


def _other_settings(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The differences between the settings of the servers, where both records have the setting."""
    for earlier, later in zip(before, now, strict=False):
        settings, today = earlier.get("settings") or {}, later.get("settings") or {}
        for name in sorted(settings.keys() & today.keys()):
            if settings[name] != today[name]:
                before_text, now_text = _value_text(settings[name]), _value_text(today[name])
                yield f"{earlier['label']} had {name} {before_text}, and now has {now_text}"


def _value_text(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else "none" if value is None else str(value)


def _cores(placement: Mapping[str, list[int]]) -> str:
    """Such as `the cores 1 (load threads) and 0 (servers)`."""
    users = {"drivers": "load threads"}
    named = [f"{', '.join(map(str, cores))} ({users.get(use, use)})" for use, cores in placement.items() if cores]
    return f"the cores {' and '.join(named)}" if named else "no cores"


def _named(servers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Product, version and address of each server; the address matters, since a port is slower than a socket."""
    return [" at ".join(filter(None, (server["label"], server["address"]))) for server in servers]
