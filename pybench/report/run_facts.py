"""The facts that a manifest has about a run, as rows of words: pure functions that accept older records."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pybench.matrix.durations import format_duration
from pybench.matrix.faults import recorded_faults
from pybench.matrix.guards import recorded_guard
from pybench.matrix.stages import recorded_stages
from pybench.numbers import format_bytes, format_exact, format_us, plural

Rows = list[tuple[str, str]]


def run_name(manifest: Mapping[str, Any]) -> str:
    """The name of the run's matrix."""
    return str(manifest.get("name") or "run")


def when(manifest: Mapping[str, Any]) -> str:
    """When the run began: "2026-03-14 09:26 UTC"."""
    started = manifest.get("started_at")
    if not started:
        return ""
    moment = datetime.fromisoformat(str(started))
    zone = " UTC" if moment.utcoffset() is not None and not moment.utcoffset() else ""
    return f"{moment:%Y-%m-%d %H:%M}{zone}"


def command_line(manifest: Mapping[str, Any]) -> str:
    """The command that repeats the run, ready for a shell."""
    command = manifest.get("command") or []
    return shlex.join(str(word) for word in command)


def server_labels(manifest: Mapping[str, Any]) -> str:
    """The servers in a few words: "valkey 9.1.0"."""
    labels = dict.fromkeys(str(server.get("label", "server")) for server in manifest.get("servers", []))
    return ", ".join(labels)


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server: figures depend most on its `settings`, less on the `further` ones."""

    label: str
    where: str
    settings: str
    further: str


# The settings of a Postgres that affect figures most: it has too many to show them all first.
MAIN_SETTINGS = (
    "transport",
    "fsync",
    "synchronous_commit",
    "synchronous_standby_names",
    "full_page_writes",
    "wal_level",
    "max_connections",
    "shared_buffers_bytes",
    "deadlock_timeout_ms",
    "default_transaction_isolation",
    "pooled",
)


def server_rows(manifest: Mapping[str, Any]) -> list[ServerRow]:
    """Label, source or address, and settings of each server."""
    rows = []
    for server in manifest.get("servers", []):
        source = str(server.get("source") or "")
        where = f"{source}, {server['address']}" if server.get("address") else source
        # Product and version are in the label.
        named = {name: value for name, value in (server.get("settings") or {}).items() if name not in server}
        of_database = server.get("product") == "postgres"
        first = {name: named[name] for name in MAIN_SETTINGS if name in named} if of_database else named
        rest = {name: value for name, value in named.items() if name not in first}
        rows.append(ServerRow(str(server.get("label", "server")), where, _settings(first), _settings(rest)))
    return rows


def _settings(named: Mapping[str, Any]) -> str:
    return ", ".join(_setting(name, value) for name, value in named.items())


def _setting(name: str, value: object) -> str:
    """One setting in words, its unit with its value."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:  # So Postgres says that a limit is off.
            return f"{re.sub('_(ms|s|bytes)$', '', name)} off"
        for suffix, ns in (("_ms", 1_000_000), ("_s", 1_000_000_000)):
            if name.endswith(suffix):
                return f"{name.removesuffix(suffix)} {format_duration(value * ns)}"
        if name.endswith("_bytes"):
            return f"{name.removesuffix('_bytes')} {format_bytes(value)}"
    return f"{name} {say(value)}"


def machine_rows(manifest: Mapping[str, Any]) -> Rows:
    """The machine: processor, cores, memory, system."""
    machine = manifest.get("machine") or {}
    cores, allowed = machine.get("cores"), machine.get("cores_allowed")
    count = f"{cores}, of which pybench may use {allowed}" if allowed and allowed != cores else say(cores)
    memory = machine.get("memory_bytes")
    rows = [
        ("Processor", machine.get("cpu")),
        ("Cores", count if cores else None),
        ("Bound to cores", _bound(manifest.get("placement"))),
        ("Memory", f"{memory / 2**30:.1f} GiB" if memory else None),
        ("System", " ".join(str(machine[key]) for key in ("system", "kernel", "architecture") if machine.get(key))),
        ("Virtual machine", _virtual(machine.get("virtualisation")) if machine else None),
        ("Container", "yes" if machine.get("container") else None),
    ]
    return [(name, str(value)) for name, value in rows if value]


def _bound(placement: Mapping[str, list[int]] | None) -> str | None:
    if not placement or not placement["drivers"]:
        return None
    drivers, servers = (", ".join(map(str, placement[side])) for side in ("drivers", "servers"))
    return f"clients on {drivers}, servers on {servers or 'none'}"


def _virtual(hint: str | None) -> str:
    if hint is None:
        return "not detected"
    # Some processors report that there is a hypervisor, and not which one.
    return "yes" if hint == "hypervisor" else str(hint)


