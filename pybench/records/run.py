"""A recorded run: the frames of its folder, for reports, comparisons and notebooks.

Promises: the folder of a running or killed run is read like that of a finished run.
Does not do: changing the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from pybench import exits
from pybench.analysis import histograms
from pybench.analysis.censored_quantiles import Waits
from pybench.analysis.summary import summarise
from pybench.exits import Exit
from pybench.notation import BadValue
from pybench.numbers import plural
from pybench.records import schema, search_probes, tables, workers
from pybench.records.atomic import absolute
from pybench.records.manifest import read_manifest

if TYPE_CHECKING:
    from pybench.analysis.answer import Answer
    from pybench.analysis.comparison import Comparison
    from pybench.analysis.thresholds import ThresholdResult

FRAMES = (
    *("trials", "latency", "timeline", "clients", "commands", "nodes", "telemetry", "faults"),
    *("violations", "summary", "probes"),
)
"""The frames with a column `cell`; without a search `probes` has no columns."""

_SHOWN = (
    *("strategy", "args", "backend", "concurrency", "keys", "hold", "retry"),
    *("safe_grants_per_s", "acquire_p50_us", "acquire_p99_us", "longest_wait_us", "jain", "verdict"),
)
"""The columns shown in a notebook; `Run.summary` has all columns."""


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run's manifest and frames, with the columns that `docs/columns.md` lists; n/a is NaN."""

    path: Path
    manifest: dict[str, Any]
    trials: pd.DataFrame
    latency: pd.DataFrame
    timeline: pd.DataFrame
    violations: pd.DataFrame
    summary: pd.DataFrame
    clients: pd.DataFrame = field(default_factory=lambda: _frame(schema.CLIENTS.empty_table()))
    """A row a client of a trial. This frame and the next three are empty in folders of schema 4 and earlier."""
    commands: pd.DataFrame = field(default_factory=lambda: _frame(schema.COMMANDS.empty_table()))
    """A row a trial: how many commands were sent in each 10 ms."""
    nodes: pd.DataFrame = field(default_factory=lambda: _frame(schema.NODES.empty_table()))
    """A row a server of a trial, of locks whose servers vote."""
    telemetry: pd.DataFrame = field(default_factory=lambda: _frame(schema.TELEMETRY.empty_table()))
    """A row a server and step of a trial, and one for the machine that made the load, whose `server` is n/a."""
    faults: pd.DataFrame = field(default_factory=lambda: _frame(schema.FAULTS.empty_table()))
    """A row for each fault of a trial; empty in folders of schema 5 and earlier."""
    workers: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row for each process whose load was merged into the trial; empty for other runs."""
    probes: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row for each probe of the searches for a limit, in their order; empty without a search."""

    @classmethod
    def of(cls, path: Path, manifest: Mapping[str, Any], gathered: tables.Tables) -> Run:
        """The run with the tables `gathered`."""
        trials, latency = _frame(gathered.trials), _frame(gathered.latency)
        return cls(
            path=path,
            manifest=dict(manifest),
            trials=trials,
            latency=latency,
            timeline=_frame(gathered.timeline),
            violations=_frame(gathered.violations),
            clients=_frame(gathered.clients),
            commands=_frame(gathered.commands),
            nodes=_frame(gathered.nodes),
            telemetry=_frame(gathered.telemetry),
            faults=_frame(gathered.faults),
            summary=_in_order(summarise(trials, latency), manifest),
            workers=_frame(workers.read(path)),
            probes=_frame(search_probes.read(path)),
        )

    def __repr__(self) -> str:
        """The name, the numbers of cells and trials, and the headline of the answer."""
        cells, trials = plural(len(self.summary), "cell"), plural(len(self.trials), "trial")
        return f"<Run {self.manifest['name']}: {cells}, {trials}; {self.answer.headline}>"

    def _repr_html_(self) -> str:
        """The answer and the main columns of the summary, for notebooks."""
        shown = [name for name in _SHOWN if name in self.summary]
        return f"<p>{escape(self.answer.text)}</p>{self.summary[shown].to_html(index=False)}"

    @property
    def answer(self) -> Answer:
        """Which lock to take, and the arguments against it."""
        from pybench.analysis.answer import answer_of

        return answer_of(self.summary, self.trials)

    @property
    def comparison(self) -> Comparison:
        """Where each lock stands at each load."""
        from pybench.analysis.comparison import compare_locks

        return compare_locks(self.summary, self.trials)

    @property
    def thresholds(self) -> list[ThresholdResult]:
        """The result of each threshold of the matrix at each cell that it selects."""
        from pybench.analysis import thresholds
        from pybench.matrix.thresholds import parse_threshold

        given = ((self.manifest.get("matrix") or {}).get("expanded") or {}).get("thresholds") or []
        parsed = []
        for one in given:
            # The record of another version may have an unknown threshold.
            with suppress(BadValue):
                parsed.append(parse_threshold(one))
        return thresholds.evaluate(parsed, self.summary)

    @property
    def measured_exit(self) -> Exit:
        """The exit code by what was measured, whether or not the run came to its end."""
        from pybench.analysis import verdicts

        controls, probes = self.manifest["control"], self.manifest.get("probes", ())
        return verdicts.run_exit(self.trials, thresholds=self.thresholds, controls=controls, probes=probes)

    @property
    def exit_code(self) -> Exit:
        """The exit code by the record, which does not contain the error that may have ended the run early."""
        interrupted = {Exit.INTERRUPTED} if self.manifest["status"] == "interrupted" else set()
        return exits.first({self.measured_exit, *interrupted})

    def quantile(self, cell: str, q: float, phase: str = "response") -> float | None:
        """The quantile `q` of a phase of `cell`, 0 < q < 1, in microseconds, over the samples of all its trials.

        For a response, acquires that still waited when the window closed count with their least length. None where
        fewer than ten samples lie beyond `q`, or where its rank falls among acquires that still waited. Raises KeyError
        for an unknown cell.
        """
        if cell not in set(self.summary["cell"]):
            raise KeyError(cell)
        ended, waiting = (self.histogram(cell, phase, outcome) for outcome in ("granted", "waiting"))
        return Waits(ended, waiting).quantile_us(q).value

    def quantiles(self, *qs: float, phase: str = "response") -> pd.DataFrame:
        """`quantile` for every cell, a column for each of `qs`; p50, p90, p99 and p99.9 without them."""
        wanted = qs or (0.5, 0.9, 0.99, 0.999)
        rows = {
            str(cell): {f"p{100 * q:g}_us": self.quantile(str(cell), q, phase) for q in wanted}
            for cell in self.summary["cell"]
        }
        return pd.DataFrame.from_dict(rows, orient="index", dtype="float64").rename_axis("cell")

    def histogram(self, cell: str, phase: str, outcome: str = "granted") -> histograms.Buckets:
        """The latencies of a cell's phase and outcome over all its trials; no buckets where nothing was recorded."""
        rows = self.latency
        chosen = rows[(rows["cell"] == cell) & (rows["phase"] == phase) & (rows["outcome"] == outcome)]
        return histograms.merged(list(chosen["hdr"]))


def load(path: str | Path) -> Run:
    """Read the run folder at `path`. Raises RecordError for another, a damaged or a newer folder."""
    place = absolute(path)
    manifest = read_manifest(place)
    if manifest["status"] == "complete":
        tables.require_files(place)
    return Run.of(place, manifest, tables.gather(place, manifest))


def _in_order(summary: pd.DataFrame, manifest: Mapping[str, Any]) -> pd.DataFrame:
    """`summary` in the order of the matrix; the trials are in the random order of the run."""
    places = {cell["id"]: place for place, cell in enumerate(manifest.get("cells", ()))}
    order = summary["cell"].map(lambda cell: places.get(cell, len(places))).sort_values(kind="stable").index
    return summary.loc[order].reset_index(drop=True)


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame
