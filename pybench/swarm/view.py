"""What the web page shows of a native swarm: figures and sentences as rows of tables, while it runs and afterwards.

Promises: a figure that is not known yet is a dash, and a verdict is said only of a test that has stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pybench.analysis.quantile_text import quantile_text
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import violations
from pybench.analysis.violation_sentences import sentence
from pybench.columns import COLUMNS
from pybench.numbers import format_exact, format_ns, format_rate, format_us, missing, plural
from pybench.strategies import CATALOGUE
from pybench.swarm.statistics import failure_clauses

if TYPE_CHECKING:
    from pybench.swarm.conductor import Conductor, Test
    from pybench.swarm.site import Site

Row = dict[str, str]

SHOWN_VIOLATIONS = 5
UNKNOWN = "-"
AFTER_STOP = "after the stop"
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))


def rows(conductor: Conductor) -> list[Row]:
    """The rows of the tab about the locks: a figure or a sentence each."""
    return [{"figure": name[:1].upper() + name[1:], "value": value} for name, value in _rows(conductor)]


def worker_rows(conductor: Conductor) -> list[Row]:
    """The rows of the tab about the processes that make load."""
    test = conductor.test
    return [] if test is None else [_worker(test, site) for site in test.sites.values()]


def _rows(conductor: Conductor) -> Iterator[tuple[str, str]]:
    test = conductor.test
    if conductor.problem is not None:
        error = conductor.problem
        yield "problem", error.message + (f"; {error.hint}" if error.hint else "")
    if test is None:
        yield "verdict", "no test has begun; before each, the checker and the lock are checked for some seconds"
        return
    if test.outcome is None:
        yield from _while_running(test)
    elif test.outcome.verdict is None:
        yield "verdict", f"none: {test.outcome.reason}"
    else:
        yield "verdict", f"{test.outcome.verdict}: {test.outcome.reason}"
        yield from _after_the_stop(test.outcome.row)
    yield from _violations(test)
    for clause in failure_clauses(test.tally()):
        yield "acquires that failed", clause
    cell = test.prepared.cell
    yield "lock", f"{cell.id.partition(' ')[0]}, {plural(cell.keys, 'key')}{_keys_of(test)}, hold {cell.hold.text}"
    yield "servers", ", ".join(dict.fromkeys(server.label for server in test.prepared.servers))
    yield "control", _control(test)
    for text in test.watch.texts:
        yield "note", text
    if test.outcome is not None:
        yield "run folder", str(test.outcome.folder)


def _while_running(test: Test) -> Iterator[tuple[str, str]]:
    tally = test.tally()
    recent = [site.recent for site in test.running]
    now = sum(one.grants_per_s or 0.0 for one in recent)
    count = violations(tally.counters, _terms(test))
    seen = f"{plural(count, 'violation')} so far" if count else "no violation so far"
    yield "verdict", f"{seen}; the verdict comes when the test has stopped"
    yield "grants", f"{format_exact(tally['grants'])}, {format_rate(now)} now"
    texts = (f"{name} {format_us(tally.quantile_us('response', q, 'granted'))}" for name, q in QUANTILES)
    yield "acquire", ", ".join(texts)
    yield "send delay of the load generator", f"p99 {format_us(tally.quantile_us('send_delay', 0.99))}"
    yield "hand-off, Jain's fairness index", AFTER_STOP
    yield "clients", f"{sum(site.clients for site in test.sites.values()):,}"


def _after_the_stop(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    def text(column: str) -> str:
        return COLUMNS[column].format.text(row[column])

    yield "grants", f"{format_exact(row['grants'])} in {row['window_s']:.1f} s, {text('grants_per_s')}/s"
    safe = row["safe_grants_per_s"]
    yield "safe grants/s", UNKNOWN if missing(safe) else format_rate(safe)
    columns = (("p50", "acquire_p50_us"), ("p99", "acquire_p99_us"), ("p99.9", "acquire_p999_us"))
    yield "acquire", ", ".join(f"{name} {quantile_text(row, column)}" for name, column in columns)
    yield "hand-off", f"p50 {text('handoff_p50_us')}"
    yield "Jain's fairness index", text("jain")
    yield "send delay of the load generator", f"p99 {text('send_delay_p99_us')}"
    yield "clients", f"{row['concurrency']:,}"


def _violations(test: Test) -> Iterator[tuple[str, str]]:
    tally = test.tally()
    count = violations(tally.counters, _terms(test)) if not test.outcome else test.outcome.row.get("violations", 0)
    yield "violations", format_exact(count)
    if not count:
        return
    shown = [(site, violation) for site in test.sites.values() for violation in site.tally.violations]
    several = len(test.sites) > 1
    for site, violation in shown[:SHOWN_VIOLATIONS]:
        yield "violation", f"{site.name}: {sentence(violation)}" if several else sentence(violation)


def _control(test: Test) -> str:
    controls = [entry for entry in test.folder.manifest["control"] if "kind" not in entry]
    missed = [entry for entry in test.folder.manifest["control"] if not entry["caught"]]
    if missed:
        return "the checker missed a control or a planted fault: the run proves nothing (VOID)"
    return "; ".join(
        f"{entry['backend']}: {plural(entry['violations'], 'overlap')} of clients without a lock found"
        for entry in controls
    )


def _keys_of(test: Test) -> str:
    if len(test.sites) <= 1:
        return ""
    return " that all workers share" if test.prepared.settings.shared_keys else " of each worker"


def _terms(test: Test) -> Terms:
    cell = test.prepared.cell
    return Terms.of(CATALOGUE[cell.strategy].with_arguments(cell.args))


def _worker(test: Test, site: Site) -> Row:
    known = _recorded(test, site)
    count = violations(site.tally.counters, _terms(test))
    rate = site.recent.grants_per_s if not site.is_over else site.tally.grants_per_s
    error_ns = site.clock.error_ns
    return {
        "worker": site.name,
        "host": site.origin.host,
        "state": site.state.value,
        "clients": f"{site.clients if not site.is_over else site.most_clients:,}",
        "grants": format_exact(site.tally["grants"]),
        "rate": UNKNOWN if rate is None else format_rate(rate),
        "p99": format_us(site.tally.quantile_us("response", 0.99, "granted")),
        "verdict": known or (f"{count:,} violations" if count else "no violation"),
        "clock": UNKNOWN if error_ns is None else f"{_signed(site.clock.offset_ns or 0)} ± {format_ns(error_ns)}",
        "note": site.error or "",
    }


def _recorded(test: Test, site: Site) -> str | None:
    """The verdict on the worker in the run folder; None before the end."""
    if test.outcome is None or test.outcome.run is None:
        return None
    frame = test.outcome.run.workers
    found = frame[frame["worker"] == site.name]["verdict"]
    return None if found.empty or missing(found.iloc[0]) else str(found.iloc[0])


def _signed(ns: int) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"
