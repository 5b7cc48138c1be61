"""`pybench strategies`."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.cli.options import AsJson
from pybench.cli.output import data, data_json, width
from pybench.errors import InputError
from pybench.notation import format_number
from pybench.numbers import plural

if TYPE_CHECKING:
    from pybench.strategies import Parameter, Strategy

_INDENT = " " * 14


def strategies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this strategy in full.")] = None,
    *,
    matrix: Annotated[bool, typer.Option("--matrix", help="Show a table of properties, each with its proof.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the locks: cost, promise, when to use each.

    With NAME: also the lock's commands, the faults under which its promise holds, and its arguments.
    """
    from pybench.notation import shown, suggestion
    from pybench.strategies import CATALOGUE

    if name is not None and name not in CATALOGUE:
        raise InputError(f"there is no strategy {shown(name)}", hint=suggestion(name, CATALOGUE))
    chosen = [CATALOGUE[name]] if name is not None else list(CATALOGUE.values())
    if matrix:
        from pybench.cli.matrix_table import matrix_json, matrix_text

        if as_json:
            data_json(matrix_json(chosen))
        else:
            data(matrix_text(chosen))
    elif as_json:
        data_json([_row(strategy) for strategy in chosen])
    elif name is not None:
        data(_in_full(chosen[0]))
    else:
        data(_list(chosen))
    return 0


def _list(strategies: Sequence[Strategy]) -> str:
    """All strategies in brief, grouped by family."""
    lines: list[str] = []
    for family, members in itertools.groupby(strategies, key=lambda strategy: strategy.family):
        lines += [family.value.upper(), "", *(line for strategy in members for line in [*_in_brief(strategy), ""])]
    return "\n".join([*lines, "pybench strategies NAME shows one strategy in full."])


def _in_brief(strategy: Strategy) -> Iterator[str]:
    entries = {
        "promise": strategy.promise,
        "when to use": strategy.when_to_use,
        "when not": strategy.when_not,
    }
    cost = plural(strategy.commands_per_grant, "command")
    yield from _wrapped(f"{strategy.name}, {cost} a grant: {strategy.summary}", "", _INDENT)
    for word, text in entries.items():
        yield from _wrapped(text, f"  {word:<{len(_INDENT) - 2}}", _INDENT)


def _in_full(strategy: Strategy) -> str:
    lines = [*_wrapped(f"{strategy.name}: {strategy.summary}", "", _INDENT), ""]
    entries = {
        "commands": _commands(strategy),
        "promise": strategy.promise,
        "holds under": strategy.holds_under,
        "SAFE means": _safe_means(strategy),
        "when to use": strategy.when_to_use,
        "when not": strategy.when_not,
        "connections": _connections(strategy),
        "axes": ", ".join(f"--{axis.replace('_', '-')}" for axis in axes_of(strategy)),
    }
    for word, text in entries.items():
        if text:
            lines += _wrapped(text, f"{word:<{len(_INDENT)}}", _INDENT)
    for word, parameter in zip(["arguments", *[""] * len(strategy.parameters)], strategy.parameters, strict=False):
        text = f"{parameter.name}={_default(parameter)} ({parameter.allowed.text}): {parameter.meaning}"
        lines += _wrapped(text, f"{word:<{len(_INDENT)}}", f"{_INDENT}  ")
    return "\n".join(lines)


def _safe_means(strategy: Strategy) -> str:
    """The conditions behind the verdict SAFE of this lock, with its default arguments."""
    from pybench.analysis.assumptions import when_holder_dies, would_not_survive

    lost, freed = would_not_survive(strategy, ()), when_holder_dies(strategy, ())
    said = [f"safe on healthy servers; it {lost}" if lost else "", freed]
    text = "; ".join(filter(None, said))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _commands(strategy: Strategy) -> str:
    listed = "; ".join(strategy.commands) or "none"
    servers = strategy.servers(())
    each = strategy.commands_per_grant > len(strategy.commands)
    where = f", to each of {servers} servers: {strategy.commands_per_grant} a grant" if each else ""
    return f"{listed}{where}"


def _connections(strategy: Strategy) -> str:
    if strategy.subscribes:
        return "For each connection that clients share, one more to the first server, for subscriptions."
    if not strategy.owns_connection:
        return ""
    if not strategy.shares_connections:
        return "Each client has a database session of its own."
    return "Each client has a connection of its own to the first server, besides the shared ones."


def _default(parameter: Parameter) -> str:
    value = parameter.default
    return format_number(value) if isinstance(value, float) else str(value)


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, width(), initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _row(strategy: Strategy) -> dict[str, Any]:
    from pybench.analysis.assumptions import caveats, when_holder_dies

    return {
        "strategy": strategy.name,
        "family": strategy.family.value,
        "summary": strategy.summary,
        "commands": list(strategy.commands),
        "commands_per_grant": strategy.commands_per_grant,
        "servers": strategy.servers(()),
        "server_kinds": [kind.value for kind in strategy.server_kinds],
        "replicas": strategy.replicas(()),
        "promise": strategy.promise,
        "exclusion": strategy.exclusion.value,
        "promises": sorted(strategy.promises),
        "acknowledges_places": strategy.acknowledges_places,
        "judged_by": strategy.judged_by.value,
        "holds_under": strategy.holds_under,
        "would_not_survive": list(caveats(strategy, ())),
        "when_holder_dies": when_holder_dies(strategy, ()),
        "when_to_use": strategy.when_to_use,
        "when_not": strategy.when_not,
        "axes": axes_of(strategy),
        "owns_connection": strategy.owns_connection,
        "shares_connections": strategy.shares_connections,
        "subscribes": strategy.subscribes,
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


def axes_of(strategy: Strategy) -> list[str]:
    """The axes that this strategy uses and some others do not."""
    uses = {
        "read_share": strategy.shares,
        "nesting": strategy.nests,
        "keys_per_grant": strategy.takes_many_keys,
        "key_order": strategy.takes_many_keys,
    }
    return [axis for axis, used in uses.items() if used]
