"""The JSON Schema of a matrix, by which editors complete and check a file."""

from __future__ import annotations

from typing import Any

from pybench.matrix.models import Matrix

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of a matrix. Only `load_matrix` finds contradictions between its parts."""
    schema = Matrix.model_json_schema(by_alias=True)
    _tidy(schema)
    return {
        "$schema": DIALECT,
        "title": "pybench matrix",
        "description": "The cells that a run measures, its servers, and its thresholds.",
        **{key: value for key, value in schema.items() if key not in ("title", "description")},
    }


def _tidy(node: Any) -> None:  # noqa: ANN401 - any part of a schema
    """Drop titles that repeat the key, and defaults of null, which mean "not given"."""
    if isinstance(node, list):
        for part in node:
            _tidy(part)
    if not isinstance(node, dict):
        return
    for name, part in node.items():
        if name == "properties":
            for one in part.values():
                if isinstance(one.get("title"), str):
                    del one["title"]
        _tidy(part)
    if "default" in node and node["default"] is None:
        del node["default"]
