"""A run in the formats of other tools. Each module has `build(run) -> str`, a pure function of the run."""

from __future__ import annotations