def version_rows(manifest: Mapping[str, Any]) -> Rows:
    """Versions of pybench, its core, Python and packages, and the commit."""
    versions = dict(manifest.get("versions") or {})
    packages = versions.pop("packages", None) or {}
    commit = versions.pop("commit", None)
    profile = versions.pop("build_profile", None)
    rows = [(name, say(value)) for name, value in versions.items() if value]
    if profile:
        rows.append(("build of the core", str(profile)))
    if commit:
        rows.append(("commit", str(commit.get("id", ""))[:12] + (", with changes" if commit.get("dirty") else "")))
    if packages:
        rows.append(("packages", ", ".join(f"{name} {version}" for name, version in packages.items())))
    return rows


def shared_settings(manifest: Mapping[str, Any]) -> Rows:
    """The axes that are the same in every cell, with their values."""
    cells = manifest.get("cells") or []
    names = [name for name in (cells[0] if cells else {}) if name not in {"id", "strategy", "args", "backend"}]
    rows = []
    for name in names:
        values = {say(cell.get(name)) for cell in cells}
        if len(values) == 1:
            value = values.pop()
            if name.endswith("_ms") and value.isdecimal():
                value = format_duration(int(value) * 1_000_000)
            rows.append((name.removesuffix("_ms"), value))
    return rows


def load_settings(manifest: Mapping[str, Any]) -> Rows:
    """The shared settings, without `stages` where there are none, and without the axis that stages set."""
    shared = dict(shared_settings(manifest))
    stages = recorded_stages(shared.get("stages"))
    left_out = {"stages"} if not stages else {"rate_per_s"} if stages.is_open else {"concurrency"}
    if not recorded_faults(shared.get("faults")):
        left_out.add("faults")
    if not recorded_guard(shared.get("guard")):
        left_out |= {"guard", "guard_on"}
    bracketed = ("stages", "faults")
    return [
        (name, f"({value})" if name in bracketed else value) for name, value in shared.items() if name not in left_out
    ]


def plan_rows(manifest: Mapping[str, Any]) -> Rows:
    """How long and how often each cell was measured; stages have a length of their own."""
    expanded = dict((manifest.get("matrix") or {}).get("expanded") or {})
    stages = [recorded_stages(cell.get("stages")) for cell in manifest.get("cells") or []]
    own = [format_duration(ns) for ns in sorted({one.length_ns for one in stages if one})]
    if own:
        steady = [] if all(stages) else [say(expanded.get("duration"))]
        expanded["duration"] = " or ".join([*steady, f"{', '.join(own)} in stages"])
    names = ("trials", "duration", "warmup")
    return [(name, say(expanded[name])) for name in names if expanded.get(name) is not None]


def control_rows(manifest: Mapping[str, Any]) -> list[tuple[str, bool, str]]:
    """Of each control: the backend, with the number of worker processes; whether it was caught; what was found."""
    rows = []
    for control in manifest.get("control") or []:
        if "kind" in control:
            continue  # A fault planted for one lock; a caution names it where it was missed.
        found = f"{format_exact(control.get('violations'))} violations in {format_exact(control.get('grants'))} grants"
        processes = control.get("processes") or 0
        shared = f" in {plural(processes, 'worker process', 'worker processes')}" if processes else ""
        rows.append((f"{control.get('backend', '')}{shared}", bool(control.get("caught")), found))
    return rows


def baseline_sentences(manifest: Mapping[str, Any]) -> list[str]:
    """The fixed overhead in every figure, of network and client; one sentence for each measured setting."""
    entries = manifest.get("baseline") or []
    # A database has no appendfsync, so "none" does not count as a different setting.
    values_of = {name: {entry.get(name) for entry in entries} - {"none"} for name in ("backend", "appendfsync", "poll")}
    varied = [name for name, values in values_of.items() if len(values) > 1]
    sentences = []
    for entry in entries:
        call, work = entry.get("round_trip_us"), entry.get("client_cpu_us_per_grant")
        which = ", ".join(f"{name} {entry.get(name)}" for name in varied if entry.get(name) in values_of[name])
        of_call = f"one idle call takes {format_us(call)}" if call is not None else "an idle call was not measured"
        of_client = f", and the client's own work takes {format_us(work)} per grant" if work is not None else ""
        sentence = f"{f'with {which}, ' if which else ''}{of_call}{of_client}."
        sentences.append(f"{sentence[0].upper()}{sentence[1:]}")
    added = dict.fromkeys(str(cell["rtt"]) for cell in manifest.get("cells") or [] if cell.get("rtt", "0") != "0")
    if added:
        sentences.append(f"To every call pybench itself adds a round-trip time: rtt {' or '.join(added)}.")
    return sentences


def say(value: object) -> str:
    """A value of a record in words."""
    if value is None:
        return "none"
    if value == "":
        return '""'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(say(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {say(item)}" for name, item in value.items())
    return str(value)
