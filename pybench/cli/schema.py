"""`pybench schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from pybench.cli.output import data_json


def schema(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="No effect: the schema is always JSON.")] = False,
) -> int:
    """Print the JSON Schema of a matrix.

    Editors use the schema to complete and check a matrix.
    """
    from pybench.matrix import json_schema

    data_json(json_schema())
    return 0
