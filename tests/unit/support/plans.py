"""Plans of matrices made of options, and what is said of wrong options and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybench.errors import InputError
from pybench.matrix import matrix_from_options
from pybench.notation import BadValue
from pybench.planning.plan import Plan, make_plan


def planned(**options: object) -> Plan:
    """The plan of the cells of `options`."""
    return make_plan(matrix_from_options(**options))


def problems(**options: object) -> str:
    """The error message about `options`."""
    with pytest.raises(InputError) as caught:
        matrix_from_options(**options)
    return caught.value.message


def refusal(parse: Callable[[object], object], value: object) -> str:
    """What `parse` says of a wrong value, with its hint."""
    with pytest.raises(BadValue) as caught:
        parse(value)
    return f"{caught.value.message}; {caught.value.hint}"
