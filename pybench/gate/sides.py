"""The two sides of a gate: their matrices, where their trials run, and which of their cells are compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.analysis.between_runs.matching import Row, match_cells
from pybench.analysis.comparison.claims import axis_value
from pybench.errors import InputError
from pybench.gate.other_python import Environment
from pybench.matrix.cells import LOAD_COLUMNS
from pybench.planning.plan import backends_of, make_plan

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

WHAT_TO_GIVE = (
    "name what to compare with: --base-python VENV (another pybench), --base-redis or --base-postgres URL (another "
    "server), or --head MATRIX (another matrix than BASE)"
)
SCHEDULE = ("trials", "duration", "warmup", "seed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line says of both sides. Addresses are lists, times and numbers texts; None: not given."""

    base: Path
    """A matrix file, or a run folder."""
    head: Path | None = None
    base_python: Path | None = None
    base_redis: Sequence[str] = ()
    base_postgres: Sequence[str] = ()
    redis: Sequence[str] = ()
    postgres: Sequence[str] = ()
    servers: str = "auto"
    trials: str | None = None
    duration: str | None = None
    warmup: str | None = None
    seed: str | None = None


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides, read and checked."""

    base: Matrix
    head: Matrix
    given: tuple[str | None, str | None]
    """The texts of the matrix files of base and head."""
    trials: int | None
    """Blocks of the first round, where the user says so."""
    environment: Environment | None
    """Where the trials of the base run, if not in this process."""

    @property
    def are_same(self) -> bool:
        """Whether base and head are the same cells on the same servers in the same environment."""
        if self.environment is not None:
            return False
        cells = [make_plan(matrix).cells for matrix in (self.base, self.head)]
        used = {part for cell in cells[0] for part in backends_of(cell)}
        return (
            bool(cells[0])
            and cells[0] == cells[1]
            and all(self.base.backends[name] == self.head.backends[name] for name in used)
        )

    @property
    def shares_servers(self) -> bool:
        """Whether one pool can have the servers of both: no name stands for different servers."""
        common = self.base.backends.keys() & self.head.backends.keys()
        return all(self.base.backends[name] == self.head.backends[name] for name in common)


def read_sides(asked: Asked) -> Sides:
    """Read both matrices. Raises InputError, RecordError."""
    head, head_text = _read(asked.head or asked.base, asked, asked.redis, asked.postgres)
    base, base_text = _read(asked.base, asked, asked.base_redis or asked.redis, asked.base_postgres or asked.postgres)
    # One seed: the trials of a block have the same keys and holds on both sides. The head's times are those of both.
    base = _scheduled(base, head, SCHEDULE)
    secrets = base.secrets | head.secrets
    environment = None if asked.base_python is None else replace(Environment.at(asked.base_python), secrets=secrets)
    return Sides(base, head, (base_text, head_text), None if asked.trials is None else head.trials, environment)


def _read(path: Path, asked: Asked, redis: Sequence[str], postgres: Sequence[str]) -> tuple[Matrix, str | None]:
    from pybench.matrix import read_text
    from pybench.running.job import read_matrix

    schedule = {name: getattr(asked, name) for name in SCHEDULE}
    if path.is_dir():
        return _of_folder(path, schedule, {"redis": redis, "postgres": postgres}), None
    text = read_text(path)
    options = {"redis": list(redis), "postgres": list(postgres), "servers": asked.servers}
    try:
        return read_matrix(path, text, **schedule, **options), text
    except InputError as error:
        raise _as_named_here(error, asked, redis, postgres) from None


def _as_named_here(error: InputError, asked: Asked, redis: Sequence[str], postgres: Sequence[str]) -> InputError:
    """An error of a matrix, with the names that the options have here."""
    from pybench.matrix.loading import OPTIONS_HINT

    message = error.message
    for kind, given, of_base in (("redis", redis, asked.base_redis), ("postgres", postgres, asked.base_postgres)):
        if given and given is of_base:
            message = message.replace(f"--{kind}:", f"--base-{kind}:")
    return InputError(message, hint=OPTIONS_HINT.replace("run", "gate") if error.hint == OPTIONS_HINT else error.hint)


def _of_folder(path: Path, schedule: Mapping[str, Any], addresses: Mapping[str, Sequence[str]]) -> Matrix:
    """The matrix of a run folder, with another schedule and other addresses where they are given."""
    from pybench.records import RunFolder
    from pybench.running.job import read_matrix
    from pybench.running.resume import given_servers, matrix_of
    from pybench.strategies import ServerKind

    folder = RunFolder.open(path)
    named: dict[str, Sequence[str]] = {}
    for kind in ServerKind:
        of_record = given_servers(folder.manifest, kind)
        from_environment = os.environ.get(kind.variable)
        named[kind] = addresses[kind] or ([from_environment] if from_environment and len(of_record) == 1 else [])
        if named[kind] and not of_record:
            raise InputError(
                f"pybench started the {kind.label} servers of {path}, so no --{kind} can take their place",
                hint="give the matrix file of that run instead of its folder",
            )
    try:
        matrix = matrix_of(folder, named)
    except InputError as error:
        raise InputError(error.message, hint="pass the address with --redis or --postgres") from None
    said = read_matrix(None, None, strategy="none", **schedule)
    return _scheduled(matrix, said, [name for name, text in schedule.items() if text is not None])


def _scheduled(matrix: Matrix, other: Matrix, names: Iterable[str]) -> Matrix:
    """`matrix` with these keys, named as in a file, of the `other` one."""
    fields = {field.alias or name: name for name, field in type(matrix).model_fields.items()}
    return matrix.model_copy(update={fields[name]: getattr(other, fields[name]) for name in names})


@dataclass(frozen=True, slots=True)
class Pairs:
    """The cells that are compared, and those that one side alone has."""

    cells: list[tuple[Cell, Cell]]
    """Base and head, in the order of the head's matrix."""
    only_base: list[Cell]
    only_head: list[Cell]

    @property
    def ids(self) -> dict[str, str]:
        """The id of each base cell -> that of its head."""
        return {base.id: head.id for base, head in self.cells}


