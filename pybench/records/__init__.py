"""The record of a run: a folder, written trial by trial and read back as frames. See `results/README.md`."""

from __future__ import annotations

from pybench.records.folder import RunFolder
from pybench.records.manifest import build_manifest, control_entry
from pybench.records.run import Run, load
from pybench.records.trial import TrialRecord, trial_record

__all__ = ["Run", "RunFolder", "TrialRecord", "build_manifest", "control_entry", "load", "trial_record"]
