"""Parses a strategy such as `redlock(nodes=5)` into name and arguments, and formats both as canonical text."""

from __future__ import annotations

from collections.abc import Mapping

from pybench.notation import BadValue, format_number, parse_call, shown, suggestion
from pybench.strategies.catalogue import CATALOGUE
from pybench.strategies.entry import Arguments, Scalar, Strategy


def parse_strategy(value: object, catalogue: Mapping[str, Strategy] = CATALOGUE) -> tuple[str, Arguments]:
    """Read `mutex`, `redlock(nodes=5)` or `{redlock: {nodes: 5}}`: the name, and the arguments that are not defaults.

    Raises BadValue for an unknown name or argument (the hint names the nearest), and for an argument out of range.
    """
    name, given = _taken_apart(value)
    if name not in catalogue:
        raise BadValue(f"there is no strategy {shown(name)}", hint=suggestion(name, catalogue))
    parameters = {parameter.name: parameter for parameter in catalogue[name].parameters}
    arguments: list[tuple[str, Scalar]] = []
    for key, raw in given.items():
        if key not in parameters:
            hint = suggestion(key, parameters) if parameters else f"{name} takes no arguments"
            raise BadValue(f"the strategy {name} has no argument {shown(key)}", hint=hint)
        try:
            argument = parameters[key].allowed.parse(raw)
        except BadValue as problem:
            raise BadValue(f"{name}'s {key}: {problem.message}", hint=problem.hint) from None
        if argument != parameters[key].default:
            arguments.append((key, argument))
    return name, tuple(sorted(arguments))


def arguments_text(arguments: Arguments) -> str:
    """The canonical text, `fanout=sequential, nodes=5`; empty for defaults."""
    return ", ".join(f"{name}={_scalar_text(value)}" for name, value in arguments)


def strategy_text(name: str, arguments: Arguments) -> str:
    """The canonical text of a strategy, `mutex` or `redlock(nodes=5)`."""
    return f"{name}({arguments_text(arguments)})" if arguments else name


def _taken_apart(value: object) -> tuple[str, dict[str, object]]:
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise BadValue(
                "a strategy given as a mapping has exactly one key, its name", hint="write {mutex: {}} or mutex"
            )
        ((name, given),) = value.items()
        if given is not None and not isinstance(given, Mapping):
            raise BadValue(
                f"the arguments of {name} are not a mapping: {shown(given)}", hint="write a mapping of names to values"
            )
        return str(name), {str(key): raw for key, raw in (given or {}).items()}
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not a strategy", hint="write a name such as mutex")
    call = parse_call(value)
    if call.positional:
        raise BadValue(
            f"the argument {shown(call.positional[0])} of {shown(value)} has no name", hint="write name=value"
        )
    return call.name, dict(call.named)


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_number(value) if isinstance(value, float) else str(value)
