"""The matrix: what a run varies and what it holds fixed, read from a file or from options, and expanded into cells."""

from __future__ import annotations

from pybench.matrix.backends import Backend
from pybench.matrix.expand import expand, idle_excludes
from pybench.matrix.file import read_text
from pybench.matrix.loading import load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.models import Matrix
from pybench.matrix.schema import json_schema
from pybench.matrix.template import INIT_TEXT
from pybench.matrix.thresholds import Threshold

__all__ = [
    "INIT_TEXT",
    "Backend",
    "Matrix",
    "Threshold",
    "expand",
    "idle_excludes",
    "json_schema",
    "load_matrix",
    "matrix_from_mapping",
    "matrix_from_options",
    "read_text",
]
