"""Opens the run of a notebook, and says what the notebook needs where the run lacks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pybench.errors import InputError, RecordError
from pybench.matrix.conditions import axis_title
from pybench.records import Run, load
from pybench.strategies import CATALOGUE, ServerKind


def open_run(
    folder: str | Path, *, varies: Sequence[str] = (), kinds: Sequence[str] = (), needs: str | None = None
) -> Run:
    """The run in `folder`; a relative path is looked for in the working directory and in the folders above it.

    `varies` are columns of the summary that must have several values, such as `retry`; `kinds` are kinds of servers,
    `redis` and `postgres`, on which it must have locks; `needs` is a query that some cell must fulfil. Raises
    InputError for a run without them, and RecordError where there is no run.
    """
    run = load(_found(Path(folder)))
    if run.summary.empty:
        raise InputError(f"{folder} has no complete trial", hint=f"finish it: pybench run --resume {folder}")
    for column in varies:
        if run.summary[column].nunique(dropna=False) < 2:
            title = "strategy" if column == "strategy" else axis_title(column)
            raise InputError(
                f"{folder} has only one value of {title}, and this notebook compares several",
                hint="set RUN to another run folder, or measure one: docs/matrix.md has all axes",
            )
    present = {kind for name in run.summary["strategy"] if name in CATALOGUE for kind in CATALOGUE[name].server_kinds}
    for wanted in kinds:
        if ServerKind(wanted) not in present:
            raise InputError(
                f"{folder} has no lock on {wanted.capitalize()}, and this notebook compares kinds of servers",
                hint="set RUN to another run folder, or measure one: pybench run -s mutex -s pg-advisory",
            )
    if needs and run.summary.query(needs).empty:
        raise InputError(
            f"{folder} has no cell with {needs}, and this notebook needs one",
            hint="set RUN to another run folder, or measure longer",
        )
    return run


def _found(folder: Path) -> Path:
    here = Path.cwd()
    for place in (here, *here.parents):
        if (place / folder / "manifest.json").is_file():
            return place / folder
    raise RecordError(
        f"there is no run folder {folder} in {here} or above it",
        hint="set RUN to the path of a folder that `pybench run` wrote",
    )
