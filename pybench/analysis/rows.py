"""Rows of a frame, chosen cheaply: a run of 1,000 cells chooses rows many thousand times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows_where(frame: pd.DataFrame, wanted: pd.Series[Any]) -> pd.DataFrame:
    """The rows of `frame` that are `wanted`; `frame` itself, uncopied, where all are."""
    return frame if wanted.all() else frame[wanted]
