"""Carry out one experiment on a stage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pybench.errors import InputError, ServerError
from pybench.lab.findings import Findings
from pybench.lab.locks import chosen, taking_part
from pybench.notation import BadValue

if TYPE_CHECKING:
    from pybench.lab.experiment import Experiment, Value
    from pybench.lab.findings import Case
    from pybench.lab.stage import Stage


class ToolMissing(ServerError):
    """A program or a package that an experiment needs is not installed."""


def require_modules(experiment: Experiment) -> None:
    """Raise ToolMissing with the name of what is missing."""
    modules = [name for name in experiment.modules if find_spec(name) is None]
    if modules:
        hint = f"pip install 'pybench[{experiment.extra}]'" if experiment.extra else f"pip install {' '.join(modules)}"
        raise ToolMissing(f"pybench lab {experiment.name} needs {', '.join(modules)}", hint=hint)


def values_of(experiment: Experiment, given: Mapping[str, str | bool]) -> dict[str, Value]:
    """The value of every parameter, given or by default. Raises InputError that names the option."""
    values: dict[str, Value] = {}
    for parameter in experiment.parameters:
        raw = given.get(parameter.name, parameter.default)
        if parameter.allowed is None:
            values[parameter.name] = bool(raw)
            continue
        try:
            value = parameter.allowed.parse(raw)
        except BadValue as problem:
            raise InputError(f"--{parameter.name}: {problem.message}", hint=problem.hint) from None
        assert isinstance(value, int | str), "a parameter is a number or a word"
        values[parameter.name] = value
    return values


def carry_out(
    experiment: Experiment,
    stage: Stage,
    given: Mapping[str, str | bool] | None = None,
    *,
    strategies: Sequence[str] = (),
    every: bool = False,
) -> Findings:
    """Run the experiment; `given` are texts of its parameters, `strategies` the locks that a user named.

    Raises InputError, ToolMissing, ServerError, and OutOfTime.
    """
    given = given or {}
    require_modules(experiment)
    values = values_of(experiment, given)
    experiment.require(values)
    locks = chosen(experiment, strategies, every=every)
    began = time.monotonic()
    cases: list[Case] = []
    with stage.set_for(experiment.name, values):
        part, left_out = taking_part(experiment, locks, stage, named=bool(strategies))
        if locks and not part:
            raise InputError(f"no lock has a part in {experiment.name}: {left_out[0].reason}", hint="name another lock")
        stage.locks = part
        for case in experiment.run(stage):
            cases.append(case)
            stage.require_time()
            stage.allow_time()
        servers = stage.server_labels
    texts = {one.name: given.get(one.name, one.default) for one in experiment.parameters}
    return Findings(
        name=experiment.name,
        summary=experiment.summary,
        steps=experiment.told(texts, [case.label for case in cases]),
        learn=experiment.learn,
        cases=tuple(cases),
        left_out=tuple(left_out),
        seconds=time.monotonic() - began,
        settings={
            name: ("yes" if value else "no") if isinstance(value, bool) else value for name, value in texts.items()
        },
        servers=servers,
    )
