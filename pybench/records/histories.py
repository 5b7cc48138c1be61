"""The histories of a run folder: the events of each trial, recorded, gathered, and read again.

While a trial runs, its load threads record into `parts/NAME.THREAD.recording`. At its end the recordings become
`parts/NAME.jsonl.zst`, and at the end of the run `history.jsonl.zst`, one zstd frame for each trial.

Promises: a history is written whole or not at all; the recording of a killed trial is read like a history. Where a
trial stands twice, the later history counts, as the later record does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pybench import _core
from pybench.analysis.terms import Terms
from pybench.columns import EFFECT_COLUMNS
from pybench.errors import RecordError
from pybench.records.atomic import replacing
from pybench.records.tables import PARTS

if TYPE_CHECKING:
    from pybench.analysis.disturbances import Trouble
    from pybench.core_results import Recorded
    from pybench.records.trial import TrialRecord

HISTORY = "history.jsonl.zst"
PART_SUFFIX = ".jsonl.zst"
RECORDING_SUFFIX = ".recording"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 1 << 20

UNSEEN_COUNTS = ("unknown", "reconnects", "lost_calls", "abandoned", "left_over_keys", "missed_wake_ups")
"""What a trial counts and no event of its history shows."""
BY_EFFECTS_COUNTS = ("grants", "contended_grants", *EFFECT_COLUMNS)
"""The same for a lock that is judged by its writes, whose grants the checker does not see."""


def part_stem(cell: str, trial: int) -> str:
    """The name of a trial's files under `parts/`, without a suffix."""
    # The id of a cell may contain any character and may be longer than a file name.
    return f"{hashlib.sha256(cell.encode()).hexdigest()[:24]}-{trial}"


def counts_of(record: TrialRecord, *, trouble: Trouble | None) -> dict[str, int]:
    """What the last line of a trial's history says, so that its verdict needs nothing but the history."""
    by_effects = Terms.recorded(record.row).by_effects
    names = (*UNSEEN_COUNTS, *(BY_EFFECTS_COUNTS if by_effects else ()))
    counts = {name: int(record.row[name]) for name in names if record.row[name] is not None}
    if trouble is None:
        return counts
    intact = {} if trouble.intact_ns == math.inf else {"intact_ns": max(0, int(trouble.intact_ns))}
    return {**counts, "disturbed": 1, **intact}


def write_part(path: Path, recorded: Recorded, counts: Mapping[str, int], *, trial: int) -> None:
    """Turn the recording of a trial, numbered `trial`, into its history at `path`, and remove the recording.

    Raises OSError, and then leaves the recording in place.
    """
    lines = _core.RecordedLines(recorded["files"], recorded["window"], recorded["ended_ns"], dict(counts), trial)
    with replacing(path) as temporary, pa.CompressedOutputStream(str(temporary), "zstd") as out:
        while piece := lines.next():
            out.write(piece)
    for file in recorded["files"]:
        Path(file).unlink(missing_ok=True)


def gather(folder: Path) -> None:
    """Append the histories under `parts/` to the history of the run. Raises OSError, and leaves the old file then."""
    parts = sorted((folder / PARTS).glob(f"[!.]*{PART_SUFFIX}"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    if not parts:
        return
    history = folder / HISTORY
    with replacing(history) as temporary, temporary.open("wb") as out:
        for part in ([history] if history.exists() else []) + parts:
            with part.open("rb") as source:
                while piece := source.read(PIECE_BYTES):
                    out.write(piece)


def sources_of(folder: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The histories of a run folder, each with the name for messages: gathered, of ended trials, of a killed trial."""
    parts = folder / PARTS
    for path in [folder / HISTORY, *sorted(parts.glob(f"[!.]*{PART_SUFFIX}"))]:
        if path.exists():
            yield str(path), pieces(path)
    recordings: dict[str, list[Path]] = {}
    for path in sorted(parts.glob(f"[!.]*{RECORDING_SUFFIX}")):
        recordings.setdefault(path.name.removesuffix(RECORDING_SUFFIX).rpartition(".")[0], []).append(path)
    for stem, files in recordings.items():
        yield str(parts / stem), _lines_of_killed(files)


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a history, decompressed if it is compressed with zstd. Raises RecordError."""
    try:
        with path.open("rb") as file:
            compressed = file.read(len(ZSTD_MAGIC)) == ZSTD_MAGIC
            file.seek(0)
            stream = pa.CompressedInputStream(pa.PythonFile(file), "zstd") if compressed else file
            while piece := stream.read(PIECE_BYTES):
                yield piece
    except OSError as error:
        raise RecordError(
            f"{path} cannot be read: {error.strerror or error}", hint="name a file with a history, or a run folder"
        ) from error


def _lines_of_killed(files: list[Path]) -> Iterator[bytes]:
    """The history that a killed trial has recorded so far."""
    try:
        lines = _core.RecordedLines(list(map(str, files)))
        while piece := lines.next():
            yield piece
    except OSError as error:
        raise RecordError(f"{files[0]} cannot be read: {error}", hint="delete the file") from error


def section_key(header: Mapping[str, Any]) -> tuple[str, int] | None:
    """The cell and trial of a history; None for a history of another program."""
    trial = header.get("trial")
    return None if trial is None else (trial["cell"], trial["trial"])
