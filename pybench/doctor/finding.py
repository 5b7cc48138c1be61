"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """A run is possible; its figures may be worse or less steady than they could be."""
    BAD = "bad"
    """A run is not possible."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    level: Level
    subject: str
    """A word or two: `cores`, `wake-up`, `core build`, `server`."""
    what: str
    hint: str | None = None
    """What the user can do about it."""
