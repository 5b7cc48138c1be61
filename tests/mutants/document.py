"""docs/mutants.md: which mistake was caught by what, and how fast."""

from __future__ import annotations

from shlex import quote

from tests.mutants.build import ROOT
from tests.mutants.hunt import MOST_SEEDS, Caught
from tests.mutants.table import Case

PAGE = ROOT / "docs" / "mutants.md"

HEAD = """\
# Mistakes that pybench finds

A checker that finds nothing proves nothing unless it finds known mistakes. The core has a feature, `mutants`, that puts
one mistake into a lock. `make mutants` builds the core with it and looks for {mutants} mistakes in {locks} locks.
Each is looked for in one of two ways:

- **fuzz**: `pybench fuzz --strategy LOCK`, at most {most:,} seeds. See [fuzz.md](fuzz.md).
- **run**: `pybench run examples/faults.yaml --strategy LOCK`, one trial of each plan of faults. See
  [faults.md](faults.md). A *probe* is the short contended trial before the trials of a run; in the *late probe* all
  holders outlive their leases.

The honest lock is then searched in the same way, and must not be blamed. The build that users get has no trace of the
mistakes; a test looks for their names in it.

| mistake | lock | by | caught as | seeds | time |
|---|---|---|---|--:|--:|
"""


def row(case: Case, caught: Caught) -> tuple[str, ...]:
    """The cells of the table."""
    what = caught.what if caught.is_caught else f"ESCAPED ({caught.what})"
    seeds = f"{caught.seeds:,}" if caught.seeds is not None else "-"
    how = " ".join((case.finder, *map(quote, case.options)))
    return case.mutant, f"`{case.strategy}`", f"`{how}`", what, seeds, f"{caught.seconds:.1f} s"


def page(found: dict[Case, Caught]) -> str:
    """The page."""
    mutants = {case.mutant for case in found}
    locks = {case.strategy for case in found}
    head = HEAD.format(mutants=len(mutants), locks=len(locks), most=MOST_SEEDS)
    rows = (f"| {' | '.join(row(case, caught))} |" for case, caught in found.items())
    return head + "\n".join(rows) + "\n"


def write(found: dict[Case, Caught]) -> None:
    """Write the page."""
    PAGE.write_text(page(found), encoding="utf-8")
