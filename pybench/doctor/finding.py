"""What the doctor says about one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much it matters."""

    OK = "ok"
    WARN = "warn"
    """Measuring works; figures may be worse or less steady than they could be."""
    BAD = "bad"
    """Measuring does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    level: Level
    subject: str
    """A word or two: `cores`, `wake-up`, `core build`, `server`."""
    what: str
    hint: str | None = None
    """What to do about it."""
