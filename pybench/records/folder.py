"""A run folder during its run: created, filled trial by trial, and gathered at the end.

Promises: an added trial is kept whatever happens later. Saving a trial costs milliseconds, however many there are.
Readers see whole files at any time. Every failure is a RecordError with a hint. Only one process can claim a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pybench.errors import RecordError
from pybench.records import histories, search_probes, tables
from pybench.records.atomic import absolute, explained, remove_temporaries, write_atomically
from pybench.records.manifest import MANIFEST, encode_manifest, read_manifest
from pybench.records.run import Run
from pybench.records.trial import TrialRecord

if TYPE_CHECKING:
    from pybench.analysis.disturbances import Trouble
    from pybench.core_results import Recorded

SUMMARY = "summary.csv"
COMPLETE = "complete"
CSV_DIGITS = "%.9g"


class RunFolder:
    """The folder of one run, open for writing. `path` is absolute."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self._manifest = dict(manifest)
        self._claim: int | None = None

    @classmethod
    def create(cls, path: str | Path, manifest: Mapping[str, Any]) -> RunFolder:
        """Create a run folder at `path`, which may be an empty folder. Raises RecordError when it is not empty."""
        folder = cls(absolute(path), manifest)
        with explained(folder.path, begun=False):
            existed = folder.path.exists()
            folder.path.mkdir(parents=True, exist_ok=True)
            if any(folder.path.iterdir()):
                raise _occupied(folder.path)
            try:
                (folder.path / tables.PARTS).mkdir()
            except FileExistsError:  # Another run has just created it.
                raise _occupied(folder.path) from None
            try:
                write_atomically(folder.path / MANIFEST, encode_manifest(folder.manifest))
            except OSError:
                with suppress(OSError):
                    (folder.path / tables.PARTS).rmdir()
                    if not existed:
                        folder.path.rmdir()
                raise
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open an existing run folder for writing. Raises RecordError for another folder, or for a newer schema."""
        place = absolute(path)
        return cls(place, read_manifest(place))

    def claim(self) -> None:
        """Lock the folder against other processes until `release`, and read the manifest again.

        Raises RecordError when another process has the lock: two runs would overwrite each other's trials.
        """
        with explained(self.path):
            # The folder itself is locked, since a killed run would leave a lock file behind.
            lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RecordError(
                f"another process is writing to the run folder {self.path}",
                hint="wait until that process ends, or stop it",
            ) from None
        except OSError:
            pass  # The file system has no locks, so the user must avoid two runs in one folder.
        self._claim = lock
        self._manifest = read_manifest(self.path)

    def release(self) -> None:
        """Release the lock; without a lock nothing happens."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The content of `manifest.json`."""
        return self._manifest

    def update_manifest(self, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Set `fields` of the manifest and write it."""
        self._manifest.update(fields)
        with explained(self.path):
            write_atomically(self.path / MANIFEST, encode_manifest(self._manifest))

    def recording(self, cell: str, trial: int) -> Path:
        """Where the core records the events of a trial: a path without suffix."""
        with explained(self.path):
            (self.path / tables.PARTS).mkdir(exist_ok=True)
        return self.path / tables.PARTS / histories.part_stem(cell, trial)

    def add_trial(
        self, record: TrialRecord, *, recorded: Recorded | None = None, trouble: Trouble | None = None
    ) -> None:
        """Save one trial; it replaces an earlier record of the same cell and trial. So does its history.

        An incomplete trial with a violation gets a new number after those of the plan. The trial is run again, and the
        violation still counts, beside the repeated trial.
        """
        if record.row["status"] != COMPLETE and record.row["violations"]:
            number = self._next_number(record.cell)
            record = replace(record, trial=number, row={**record.row, "trial": number})
        stem = histories.part_stem(record.cell, record.trial)
        data = tables.encode_part(record)
        with explained(self.path):
            parts = self.path / tables.PARTS
            parts.mkdir(exist_ok=True)
            if recorded is not None:
                counts = histories.counts_of(record, trouble=trouble)
                histories.write_part(parts / f"{stem}{histories.PART_SUFFIX}", recorded, counts, trial=record.trial)
            write_atomically(parts / f"{stem}{tables.PART_SUFFIX}", data)

    def add_probe(self, row: Mapping[str, Any]) -> None:
        """Save one probe of a search; it replaces an earlier one of the same number."""
        with explained(self.path):
            parts = self.path / tables.PARTS
            parts.mkdir(exist_ok=True)
            name = search_probes.part_name(row["cell"], row["trial"], row["probe"])
            write_atomically(parts / name, search_probes.encode(row))

    def forget_probes(self, cell: str, trial: int) -> None:
        """Remove the probes of one search, which begins anew; without probes nothing happens."""
        with explained(self.path):
            for path in (self.path / tables.PARTS).glob(search_probes.part_name(cell, trial)):
                path.unlink()
            gathered = self.path / search_probes.PROBES
            if gathered.exists():
                kept = search_probes.without(tables.read_parquet(gathered), cell, trial)
                write_atomically(gathered, tables.parquet(kept))

    def probes(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """The probes of each search, known by its cell and trial, in the order in which they ran."""
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        with explained(self.path):
            rows: list[dict[str, Any]] = search_probes.read(self.path).to_pylist()
        for row in rows:
            found.setdefault((row["cell"], row["trial"]), []).append(row)
        return found

    def starts(self) -> dict[tuple[str, int], datetime]:
        """When each complete trial, which need not be run again, began: by its cell and number."""
        complete = (row for row in self._rows() if row["status"] == COMPLETE)
        return {(row["cell"], row["trial"]): datetime.fromisoformat(row["started_at"]) for row in complete}

    def _rows(self) -> list[dict[str, Any]]:
        trials = self._gathered().trials
        rows: list[dict[str, Any]] = trials.select(["cell", "trial", "status", "started_at"]).to_pylist()
        return rows

    def _next_number(self, cell: str) -> int:
        """The first trial number that neither the plan nor a record of `cell` uses."""
        taken: list[int] = [row["trial"] for row in self._rows() if row["cell"] == cell]
        return max([len(self._manifest["order"]), *taken]) + 1

    def _gathered(self) -> tables.Tables:
        return tables.gather(self.path, self._manifest)

    def finish(self, status: Literal["complete", "interrupted"]) -> Run:
        """Gather the trials into the files of the folder and remove the parts; a second call changes nothing.

        The run can be resumed: the next call gathers trials that are added later.
        """
        gathered = self._gathered()
        run = Run.of(self.path, self._manifest, gathered)
        with explained(self.path):
            for name, file in (tables.FILES | tables.DETAILS).items():
                write_atomically(self.path / file, tables.parquet(getattr(gathered, name)))
            if len(run.probes):
                probes = search_probes.read(self.path)
                write_atomically(self.path / search_probes.PROBES, tables.parquet(probes))
            write_atomically(self.path / tables.VIOLATIONS, _json_lines(gathered.violations))
            summary = summary_csv(run)
            write_atomically(self.path / SUMMARY, summary.encode())
            histories.gather(self.path)
        self.update_manifest(status=status, finished_at=datetime.now(UTC).isoformat(timespec="seconds"))
        # The parts are removed last: until the manifest has the new status, they are the record.
        with explained(self.path):
            remove_temporaries(self.path)
            if (self.path / tables.PARTS).exists():
                shutil.rmtree(self.path / tables.PARTS)
        return replace(run, manifest=dict(self._manifest))


def _json_lines(violations: pa.Table) -> bytes:
    def line(row: dict[str, Any]) -> str:
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"

    return "".join(map(line, violations.to_pylist())).encode()


def _occupied(path: Path) -> RecordError:
    if (path / MANIFEST).exists():
        return RecordError(
            f"{path} already contains a run",
            hint=f"resume the run with --resume {path}, or choose another folder with --out",
        )
    return RecordError(f"{path} is not empty", hint="choose a new or an empty folder with --out")


def summary_csv(run: Run) -> str:
    """The text of `summary.csv`."""
    return run.summary.to_csv(index=False, float_format=CSV_DIGITS, lineterminator="\n")
