from __future__ import annotations

import pytest

from pybench.cli.options import split
from pybench.errors import InputError


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,16,64"], ["1", "16", "64"]),
        (["1", "16"], ["1", "16"]),
        (["redlock(nodes=5, fanout=sequential),mutex"], ["redlock(nodes=5, fanout=sequential)", "mutex"]),
        (["lognormal(2ms, 0.8), 0"], ["lognormal(2ms, 0.8)", "0"]),
        (["{kind: fixed, base: 1ms},none"], ["{kind: fixed, base: 1ms}", "none"]),
    ],
)
def test_commas_separate_values_but_not_inside_of_brackets(texts: list[str], values: list[str]):
    assert split(texts) == values


@pytest.mark.parametrize("text", ["redlock(nodes=5", "redlock)", "1,,2", "1,"])
def test_what_cannot_be_cut_is_refused_with_a_hint(text: str):
    with pytest.raises(InputError) as caught:
        split([text])
    assert caught.value.hint
