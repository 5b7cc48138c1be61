"""Conditions in words, whether a record keeps them as numbers or as text."""

from __future__ import annotations

import pytest

from pybench.matrix.conditions import say_conditions


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([("concurrency", 16), ("keys", 1_000)], "16 clients, 1,000 keys"),
        ([("keys_per_grant", 1), ("key_order", "random"), ("read_share", 0.0)], "1 key a grant, no readers"),
        ([("keys_per_grant", 2), ("key_order", "sorted")], "2 keys a grant, keys in sorted order"),
        ([("read_share", 0.9), ("hold", "2ms")], "90 % readers, hold 2ms"),
        ([("rate_per_s", None), ("arrival_process", None), ("ttl_ms", 50)], "a closed loop, ttl 50ms"),
        ([("rate_per_s", 5e3), ("arrival_process", "poisson")], "rate 5000/s, arrivals poisson"),
        ([("key_order", "random"), ("rate_per_s", None)], "keys in random order, a closed loop"),
    ],
)
def test_conditions_in_words(conditions, words):
    assert say_conditions(conditions) == words
