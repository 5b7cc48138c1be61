"""`pybench strategies`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, width
from pybench.errors import InputError

if TYPE_CHECKING:
    from pybench.strategies import Strategy


def strategies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.")] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """List the locks: what they send, what they promise.

    With a name: also under which faults its promise holds, when to use it, and when not.
    """
    from pybench.notation import shown, suggestion
    from pybench.strategies import CATALOGUE

    if name is not None and name not in CATALOGUE:
        raise InputError(f"there is no strategy {shown(name)}", hint=suggestion(name, CATALOGUE))
    chosen = [CATALOGUE[name]] if name is not None else list(CATALOGUE.values())
    if as_json:
        data_json([_row(strategy) for strategy in chosen])
    elif name is not None:
        data(_in_full(chosen[0]))
    else:
        data("\n".join(_in_brief(strategy) for strategy in chosen))
    return 0


def _in_brief(strategy: Strategy) -> str:
    number = strategy.commands_per_grant
    head = f"{strategy.name}: {strategy.summary}"
    cost = f"{number} {'command' if number == 1 else 'commands'} per grant. Promises: {strategy.promise}"
    return "\n".join([*_wrapped(head, "", "    "), *_wrapped(cost, "    ", "    "), ""])


def _in_full(strategy: Strategy) -> str:
    lines = [f"{strategy.name}: {strategy.summary}", ""]
    entries = {
        "commands": "; ".join(strategy.commands) or "none",
        "promise": strategy.promise,
        "holds under": strategy.holds_under,
        "when to use": strategy.when_to_use,
        "when not": strategy.when_not,
    } | {
        f"{parameter.name}=": f"{parameter.meaning} {parameter.allowed.text}; {parameter.default} by default."
        for parameter in strategy.parameters
    }
    for word, text in entries.items():
        lines += _wrapped(text, f"{word:<14}", " " * 14)
    return "\n".join(lines)


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, width(), initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _row(strategy: Strategy) -> dict[str, Any]:
    return {
        "strategy": strategy.name,
        "summary": strategy.summary,
        "commands": list(strategy.commands),
        "commands_per_grant": strategy.commands_per_grant,
        "promise": strategy.promise,
        "holds_under": strategy.holds_under,
        "when_to_use": strategy.when_to_use,
        "when_not": strategy.when_not,
        "parameters": [
            {
                "name": parameter.name,
                "allowed": parameter.allowed.text,
                "default": parameter.default,
                "meaning": parameter.meaning,
            }
            for parameter in strategy.parameters
        ],
    }
