"""What differs between two runs besides their figures: servers, machine, versions, and how long and often was measured.

Manifests of older versions lack some facts. A fact that only one run has is no difference, except a setting of a server
of the same product: then the other version has no such setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOT_SET = "not set"
_MACHINE = ("cpu", "cores", "cores_allowed", "cpu_quota", "memory_bytes", "kernel", "architecture")
_VERSIONS = ("pybench", "core", "build_profile", "python")
_PLAN = ("trials", "duration", "warmup")
_BASELINE = ("backend", "appendfsync", "poll")
BASELINE_BAND = 0.1
"""An idle call that takes so much longer or shorter is listed: the machine or the network differs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs; both values in words."""

    what: str
    old: str
    new: str

    @property
    def text(self) -> str:
        """The difference on one line."""
        return f"{self.what}: {self.old} -> {self.new}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any], *, baselines: bool = True) -> list[Difference]:
    """The differences between two manifests, servers first.

    Without `baselines`, idle calls are left out: where trials are pairs, a single measurement of each side is noise.
    """
    found = [*_servers(old, new), *(_baselines(old, new) if baselines else ())]
    for group, names in (("machine", _MACHINE), ("versions", _VERSIONS)):
        found += _facts(old.get(group) or {}, new.get(group) or {}, names)
    found += _commits(old, new)
    expanded = [(manifest.get("matrix") or {}).get("expanded") or {} for manifest in (old, new)]
    found += _facts(expanded[0], expanded[1], _PLAN)
    return found


def _servers(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    by_kind = [_by_kind(manifest.get("servers") or ()) for manifest in (old, new)]
    for kind in dict.fromkeys([*by_kind[0], *by_kind[1]]):
        here, there = (servers.get(kind, []) for servers in by_kind)
        if not here or not there:
            continue  # Locks of this kind are in one run only, and match no cell.
        if len(here) != len(there):
            yield Difference(f"{kind} servers", str(len(here)), str(len(there)))
        for number, (one, other) in enumerate(zip(here, there, strict=False)):
            what = kind if len(here) == 1 else f"{kind}[{number}]"
            yield from _server(what, one, other)


def _by_kind(servers: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Valkey and Redis are servers of one kind."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for server in servers:
        kind = "postgres" if server.get("product") == "postgres" else "redis"
        found.setdefault(kind, []).append(server)
    return found


def _server(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    label = [str(server.get("label")) for server in (old, new)]
    if label[0] != label[1]:
        yield Difference(what, *label)
    source = [str(server.get("address") or server.get("source")) for server in (old, new)]
    if source[0] != source[1] and label[0] == label[1]:
        yield Difference(f"{what} from", *source)
    settings = [
        {name: value for name, value in (server.get("settings") or {}).items() if name not in ("product", "version")}
        for server in (old, new)
    ]
    of_one_product = old.get("product") == new.get("product")
    for name in dict.fromkeys([*settings[0], *settings[1]]):
        values = [_say(one[name]) if name in one else NOT_SET for one in settings]
        if values[0] != values[1] and (of_one_product or NOT_SET not in values):
            yield Difference(f"{what} {name}", *values)


def _baselines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    known = [_idle_calls(manifest) for manifest in (old, new)]
    for call in known[0]:
        here, there = (one.get(call) for one in known)
        if here and there and abs(there / here - 1) > BASELINE_BAND:
            yield Difference(f"idle call to {call[0]}", f"{here:.1f} µs", f"{there:.1f} µs")


def _idle_calls(manifest: Mapping[str, Any]) -> dict[tuple[str, ...], float | None]:
    baselines = manifest.get("baseline") or ()
    return {tuple(str(one.get(name)) for name in _BASELINE): one.get("round_trip_us") for one in baselines}


def _facts(old: Mapping[str, Any], new: Mapping[str, Any], names: Sequence[str]) -> Iterator[Difference]:
    for name in names:
        if old.get(name) is not None and new.get(name) is not None and old[name] != new[name]:
            yield Difference(name.replace("_", " "), _say(old[name]), _say(new[name]))


def _commits(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    commits = [(manifest.get("versions") or {}).get("commit") or {} for manifest in (old, new)]
    told = [f"{str(one.get('id', ''))[:12]}{', with changes' if one.get('dirty') else ''}" for one in commits]
    if all(commits) and told[0] != told[1]:
        yield Difference("commit", *told)


def _say(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
