"""Cautions about the servers of a run: those that differ in more than their locks, and settings that explain a result.

Promises: a setting is named only where it can act on what was measured; one that a record lacks gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pybench.mixed import Place, mixed
from pybench.report.caution import Caution
from pybench.report.view import View
from pybench.settings_that_act import acting_settings


def circumstances(view: View) -> list[Caution]:
    """All that apply."""
    return [*_mixed(view.run.manifest), *_settings(view.run.manifest)]


def _mixed(manifest: Mapping[str, Any]) -> Iterator[Caution]:
    places = [
        Place(
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
