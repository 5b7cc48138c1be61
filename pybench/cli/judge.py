"""`pybench judge`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, say, say_meaning

if TYPE_CHECKING:
    from pybench.records.judging import HistoryVerdict

SENTENCES = 10
"""How many violations of a history are printed; --json has all that are kept."""


def judge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Histories (.jsonl or .jsonl.zst), or folders of runs with --history."),
    ],
    *,
    as_json: AsJson = False,
) -> int:
    """Judge histories of lock events, written by any program.

    Several files of one machine are merged by its monotonic clock and judged as one history. The history of a run is
    judged trial by trial. docs/judge.md describes the format, and examples/judge has programs that write it.
    """
    from pybench.records.judging import exit_code, judge_paths

    found = judge_paths(files)
    code = exit_code(found)
    if as_json:
        data_json({"exit_code": code.value, "histories": [one.to_json() for one in found]})
    else:
        data("\n".join(line for one in found for line in lines_of(one)))
    for one in found:
        for note in one.notes:
            say(note)
    say_meaning(code)
    return code


def lines_of(one: HistoryVerdict) -> Iterator[str]:
    """The verdict, its reason, and the first violations."""
    from pybench.numbers import plural

    trial = "" if one.trial is None else f", trial {one.trial}"
    files = "" if one.trial is not None else f" from {plural(len(set(one.files)), 'file')}"
    yield f"{one.judgement.verdict.value}  {one.name}{trial}: {one.judgement.reason}"
    yield f"  {plural(one.events, 'event')}{files}: {plural(one.clients, 'client')}, {plural(one.keys, 'key')}"
    for violation in one.violations[:SENTENCES]:
        yield f"  - {violation['sentence']}"
    if len(one.violations) > SENTENCES:
        yield f"  - and {one.violation_count - SENTENCES:,} more (--json lists the first 100)"
