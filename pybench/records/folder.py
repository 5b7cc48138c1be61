"""A run folder while its run goes on: begun, filled trial by trial, gathered at the end.

Promises: a trial that was added is kept whatever happens after; saving one costs milliseconds, however many there are;
whoever reads meanwhile sees whole files. Every failure is a RecordError that says what to do. Once claimed, no other
process can claim it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pybench.errors import RecordError
from pybench.records import schema, tables
from pybench.records.atomic import absolute, explained, remove_temporaries, write_atomically
from pybench.records.manifest import MANIFEST, encode_manifest, read_manifest
from pybench.records.run import Run
from pybench.records.trial import TrialRecord

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
        """Begin a run folder at `path`, which may exist empty. Raises RecordError when it holds something already."""
        folder = cls(absolute(path), manifest)
        with explained(folder.path, begun=False):
            existed = folder.path.exists()
            folder.path.mkdir(parents=True, exist_ok=True)
            if any(folder.path.iterdir()):
                raise _occupied(folder.path)
            try:
                (folder.path / tables.PARTS).mkdir()
            except FileExistsError:  # Another run was quicker.
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
        """Go on in a run folder that exists. Raises RecordError when it is none, or of a newer schema."""
        place = absolute(path)
        return cls(place, read_manifest(place))

    def claim(self) -> None:
        """Keep the folder from every other process until `release`, and read the manifest anew.

        Raises RecordError when another process has claimed it: two runs would overwrite each other's trials.
        """
        with explained(self.path):
            # The folder itself is locked: a file for it would be left behind by a run that is killed.
            lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RecordError(
                f"another process is running the run in {self.path}", hint="wait for its end, or end that one"
            ) from None
        except OSError:
            pass  # A file system without locks: then the user has to see to it.
        self._claim = lock
        self._manifest = read_manifest(self.path)

    def release(self) -> None:
        """Give up the claim. Harmless without one."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What `manifest.json` holds."""
        return self._manifest

    def update_manifest(self, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Set `fields` of the manifest and write it."""
        self._manifest.update(fields)
        with explained(self.path):
            write_atomically(self.path / MANIFEST, encode_manifest(self._manifest))

    def add_trial(self, record: TrialRecord) -> None:
        """Keep one trial; it replaces an earlier record of the same cell and trial.

        One that did not run to its end and saw a violation gets a number of its own, after those of the plan: it is
        run again, and what it saw counts once, beside the trial that comes in its place.
        """
        if record.row["status"] != COMPLETE and record.row["violations"]:
            number = self._next_number(record.cell)
            record = replace(record, trial=number, row={**record.row, "trial": number})
        # A cell's id may hold any sign, and be longer than a file's name.
        name = f"{hashlib.sha256(record.cell.encode()).hexdigest()[:24]}-{record.trial}{tables.PART_SUFFIX}"
        data = tables.encode_part(record)
        with explained(self.path):
            (self.path / tables.PARTS).mkdir(exist_ok=True)
            write_atomically(self.path / tables.PARTS / name, data)

    def done(self) -> set[tuple[str, int]]:
        """The cell and number of every trial that need not be run again: of those that ran to their end."""
        return {(row["cell"], row["trial"]) for row in self._rows() if row["status"] == COMPLETE}

    def _rows(self) -> list[dict[str, Any]]:
        trials = self._gathered().trials
        rows: list[dict[str, Any]] = trials.select(["cell", "trial", "status"]).to_pylist()
        return rows

    def _next_number(self, cell: str) -> int:
        """The first that neither the plan nor a record of `cell` has."""
        taken: list[int] = [row["trial"] for row in self._rows() if row["cell"] == cell]
        return max([len(self._manifest["order"]), *taken]) + 1

    def _gathered(self) -> tables.Tables:
        return tables.gather(self.path, self._manifest)

    def finish(self, status: Literal["complete", "interrupted"]) -> Run:
        """Gather the trials into the folder's files and remove the parts; harmless when done before.

        The run can be taken up again: trials that are added after it are gathered by the next call.
        """
        gathered = self._gathered()
        run = Run.of(self.path, self._manifest, gathered)
        with explained(self.path):
            for name, file in tables.FILES.items():
                write_atomically(self.path / file, _parquet(getattr(gathered, name)))
            write_atomically(self.path / tables.VIOLATIONS, _json_lines(gathered.violations))
            summary = run.summary.to_csv(index=False, float_format=CSV_DIGITS, lineterminator="\n")
            write_atomically(self.path / SUMMARY, summary.encode())
        self.update_manifest(status=status, finished_at=datetime.now(UTC).isoformat(timespec="seconds"))
        # Only now: until the manifest says so, the parts are the record.
        with explained(self.path):
            remove_temporaries(self.path)
            if (self.path / tables.PARTS).exists():
                shutil.rmtree(self.path / tables.PARTS)
        return replace(run, manifest=dict(self._manifest))


def _parquet(table: pa.Table) -> bytes:
    # Written to memory first, so that a full disk is met by one write and reported as what it is.
    buffer = BytesIO()
    pq.write_table(table.cast(schema.numbered(table.schema)), buffer, compression="zstd")
    return buffer.getvalue()


def _json_lines(violations: pa.Table) -> bytes:
    def line(row: dict[str, Any]) -> str:
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"

    return "".join(map(line, violations.to_pylist())).encode()


def _occupied(path: Path) -> RecordError:
    if (path / MANIFEST).exists():
        return RecordError(
            f"{path} holds a run already", hint=f"go on with it by --resume {path}, or name another folder with --out"
        )
    return RecordError(f"{path} is not empty", hint="name a new or an empty folder with --out")
