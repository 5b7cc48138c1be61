"""The matrix: the values that a run varies or fixes, read from a file or from options, and expanded into cells.

The modules that read and check a matrix are imported on first use, so that `--help` works without pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.matrix.backends import Backend
    from pybench.matrix.expansion import expand, idle_excludes
    from pybench.matrix.file import read_text
    from pybench.matrix.loading import load_matrix, matrix_from_mapping, matrix_from_options
    from pybench.matrix.models import Matrix
    from pybench.matrix.schema import json_schema
    from pybench.matrix.template import INIT_TEXT
    from pybench.matrix.thresholds import Threshold

_MODULES = {
    "INIT_TEXT": "template",
    "Backend": "backends",
    "Matrix": "models",
    "Threshold": "thresholds",
    "expand": "expansion",
    "idle_excludes": "expansion",
    "json_schema": "schema",
    "load_matrix": "loading",
    "matrix_from_mapping": "loading",
    "matrix_from_options": "loading",
    "read_text": "file",
}

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


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