def pair_cells(base: Sequence[Cell], head: Sequence[Cell], matrices: tuple[Matrix, Matrix]) -> Pairs:
    """Pair the cells of both sides: the same lock under the same load; else the one lock that a load has on each side.

    Raises InputError where nothing is left to compare.
    """
    rows = [[_row(cell) for cell in cells] for cells in (base, head)]
    kinds = [{name: one.kind.value for name, one in matrix.backends.items()} for matrix in matrices]
    matched = match_cells(rows[0], rows[1], (kinds[0], kinds[1]))
    pairs = {str(new["cell"]): str(old["cell"]) for old, new in matched.pairs}
    alone = [_by_load(left) for left in (matched.only_old, matched.only_new)]
    pairs |= {alone[1][load]: alone[0][load] for load in alone[0].keys() & alone[1].keys()}
    cells = {cell.id: cell for cell in base}
    found = [(cells[pairs[cell.id]], cell) for cell in head if cell.id in pairs]
    if not found:
        raise InputError(
            "base and head have no load in common, so nothing can be compared",
            hint="both matrices need cells with the same axes; at each load either the same locks, or one lock each",
        )
    for cell in (one for pair in found for one in pair if one.mode.is_search):
        raise InputError(
            f"{cell.id} searches for a limit, and a gate compares trials at one load",
            hint="give it a rate instead of a mode; pybench compare shows how the limits of two runs differ",
        )
    for cell in (one for pair in found for one in pair if one.faults):
        raise InputError(
            f"{cell.id} has faults, and a gate compares trials on healthy servers",
            hint="drop faults; pybench compare shows how two runs with faults differ",
        )
    for cell in (one for pair in found for one in pair if one.processes):
        raise InputError(
            f"{cell.id} has worker processes, and a gate chooses the processes of its trials itself",
            hint="use processes: 0; pybench compare shows how two runs differ",
        )
    return Pairs(
        cells=found,
        only_base=[cell for cell in base if cell.id not in pairs.values()],
        only_head=[cell for cell in head if cell.id not in pairs],
    )


def _row(cell: Cell) -> Row:
    return dict([("cell", cell.id), *cell.columns().items()])


def _by_load(rows: Sequence[Row]) -> dict[tuple[object, ...], str]:
    """The cell at each load that has exactly one."""
    found: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        found.setdefault(tuple(axis_value(row.get(column)) for column in LOAD_COLUMNS), []).append(str(row["cell"]))
    return {load: cells[0] for load, cells in found.items() if len(cells) == 1}
