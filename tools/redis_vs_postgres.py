"""Generates the comparison of Redis and Postgres locks in README and docs/redis-vs-postgres.md.

    python -m tools.redis_vs_postgres

rewrites both pages from the run in results/redis-vs-postgres and its `failures.json`. A test compares; no figure is
typed by hand. The texts about locks come from the catalogue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pybench
from pybench.analysis.answer import answer_of
from pybench.analysis.comparison import Comparison, compare_locks
from pybench.analysis.quantile_text import quantile_text
from pybench.numbers import (
    format_bytes,
    format_count,
    format_exact,
    format_percent,
    format_ratio,
    format_us,
    missing,
    plural,
)
from pybench.records import Run
from pybench.report import run_facts
from pybench.report.database_use import DatabaseUse, database_use
from pybench.strategies import CATALOGUE, Judge, ServerKind, Strategy, parse_strategy
from tools import failures

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "redis-vs-postgres"
README = ROOT / "README.md"
MANUAL = ROOT / "docs" / "redis-vs-postgres.md"
BEGIN, END = "<!-- from results/redis-vs-postgres -->\n", "<!-- end of redis-vs-postgres -->\n"

RENEWED = "never: kept and renewed"
IN_README = ("mutex", "pg-advisory", "pg-lease", "layered")
KEPT = 0.9
"""Share of the ttl: a lock that was free only after so much of its ttl was kept until the ttl ended."""
LATER = 0.02
"""Share of the ttl: the time to connect and to try again, which may follow the end of the ttl."""


@dataclass(frozen=True)
class Lock:
    """One lock of the run: by number of clients its rows of the summary and its database use; and its failures."""

    label: str
    rows: dict[int, dict[str, Any]]
    uses: dict[int, DatabaseUse]
    connections: dict[int, int]
    """By number of clients."""
    failing: dict[str, Any] | None
    """The measurement of `tools.failures`."""
    ttl_ms: int

    @property
    def strategy(self) -> Strategy:
        return CATALOGUE[parse_strategy(self.label)[0]]

    @property
    def crowd(self) -> dict[str, Any]:
        """The row with the most clients."""
        return self.rows[max(self.rows)]

    @property
    def alone(self) -> dict[str, Any]:
        """The row with the fewest clients."""
        return self.rows[min(self.rows)]


def locks_of(run: Run, measured: dict[str, Any]) -> list[Lock]:
    """The locks of the run, in the order of the summary."""
    uses = database_use(run.trials)
    failing = {entry["lock"]: entry for entry in measured["locks"]}
    connections = {cell["id"]: _connections(cell) for cell in run.manifest["cells"]}
    locks: dict[str, dict[int, dict[str, Any]]] = {}
    for row in run.summary.to_dict("records"):
        label = f"{row['strategy']}({row['args']})" if row["args"] else row["strategy"]
        locks.setdefault(label, {})[row["concurrency"]] = row
    return [
        Lock(
            label,
            rows,
            {clients: uses[row["cell"]] for clients, row in rows.items() if row["cell"] in uses},
            {clients: connections[row["cell"]] for clients, row in rows.items()},
            failing.get(label),
            measured["ttl_ms"],
        )
        for label, rows in locks.items()
    ]


def _connections(cell: dict[str, Any]) -> int:
    """The connections of all clients to all servers: shared ones to each server, or one per client."""
    strategy = CATALOGUE[cell["strategy"]]
    _, arguments = parse_strategy(f"{cell['strategy']}({cell['args']})" if cell["args"] else cell["strategy"])
    shared = int(cell["connections"].partition("(")[2].rstrip(")"))
    own = cell["concurrency"] if strategy.opens_own_connections(arguments) else 0
    each = min(shared, cell["concurrency"]) if strategy.opens_shared_connections(arguments) else 0
    return own + each * strategy.servers(arguments)


FAILURES = (
    "Each figure is the time from the failure until another client had the lock, connecting included; after a crash "
    "the time counts from the moment when the server is back. The ttl counts from the grant, which came before the "
    "failure: so a lock that is free at the end of its ttl has a figure below the ttl. *Lost*: another client had the "
    "lock while its holder was still at work. *Notified*: the holder's client saw the loss at once, from its "
    "connection or from a reply; a program sees the loss when it next uses the connection. *Kept*: no other client had "
    "the lock before its ttl ended. *Never*: the holder renewed its lease, and the other client gave up. Both servers "
    "have their default persistence: Redis writes a snapshot from time to time, Postgres writes each commit. For "
    "`layered` both servers fail; the row refuses the write of the earlier holder."
)

RANKS = (
    "Locks with the same rank (`=`) are statistically tied with the first lock of that rank: the difference may be "
    "chance. The range behind a figure is its interval over the trials. The verdict of the load with one client comes "
    "from the probe of each lock, because one client contends with nobody."
)
COSTS = (
    "Commands, CPU time, WAL and commits are those of one grant. The last column names the two states in which the "
    "sessions of the database were found most often."
)

# -- the texts of the figures


def _speed(lock: Lock) -> str:
    row = lock.alone
    return f"{format_count(row['safe_grants_per_s'])}/s, {quantile_text(row, 'acquire_p50_us')}"


def _crowded(lock: Lock) -> str:
    row = lock.crowd
    return f"{format_count(row['safe_grants_per_s'])}/s, {quantile_text(row, 'acquire_p99_us')}"


def _consistency(lock: Lock) -> str:
    seen = sum(row["violations"] for row in lock.rows.values())
    contended = sum(row["contended_grants"] for row in lock.rows.values())
    what = "violations" if lock.strategy.judged_by is Judge.BELIEF else "lost updates"
    # Only late writes test a guard, and a run with short holds has none.
    if lock.strategy.judged_by is Judge.GUARD:
        late = sum(row["stale_writes"] for row in lock.rows.values())
        return f"{format_exact(seen)} {what}, {format_exact(late)} late writes refused"
    return f"{format_exact(seen)} {what} in {format_exact(contended)} grants"


def _died(lock: Lock) -> str:
    return "" if lock.failing is None else _freed(lock, lock.failing["holder_died_ms"])


def _lost(lock: Lock) -> str:
    if lock.failing is None:
        return ""
    ms, told = lock.failing["connection_ended_ms"], lock.failing["connection_ended_told"]
    return RENEWED if ms is None else _kept_or_lost(lock, ms, ms, told=told)


def _crashed(lock: Lock) -> str:
    if lock.failing is None:
        return ""
    ms, told = lock.failing["server_crashed_ms"], lock.failing["server_crashed_told"]
    if ms is None:
        return RENEWED
    return _kept_or_lost(lock, ms, ms + lock.failing["server_away_ms"], told=told)


def _kept_or_lost(lock: Lock, ms: float, since_ms: float, *, told: bool) -> str:
    """`since_ms` counts from the start of the fault: a lock that was free only at the end of its ttl was kept."""
    if since_ms >= KEPT * lock.ttl_ms:
        return f"{_ms(ms)}: kept until its ttl{_beyond_ttl(lock, since_ms)}"
    return f"{_ms(ms)}: lost, {'notified' if told else 'not notified'}"


def _freed(lock: Lock, ms: float | None) -> str:
    if ms is None:
        return "never"
    return f"{_ms(ms)}: its ttl{_beyond_ttl(lock, ms)}" if ms >= KEPT * lock.ttl_ms else _ms(ms)


def _beyond_ttl(lock: Lock, since_ms: float) -> str:
    """The time by which the lock was free later than its ttl; empty if it was free at once."""
    more = since_ms - lock.ttl_ms
    return "" if more <= LATER * lock.ttl_ms else f" plus {_ms(more)}"


def _ms(ms: float) -> str:
    return format_us(ms * 1e3)


ASPECTS: tuple[tuple[str, Callable[[Lock], str]], ...] = (
    ("Grants/s, p50 ({fewest})", _speed),
    ("Grants/s, p99 ({most}, {keys})", _crowded),
    ("Consistency", _consistency),
    ("Holder dies", _died),
    ("Server crashes and restarts", _crashed),
)


# -- the tables


def in_readme(run: Run, measured: dict[str, Any]) -> str:
    """Four locks side by side: the text between README's marks."""
    by_label = {lock.label: lock for lock in locks_of(run, measured)}
    return f"{_aspects(run, [by_label[label] for label in IN_README])}\n\n{_about(run, measured)}\n"


