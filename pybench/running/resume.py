"""Going on where a run stopped: its matrix again, from its own manifest, and whether trials of now fit those of then.

Promises: figures of another version, core, server or machine never come into one folder.
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

HINT = "start a new run: what was measured apart cannot be ranked together"


def open_run(path: Path) -> RunFolder:
    """The run folder at `path`, which lacks trials. Raises RecordError when it is none, or is complete."""
    from pybench.records import RunFolder

    folder = RunFolder.open(path)
    require_unfinished(folder)
    return folder


def require_unfinished(folder: RunFolder) -> None:
    """Raise RecordError when the run in `folder` is complete."""
    if folder.manifest["status"] == "complete":
        raise RecordError(
            f"{folder.path} is complete: nothing is left to run", hint=f"pybench report {quote(str(folder.path))}"
        )


def matrix_of(folder: RunFolder, addresses: Mapping[str, Sequence[str]]) -> Matrix:
    """The matrix of a run. `addresses` are those of its given servers, by kind, for a manifest keeps no password.

    Raises InputError when they have to be given and were not, or when there are none to take them.
    """
    from pybench.matrix import matrix_from_mapping

    expanded = dict(folder.manifest["matrix"]["expanded"])
    again = command(folder.manifest, str(folder.path))
    for kind in ServerKind:
        urls = list(addresses.get(kind, ()))
        masked = [url for url in given_servers(folder.manifest, kind) if is_masked(url)]
        if masked and not urls:
            raise InputError(f"the password of {masked[0]} is not in the record", hint=again)
        if urls:
            name = _taking(folder.manifest, kind, urls, again)
            given = {"url": urls[0]} if len(urls) == 1 else {"urls": urls}
            kept = {key: value for key, value in expanded["backends"][name].items() if key not in ("url", "urls")}
            expanded["backends"] = {**expanded["backends"], name: {**kept, **given}}
    return matrix_from_mapping(expanded)


def _taking(manifest: Mapping[str, Any], kind: str, urls: Sequence[str], again: str) -> str:
    """The backend of the run in `manifest` that `urls` are the addresses of. Raises InputError where there is none."""
    given, wanted = _given(manifest, kind), len(given_servers(manifest, kind))
    if len(given) == 1 and len(urls) == wanted:
        return next(iter(given))
    raise InputError(
        f"--{kind} says {plural(len(urls), 'address', 'addresses')}, and the run has {plural(wanted, 'given server')}",
        hint=again if len(given) == 1 else f"write their passwords as ${{NAME}} in the matrix, and leave --{kind} out",
    )


def given_servers(manifest: Mapping[str, Any], kind: str) -> list[str]:
    """The addresses of the servers of `kind` that the run in `manifest` was given, passwords masked."""
    return [url for urls in _given(manifest, kind).values() for url in urls]


def _given(manifest: Mapping[str, Any], kind: str) -> dict[str, list[str]]:
    """The addresses of each given backend of `kind`."""
    backends = manifest["matrix"]["expanded"]["backends"].items()
    # Of before there were others, a backend may not say its kind.
    of_kind = {name: _urls(backend) for name, backend in backends if backend.get("kind", "redis") == kind}
    return {name: urls for name, urls in of_kind.items() if urls}


def _urls(backend: Mapping[str, Any]) -> list[str]:
    return list(backend.get("urls", ())) or ([backend["url"]] if "url" in backend else [])


def command(manifest: Mapping[str, Any], folder: str) -> str:
    """What to type to go on with the run in `folder`; a password that its manifest does not keep is to be filled in."""
    again: list[str] = []
    for kind in ServerKind:
        given = list(_given(manifest, kind).values())
        if len(given) == 1 and any(is_masked(url) for url in given[0]):
            again += [f"--{kind} {_to_fill_in(url)}" for url in given[0]]
    return " ".join(["pybench run --resume", quote(folder), *again])


def _to_fill_in(url: str) -> str:
    # A user that stands alone is masked too: it may be a password that was put in its place.
    return url.replace(f"://{MASK}@", "://USER@").replace(MASK, "PASSWORD")


def require_same(
    manifest: Mapping[str, Any], plan: Plan, placement: Placement, servers: Sequence[Mapping[str, Any]]
) -> None:
    """Raise InputError naming what differs between the run in `manifest` and one that would go on with it now."""
    differences = list(_differences(manifest, plan, placement, servers))
    if differences:
        raise InputError(f"the run cannot go on here: {'; '.join(differences)}", hint=HINT)


def _differences(
    manifest: Mapping[str, Any], plan: Plan, placement: Placement, servers: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    from pybench.machine import describe_machine
    from pybench.planning.placement import Placement
    from pybench.records.manifest import describe_versions

    before, now = manifest["versions"], describe_versions()
    for part in ("pybench", "core"):
        if before.get(part) != now.get(part):
            yield f"it was begun by {part} {before.get(part)}, this is {now.get(part)}"
    if [cell["id"] for cell in manifest["cells"]] != [cell.id for cell in plan.cells]:
        yield "its cells are not those that the matrix makes now"
    elif manifest["order"] != [list(block) for block in plan.order]:
        yield "its order is not the one that its seed makes now"
    before_on, now_on = _named(manifest["servers"]), _named(servers)
    if before_on != now_on:
        yield f"it ran on {', '.join(before_on)}, now there is {', '.join(now_on)}"
    kept_to, would_keep_to = manifest.get("placement") or Placement().manifest(), placement.manifest()
    if kept_to != would_keep_to:
        yield f"it kept to {_cores(kept_to)}, now it would keep to {_cores(would_keep_to)}"
    yield from _other_settings(manifest["servers"], servers)
    yield from _other_machine(manifest["machine"], describe_machine())


_MACHINE = {
    "cpu": "",
    "cores": " cores",
    "memory_bytes": " bytes of memory",
    "kernel": " (kernel)",
}
"""What a machine is known by, and what follows the value in words."""


def _other_machine(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What of the machine differs; what an older record does not have is not asked."""
    for name, unit in _MACHINE.items():
        if before.get(name) is not None and before[name] != now.get(name):
            yield f"it ran on {before[name]}{unit}, this is {now.get(name)}{unit}"
    # Here None says something: no group limits the run.
    if "cpu_quota" in before:
        quotas = [binding(machine.get("cpu_quota"), machine.get("cores_allowed")) for machine in (before, now)]
        if quotas[0] != quotas[1]:
            yield f"it ran {_quota(quotas[0])}, this would run {_quota(quotas[1])}"


def _quota(quota: float | None) -> str:
    return "without a CPU quota" if quota is None else f"under a CPU quota of {quota:g} cores' worth"


def _other_settings(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What of the settings of the same servers differs, as far as both records have them."""
    for earlier, later in zip(before, now, strict=False):
        settings, today = earlier.get("settings") or {}, later.get("settings") or {}
        for name in sorted(settings.keys() & today.keys()):
            if settings[name] != today[name]:
                yield f"{earlier['label']} had {name} {_said(settings[name])}, now it has {_said(today[name])}"


def _said(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else "none" if value is None else str(value)


def _cores(placement: Mapping[str, list[int]]) -> str:
    """Such as `the cores 1 (drivers) and 0 (servers)`."""
    named = [f"{', '.join(map(str, cores))} ({side})" for side, cores in placement.items() if cores]
    return f"the cores {' and '.join(named)}" if named else "no cores"


def _named(servers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Product, version and the address of given servers: a call to one takes longer by its port than by its socket."""
    return [" at ".join(filter(None, (server["label"], server["address"]))) for server in servers]
