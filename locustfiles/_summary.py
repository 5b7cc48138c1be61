"""The end of a scenario: metrics, thresholds, the table on the terminal and the summary file.

The k6 scripts under `load-tests/` write the same file with the same names; `docs/http-load.md` describes it.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from locust.stats import RequestStats

SCHEMA = 1
"""The number of the summary file's format."""

RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}

Metrics = dict[str, float | None]
"""Name, which ends with the unit, to figure. None: nothing was measured."""


def tenth_of_ms(response_time: float) -> float:
    """The bucket of a response time in ms: 0.1 ms wide below 100 ms, 1 ms above.

    Locust's own buckets are whole milliseconds and two digits: too wide for a lock that takes 2 ms.
    """
    return round(response_time, 1 if response_time < 100 else 0)


@dataclass(frozen=True)
class Threshold:
    """A condition for one metric, such as `p95_ms < 500`. A metric without a figure misses it."""

    metric: str
    relation: str
    limit: float

    def is_met(self, metrics: Metrics) -> bool:
        """Whether the figure is there and fulfils the condition."""
        figure = metrics.get(self.metric)
        return figure is not None and RELATIONS[self.relation](figure, self.limit)

    def judged(self, metrics: Metrics) -> dict[str, Any]:
        """The entry of the summary file."""
        return {
            "metric": self.metric,
            "limit": f"{self.relation} {self.limit:g}",
            "figure": metrics.get(self.metric),
            "passed": self.is_met(metrics),
        }


def request_metrics(stats: RequestStats) -> Metrics:
    """The metrics of all HTTP requests, which every scenario has. Times are in ms, `error_rate` is a share."""
    total = stats.total
    metrics: Metrics = {"requests": total.num_requests, "errors": total.num_failures}
    names = ("requests_per_s", "error_rate", "p50_ms", "p95_ms", "p99_ms", "max_ms")
    if not total.num_requests:
        return metrics | dict.fromkeys(names)
    slowest = round(total.max_response_time, 1)
    # A bucket rounds up, too, and nothing is slower than the slowest.
    quantiles = [min(total.get_response_time_percentile(q), slowest) for q in (0.5, 0.95, 0.99)]
    return metrics | dict(zip(names, (round(total.total_rps, 2), total.fail_ratio, *quantiles, slowest), strict=True))


@dataclass
class Summary:
    """What one run of a scenario measured, and whether it met its thresholds."""

    scenario: str
    form: str
    service: str
    settings: dict[str, Any]
    metrics: Metrics
    groups: dict[str, Metrics] = field(default_factory=dict)
    thresholds: Sequence[Threshold] = ()
    conclusion: str = ""
    problem: str | None = None
    """Why the run could not be judged."""

    @property
    def passed(self) -> bool:
        """Whether the run could be judged and met every threshold."""
        return self.problem is None and all(one.is_met(self.metrics) for one in self.thresholds)

    def as_dict(self) -> dict[str, Any]:
        """The summary file's content."""
        return {
            "schema": SCHEMA,
            "tool": "locust",
            "scenario": self.scenario,
            "form": self.form,
            "service": self.service,
            "settings": self.settings,
            "passed": self.passed,
            "conclusion": self.problem or self.conclusion,
            "metrics": self.metrics,
            "groups": self.groups,
            "thresholds": [one.judged(self.metrics) for one in self.thresholds],
        }

    def write(self, path: Path) -> None:
        """Write the summary file, whole or not at all."""
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        unfinished.replace(path)

    def as_text(self) -> str:
        """The summary for the terminal."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        lines = [f"{self.scenario} ({self.form} form) on {self.service}: {settings}", self.problem or self.conclusion]
        if not self.metrics["requests"]:
            return "\n".join([*lines, self._verdict()])
        tables = [[("metric", "figure"), *((name, shown(figure)) for name, figure in self.metrics.items())]]
        if self.groups:
            names = list(next(iter(self.groups.values())))
            rows = [(group, *(shown(metrics[name]) for name in names)) for group, metrics in self.groups.items()]
            tables.append([("", *names), *rows])
        if self.thresholds:
            judged = [one.judged(self.metrics) for one in self.thresholds]
            rows = [
                (f"{one['metric']} {one['limit']}", shown(one["figure"]), "pass" if one["passed"] else "FAIL")
                for one in judged
            ]
            tables.append([("threshold", "figure", ""), *rows])
        for table in tables:
            lines += ["", *_aligned(table)]
        return "\n".join([*lines, "", self._verdict()])

    def _verdict(self) -> str:
        if self.problem:
            return "failed: the run could not be judged"
        missed = sum(not one.is_met(self.metrics) for one in self.thresholds)
        return f"failed: {missed} of {len(self.thresholds)} thresholds missed" if missed else "passed"


def shown(figure: float | None) -> str:
    """A figure as the tables show it; n/a where nothing was measured."""
    if figure is None:
        return "n/a"
    if float(figure).is_integer():
        return f"{figure:,.0f}"
    return f"{figure:.3g}" if figure < 1 else f"{figure:,.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table, the first column to the left and all others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{text:<{width}}" if not n else f"{text:>{width}}" for n, (text, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