def in_manual(run: Run, measured: dict[str, Any]) -> str:
    """Every lock: the text between the marks of the manual's page."""
    locks = locks_of(run, measured)
    compared = compare_locks(run.summary, run.trials)
    parts = [f"> {answer_of(run.summary, run.trials).text}", _setting(run), RANKS]
    loads = sorted({clients for lock in locks for clients in lock.rows})
    for clients in loads:
        parts += [f"### {plural(clients, 'client')}, {_keys(run)}", _load(locks, clients, compared)]
    parts += [f"### What a grant costs with {plural(loads[-1], 'client')}", COSTS, _costs(locks)]
    single = f"Each failure was measured once, with a ttl of {_failing_ttl(measured)}."
    parts += ["### When something fails", f"{single} {FAILURES}", _failures(locks)]
    parts += ["### What each lock promises, and when to use it", *(_texts(lock) for lock in _by_strategy(locks))]
    return "\n\n".join(parts) + "\n"


def _aspects(run: Run, locks: Sequence[Lock]) -> str:
    words = {
        "fewest": plural(min(locks[0].rows), "client"),
        "most": plural(max(locks[0].rows), "client"),
        "keys": _keys(run),
    }
    heads = [f"`{lock.label}` ({_on(lock)})" for lock in locks]
    rows = [[title.format(**words), *(told(lock) for lock in locks)] for title, told in ASPECTS]
    return _table(["", *heads], rows)


def _keys(run: Run) -> str:
    return plural(int(run.summary["keys"].iloc[0]), "key")


def _on(lock: Lock) -> str:
    kinds = lock.strategy.server_kinds
    return "both" if len(kinds) > 1 else kinds[0].label


