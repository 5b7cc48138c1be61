"""`pybench strategies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json
from pybench.errors import InputError

if TYPE_CHECKING:
    from pybench.strategies import Strategy


def strategies(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them, in full.")] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """List every strategy: what it promises, and its commands per grant."""
    from pybench.strategies import CATALOGUE

    if name is not None and name not in CATALOGUE:
        raise InputError(f"no strategy is named {name!r}", hint=f"one of: {', '.join(CATALOGUE)}")
    chosen = [CATALOGUE[name]] if name is not None else list(CATALOGUE.values())
    if as_json:
        data_json([_row(strategy) for strategy in chosen])
    elif name is not None:
        data(_in_full(chosen[0]))
    else:
        data("\n".join(_in_brief(strategy) for strategy in chosen))
    return 0
