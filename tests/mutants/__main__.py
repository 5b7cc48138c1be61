"""`python -m tests.mutants`: builds the core with mistakes, looks for each, and for violations of the honest locks.

Prints a row for each mistake as it is found. `--write` writes docs/mutants.md too. Exits 1 if a mistake escapes, or if
an honest lock is blamed by the same search.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.mutants import document
from tests.mutants.build import build
from tests.mutants.hunt import LEAST_HONEST_SEEDS, Caught, hunt
from tests.mutants.table import CASES, Case

AT_ONCE = 2


def main() -> int:
    """Look for all mistakes, or for those whose names contain one of the words given."""
    parser = argparse.ArgumentParser(description="Look for known mistakes of locks.")
    parser.add_argument("words", nargs="*", help="only the mistakes whose names contain one of these")
    parser.add_argument("--write", action="store_true", help="write docs/mutants.md")
    asked = parser.parse_args()
    cases = [case for case in CASES if not asked.words or any(word in case.mutant for word in asked.words)]
    package, began = build(), time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        found = _all(partial(hunt, package), cases, Path(place))
        blamed = _honest(partial(hunt, package), found, Path(place))
    escaped = [case for case, caught in found.items() if not caught.is_caught]
    print(f"{len(found) - len(escaped)} of {len(found)} mistakes caught in {time.monotonic() - began:.0f} s")
    for case in escaped:
        print(f"ESCAPED: {case.mutant} of {case.strategy}")
    for text in blamed:
        print(f"FALSE ALARM: {text}")
    if asked.write and not asked.words:
        document.write(found)
    return 1 if escaped or blamed else 0


def _all(hunted: partial[Caught], cases: list[Case], place: Path) -> dict[Case, Caught]:
    found = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        searches = [pool.submit(hunted, case, place / str(number), honest=False) for number, case in enumerate(cases)]
        for case, search in zip(cases, searches, strict=True):
            found[case] = search.result()
            print(" | ".join(document.row(case, found[case])), flush=True)
    return found


def _honest(hunted: partial[Caught], found: dict[Case, Caught], place: Path) -> list[str]:
    """The honest locks that the same searches blame."""
    searches: dict[tuple[object, ...], tuple[Case, int]] = {}
    for case, caught in found.items():
        _, seeds = searches.get(case.search, (case, LEAST_HONEST_SEEDS))
        searches[case.search] = case, max(seeds, caught.seeds or 0)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [
            (case, pool.submit(hunted, case, place / f"honest{number}", honest=True, seeds=seeds))
            for number, (case, seeds) in enumerate(searches.values())
        ]
        blamed = [(case, search.result()) for case, search in running]
    print(f"{len(blamed)} searches of the honest locks", flush=True)
    return [f"{case.strategy} by {case.finder}: {caught.what}" for case, caught in blamed if caught.is_caught]


if __name__ == "__main__":
    sys.exit(main())