def _load(locks: Sequence[Lock], clients: int, compared: Comparison) -> str:
    """The locks at one load, ordered by rank."""
    by_cell = {str(lock.rows[clients]["cell"]): lock for lock in locks if clients in lock.rows}
    rows = []
    for standing in compared.load_of(next(iter(by_cell))).standings:
        if standing.cell not in by_cell:
            continue
        lock = by_cell[standing.cell]
        row = lock.rows[clients]
        rank = f"not ranked: {standing.out.value}" if standing.out else standing.mark
        rows.append([
            rank, f"`{lock.label}`", _on(lock), _interval(row), quantile_text(row, "acquire_p50_us"),
            quantile_text(row, "acquire_p99_us"), format_us(row.get("longest_wait_us")),
            format_ratio(row["attempts_per_grant"]), format_ratio(row["jain"]), row["verdict"],
        ])  # fmt: skip
    heads = [
        "rank", "lock", "on", "safe grants/s", "acquire p50", "acquire p99", "longest wait", "attempts per grant",
        "Jain's index", "verdict",
    ]  # fmt: skip
    return _table(heads, rows)


def _interval(row: dict[str, Any]) -> str:
    low, high = row["grants_per_s_low"], row["grants_per_s_high"]
    rate = format_count(row["safe_grants_per_s"])
    return rate if missing(low) else f"{rate} ({format_count(low)} to {format_count(high)})"


def _costs(locks: Sequence[Lock]) -> str:
    rows = []
    for lock in locks:
        clients = max(lock.rows)
        row, use = lock.rows[clients], lock.uses.get(clients)
        waits = "" if use is None else ", ".join(
            f"{kind} {format_percent(share)}" for kind, share in sorted(use.waits.items(), key=lambda one: -one[1])[:2]
        )  # fmt: skip
        rows.append([
            f"`{lock.label}`", str(lock.connections[clients]), format_ratio(row["commands_per_grant"]),
            format_us(row["client_cpu_us_per_grant"]), format_us(row["server_cpu_us_per_grant"]),
            "" if use is None else format_bytes(use.wal_bytes), "" if use is None else format_ratio(use.commits), waits,
        ])  # fmt: skip
    heads = [
        "lock",
        "connections",
        "commands",
        "client CPU",
        "server CPU",
        "WAL",
        "commits",
        "database sessions",
    ]
    return _table(heads, rows)


def _failures(locks: Sequence[Lock]) -> str:
    known = [lock for lock in locks if lock.failing is not None]
    rows = [[f"`{lock.label}`", _died(lock), _lost(lock), _crashed(lock)] for lock in known]
    return _table(["lock", "its holder dies", "its holder's connection ends", "the server crashes and restarts"], rows)


def _by_strategy(locks: Sequence[Lock]) -> list[Lock]:
    return list({lock.strategy.name: lock for lock in reversed(locks)}.values())[::-1]


def _texts(lock: Lock) -> str:
    entry = lock.strategy
    return (
        f"**`{entry.name}`** *Promise:* {entry.promise} *Holds under:* {entry.holds_under} "
        f"*When to use:* {entry.when_to_use} *When not:* {entry.when_not}"
    )


def _about(run: Run, measured: dict[str, Any]) -> str:
    """How the figures of README were measured."""
    return (
        f"{_setting(run)} Consistency counts contended grants only. Failures give the time until another client had "
        f"the lock, in single trials with a ttl of {_failing_ttl(measured)}."
    )


def _failing_ttl(measured: dict[str, Any]) -> str:
    return f"{measured['ttl_ms'] / 1000:g} s"


def _setting(run: Run) -> str:
    manifest, machine = run.manifest, run.manifest["machine"]
    plan, hold = dict(run_facts.plan_rows(manifest)), manifest["cells"][0]["hold"]
    of_database = next(server for server in manifest["servers"] if server["product"] == ServerKind.POSTGRES)["settings"]
    settings = ", ".join(
        f"{name} {run_facts.say(of_database[name])}" for name in ("fsync", "synchronous_commit") if name in of_database
    )
    return (
        f"Medians of {plural(int(plan['trials']), 'trial')} of {plan['duration']}, hold {hold}; "
        f"{run_facts.server_labels(manifest)} ({settings}), Unix sockets, {plural(machine['cores'], 'core')}."
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, [":--"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- reading and writing


def load() -> tuple[Run, dict[str, Any]]:
    """The run and its measured failures."""
    return pybench.load(FOLDER), json.loads((FOLDER / failures.NAME).read_text(encoding="utf-8"))


def told(page: Path, begin: str = BEGIN, end: str = END) -> str:
    """The text of `page` between its marks."""
    return page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]


def write(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Write `text` between the marks of `page`."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    assert mark, f"{page.name} has a mark where the generated text begins"
    assert last, f"{page.name} has a mark where the generated text ends"
    page.write_text(before + begin + text + end + after, encoding="utf-8")


def main() -> None:
    """Rewrite both pages."""
    run, measured = load()
    write(README, in_readme(run, measured))
    write(MANUAL, in_manual(run, measured))


if __name__ == "__main__":
    main()
