"""`pybench init`."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from pybench.cli.output import data, say
from pybench.errors import InputError


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File to write.")] = Path("matrix.yaml"),
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> int:
    """Write a commented matrix to start from.

    Also writes the schema by which editors complete and check a matrix.
    """
    from pybench.matrix import INIT_TEXT, json_schema
    from pybench.matrix.template import SCHEMA_FILE

    try:
        if path.is_dir():
            path /= "matrix.yaml"
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(INIT_TEXT)
        # An older schema is overwritten: editors must check a matrix by the version that reads it.
        schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
        path.with_name(SCHEMA_FILE).write_text(schema, encoding="utf-8")
    except FileExistsError as error:
        raise InputError(f"{path} exists", hint=f"pybench init {quote(str(path))} --force") from error
    except OSError as error:
        from pybench.records.atomic import shortened

        # Check the error first: `exists` on a path that is too long raises an error of its own.
        is_absent = error.errno == errno.ENOENT and not path.parent.exists()
        hint = f"mkdir -p {quote(str(path.parent))}" if is_absent else "pybench init PATH"
        raise InputError(f"{shortened(path)} cannot be written: {error.strerror}", hint=hint) from error
    data(str(path))
    say(f"next: pybench plan {quote(str(path))}, then pybench run {quote(str(path))} --quick")
    return 0
