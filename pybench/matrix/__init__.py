"""The matrix: what a run varies and what it holds fixed."""

from __future__ import annotations

from pybench.matrix.thresholds import Threshold

__all__ = ["Threshold"]
