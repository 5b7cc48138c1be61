"""A run as it was recorded: the frames of its folder, for reports, comparisons and notebooks.

Promises: a folder whose run still goes on, or was killed, is read like a finished one.
Does not do: changing anything in the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from pybench import histograms
from pybench.records import schema, tables
from pybench.records.manifest import read_manifest
from pybench.summary import summarise


@dataclass(frozen=True, slots=True)
class Run:
    """A run's manifest and frames, with the columns that `results/README.md` lists; n/a is NaN."""

    path: Path
    manifest: dict[str, Any]
    trials: pd.DataFrame
    latency: pd.DataFrame
    timeline: pd.DataFrame
    violations: pd.DataFrame
    summary: pd.DataFrame

    @classmethod
    def of(cls, path: Path, manifest: Mapping[str, Any], gathered: tables.Tables) -> Run:
        """The run that `gathered` holds."""
        trials, latency = _frame(gathered.trials), _frame(gathered.latency)
        further_axes = schema.further_axes(gathered.trials.column_names)
        return cls(
            path=path,
            manifest=dict(manifest),
            trials=trials,
            latency=latency,
            timeline=_frame(gathered.timeline),
            violations=_frame(gathered.violations),
            summary=_in_order(summarise(trials, further_axes, latency), manifest),
        )

    def histogram(self, cell: str, phase: str, outcome: str = "granted") -> histograms.Buckets:
        """The latencies of a cell's phase and outcome over all its trials; no buckets where nothing was recorded."""
        rows = self.latency
        chosen = rows[(rows["cell"] == cell) & (rows["phase"] == phase) & (rows["outcome"] == outcome)]
        return histograms.merged(list(chosen["hdr"]))


def load(path: str | Path) -> Run:
    """Read the run folder at `path`. Raises RecordError when it is none, is damaged, or of a newer schema."""
    absolute = Path(path).absolute()
    manifest = read_manifest(absolute)
    if manifest["status"] == "complete":
        tables.require_files(absolute)
    return Run.of(absolute, manifest, tables.gather(absolute, manifest["control"], manifest.get("probes", ())))


def _in_order(summary: pd.DataFrame, manifest: Mapping[str, Any]) -> pd.DataFrame:
    """`summary` in the order of the matrix: that of the trials is a draw of the run's."""
    places = {cell["id"]: place for place, cell in enumerate(manifest.get("cells", ()))}
    order = summary["cell"].map(lambda cell: places.get(cell, len(places))).sort_values(kind="stable").index
    return summary.loc[order].reset_index(drop=True)


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame
