"""`make perf`: pybench and its references beside each other, in one run on one server, in interleaved rounds.

Prints medians with the middle half of the rounds, and the ratios, and writes `perf.json`. It is a benchmark, not a
timed test: nothing fails when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from pybench.machine import describe_machine
from pybench.planning.placement import place
from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor
from tests.benchmarks import pgbench, references
from tests.benchmarks.cases import CASES
from tests.benchmarks.quiet import QUIET_CORES, loop_ms, wait_for_quiet
from tests.benchmarks.sample import Sample

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Runs the cases that the command line names, or all."""
    names = [case.__name__ for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", choices=["auto", "wheel", "path"], default="auto", help="as `pybench run` has it")
    asked = parser.parse_args()
    if unknown := set(asked.cases) - set(names):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    references.build()
    chosen = [case for case in CASES if not asked.cases or case.__name__ in asked.cases]
    binary = binaries.find(asked.servers)
    machine = describe_machine()
    cores = os.sched_getaffinity(0)
    placement = place(cores, threads=2 if len(cores) >= 3 else 1)
    supervised, facts = supervisor.start(binary, transport="tcp", cores=placement.servers)
    references.more_like(binary)
    pgbench.keep_to(placement.servers)
    samples: dict[str, list[Sample]] = {}
    busy: list[float] = []
    speeds: list[float] = []
    try:
        if placement.drivers:
            # All that is measured runs here or in a child, so that pybench and its references are bound alike.
            os.sched_setaffinity(0, placement.drivers)
        server = Server(supervised.endpoint, facts, binary.source, supervised.pid)
        for number in range(1, asked.rounds + 1):
            for case in chosen:
                busy.append(wait_for_quiet())
                speeds.append(loop_ms())
                print(f"\rround {number} of {asked.rounds}: {case.__name__:<16}", end="", file=sys.stderr, flush=True)
                for sample in case(server):
                    samples.setdefault(sample.name, []).append(sample)
        print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
        print(f"{server.label} ({server.source}), TCP, {asked.rounds} rounds")
        print("redlock and hot_queue: on servers as a run starts and places them, over Unix sockets")
        if (database := pgbench.started()) is not None:
            print(f"{database.label} ({database.source}), Unix socket, and pgbench of the same version")
    finally:
        references.stop_more()
        pgbench.stop()
        supervised.stop()
    if max(busy) > QUIET_CORES:
        print(f"the machine was not quiet: others used up to {max(busy):.2f} cores when a case began")
    slowdown = max(speeds) / min(speeds)
    print(f"a fixed loop took {min(speeds):.1f} to {max(speeds):.1f} ms: figures without a ratio move with that")
    rows = [row(taken) for taken in samples.values()]
    for line in rows:
        print(text(line))
    if (machine["cores"] or 1) < 3:
        print("not measured: two threads beside one, which needs three cores")
    noise = {"busy_cores": round(max(busy), 2), "slowdown": round(slowdown, 2)}
    for line in rows:
        line |= {"commit": commit(), "machine": machine, **noise}
    (ROOT / "perf.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def row(taken: list[Sample]) -> dict[str, Any]:
    """The median of a row's rounds; ratios are taken round by round."""
    first = taken[0]
    figure = statistics.median(sample.figure for sample in taken)
    ratios = [sample.figure / sample.reference for sample in taken if sample.reference]
    judged = ratios or [sample.figure for sample in taken]
    middle = statistics.median(judged)
    reached = None
    if first.goal:
        bound, value = first.goal
        reached = middle >= value if bound == "at least" else middle <= value
    return {
        "name": first.name.strip(),
        "figure": figure,
        "unit": first.unit,
        "reference": statistics.median(s.reference for s in taken if s.reference) if ratios else None,
        "ratio": middle if ratios else None,
        "spread": middle_half(judged),
        "goal": f"{first.goal[0]} {first.goal[1]:g}" if first.goal else None,
        "reached": reached,
    }


def middle_half(values: list[float]) -> tuple[float, float]:
    """The quartiles: one round that something disturbed does not move them."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def text(row: dict[str, Any]) -> str:
    """One line of the table."""
    low, high = row["spread"]
    if row["ratio"] is not None:
        measured = f"{row['ratio']:6.2f} x  [{low:.2f} .. {high:.2f}]  {row['figure']:,.0f} / {row['reference']:,.0f}"
    else:
        measured = f"{row['figure']:10,.2f} {row['unit']}  [{low:,.2f} .. {high:,.2f}]"
    mark = {True: "reached", False: "MISSED", None: ""}[row["reached"]]
    return f"{row['name']:<62} {measured:<52} {row['goal'] or '':<14} {mark}"


def commit() -> str:
    """The commit that was measured, with a mark for changes."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return described.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
