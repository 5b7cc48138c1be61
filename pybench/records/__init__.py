"""The record of a run: a folder, written trial by trial and read back as frames. See `results/README.md`.

The modules are imported at the first use of a name, so that a process that only runs a trial does not load pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.records.folder import RunFolder
    from pybench.records.manifest import build_manifest, control_entry
    from pybench.records.run import Run, load
    from pybench.records.trial import TrialRecord, trial_record

_MODULES = {
    "Run": "run",
    "RunFolder": "folder",
    "TrialRecord": "trial",
    "build_manifest": "manifest",
    "control_entry": "manifest",
    "load": "run",
    "trial_record": "trial",
}

__all__ = ["Run", "RunFolder", "TrialRecord", "build_manifest", "control_entry", "load", "trial_record"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
