"""How a test's outcome is told: in Locust's log, and in the exit code of its process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybench.analysis.quantile_text import quantile_text
from pybench.columns import COLUMNS
from pybench.exits import Exit
from pybench.numbers import plural

if TYPE_CHECKING:
    from locust.env import Environment

    from pybench.errors import PybenchError
    from pybench.swarm.recording import Outcome

logger = logging.getLogger(__name__)


def outcome_lines(outcome: Outcome) -> list[str]:
    """The verdict, the figures and the place of the record."""
    where = f"run folder: {outcome.folder}, with the report in report.html"
    if outcome.verdict is None:
        return [f"nothing was measured: {outcome.reason}", where]
    row = outcome.row
    lock = f"{row['strategy']}({row['args']})" if row["args"] else row["strategy"]
    rate = COLUMNS["grants_per_s"].format.text(row["grants_per_s"])
    load = f"{plural(row['concurrency'], 'client')}, {plural(row['keys'], 'key')}"
    quantiles = ", ".join(
        f"{name} {quantile_text(row, column)}"
        for name, column in (("p50", "acquire_p50_us"), ("p99", "acquire_p99_us"))
    )
    return [
        f"{lock}: {outcome.verdict} ({outcome.reason})",
        f"{row['grants']:,} grants in {row['window_s']:.1f} s, {rate} grants/s; acquire {quantiles}; {load}",
        where,
    ]


def announce(environment: Environment, outcome: Outcome) -> None:
    """Log `outcome`, and set the exit code of the process if the outcome has one of its own."""
    is_bad = outcome.exit is not Exit.OK
    for line in outcome_lines(outcome):
        logger.log(logging.WARNING if is_bad else logging.INFO, "%s", line)
    # Of several tests of one process the last one counts.
    environment.process_exit_code = int(outcome.exit) if is_bad else None


def refuse(environment: Environment, error: PybenchError) -> None:
    """Log why a test cannot start, and set the exit code of the process."""
    logger.error("%s", error)
    environment.process_exit_code = int(error.exit)
