"""Cautions about the servers of a run: unlike servers, settings that explain a result, and shared cores.

Promises: a setting is named only where it can affect the figures. A field that a record lacks gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from pybench.analysis.acting_settings import acting_settings
from pybench.analysis.comparison.entrants import offered_rate
from pybench.numbers import format_us, plural
from pybench.planning.unlike_servers import ServerAccess, mixed
from pybench.quota import quota_sentence
from pybench.report.cautions.caution import Caution
from pybench.report.view import CellView, View

UNLIKE = 1.5
"""The p50 of a single client on a quiet machine is 0.9 to 1.25 times an idle call."""
NOTEWORTHY_US = 10.0
IDLE_CALLS = ("mutex", "pg-advisory")


def circumstances(view: View) -> list[Caution]:
    """All that apply."""
    manifest = view.run.manifest
    return [*_mixed(manifest), *_settings(manifest), *limited(view), *_shared_cores(view), *_idle_calls(view)]


def _mixed(manifest: Mapping[str, Any]) -> Iterator[Caution]:
    places = [
        ServerAccess(
            name=str(server.get("label", "server")),
            given=server.get("address") is not None,
            transport=(server.get("settings") or {}).get("transport"),
        )
        for server in manifest.get("servers", [])
    ]
    sentence = mixed(places)
    if sentence:
        yield Caution("Servers differ", sentence)


def _settings(manifest: Mapping[str, Any]) -> Iterator[Caution]:
    for sentence in acting_settings(manifest.get("servers", []), manifest.get("cells", [])):
        yield Caution("Server setting", sentence + ".")


def _shared_cores(view: View) -> Iterator[Caution]:
    """A given server that ran on the core of a load thread: how often, and what its owner can do."""
    trials, manifest = view.run.trials, view.run.manifest
    seen = trials["shares_core"].dropna() if "shares_core" in trials else trials.iloc[:, 0].head(0)
    shared = int(seen.astype(bool).sum())
    if not shared:
        return
    drivers = (manifest.get("placement") or {}).get("drivers") or []
    remedies = [
        f"taskset -acp {','.join(map(str, free))} {server['pid']}"
        for server in manifest.get("local_servers", [])
        if (free := [core for core in server["cores"] if core not in drivers])
    ]
    binds = f" Its owner can bind it to other cores: {'; '.join(remedies)}." if remedies else ""
    cores = ("core " if len(drivers) == 1 else "cores ") + ", ".join(map(str, drivers))
    yield Caution(
        "Shared core",
        f"At the end of {shared} of {plural(len(seen), 'trial')} the given server ran on {cores}, to which the load "
        "generator is bound. Both shared that core, so figures depend on where the kernel put the server."
        f"{binds}",
    )


def _idle_calls(view: View) -> Iterator[Caution]:
    """An acquire of a single client that took much longer, or shorter, than the idle calls before the trials."""
    baselines: dict[str, list[float | None]] = {}
    for entry in view.run.manifest.get("baseline", []):
        baselines.setdefault(entry["backend"], []).append(entry.get("round_trip_us"))
    for cell in view.cells:
        known = baselines.get(str(cell.row["backend"]), [])
        idle_us, acquire_us = known[0] if len(known) == 1 else None, cell.number("acquire_p50_us")
        if not _is_idle_call(cell) or not idle_us or not acquire_us:
            continue
        ratio = acquire_us / idle_us
        if max(ratio, 1 / ratio) > UNLIKE and abs(acquire_us - idle_us) > NOTEWORTHY_US:
            yield Caution(
                "Unsteady server",
                f"One idle call took {format_us(idle_us)} before the trials, and the p50 of the same call was "
                f"{format_us(acquire_us)} in {cell.name}. The server or the machine changed its speed in between, so "
                "do not compare these figures with those of another run. Other work on the machine (see pybench "
                "doctor) or a server that moves between cores can cause this.",
            )
            return


def _is_idle_call(cell: CellView) -> bool:
    """Whether an acquire of `cell` is one call of a single client, as the idle call of a run is."""
    alone = cell.row["concurrency"] == 1 and offered_rate(cell.row) is None
    return alone and cell.row["strategy"] in IDLE_CALLS and not cell.number("rtt_ms")


def limited(view: View) -> Iterator[Caution]:
    """All that apply."""
    machine = view.run.manifest.get("machine") or {}
    sentence = quota_sentence(machine.get("cpu_quota"), machine.get("cores_allowed"))
    if sentence:
        yield Caution("CPU quota", f"{sentence[:1].upper()}{sentence[1:]}.")
    trials = view.run.trials
    periods, times_ms = (_figures(trials, name) for name in ("throttled_periods", "throttled_ms"))
    stopped = int(((periods > 0) | (times_ms > 0)).sum())
    if not stopped:
        return
    share = f"{stopped} of {plural(len(trials), 'trial')}"
    often = f", in up to {plural(int(periods.max()), 'period')} of a trial" if periods.max() > 0 else ""
    long = f", for up to {times_ms.max():.0f} ms of a trial" if times_ms.max() > 0 else ""
    yield Caution(
        "Throttled",
        f"In {share} the CPU quota stopped processes{often}{long}. Latencies of these trials are those of the "
        "quota, not of the lock. Raise the quota, or run outside the control group.",
        grave=True,
    )


def _figures(trials: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The figures in column `name`, 0 where they are unknown."""
    column = trials[name] if name in trials.columns else pd.Series(0.0, index=trials.index)
    return column.astype(float).fillna(0.0)
