from __future__ import annotations

import pytest

from pybench.settings_that_act import acting_settings

ADVISORY = {"strategy": "pg-advisory"}
CELL = {"strategy": "pg-row", "args": "", "hold": "10ms", "think": "0", "retry": "full-jitter"}


def found(product: str, settings: dict[str, object], **fields: object) -> list[str]:
    server = {"label": f"{product} 1", "product": product, "settings": settings}
    return list(acting_settings([server], [{**CELL, **fields}]))


@pytest.mark.parametrize(
    ("settings", "fields", "named"),
    [
        ({"statement_timeout_ms": 5_000}, {}, "statement_timeout 5s"),
        ({"statement_timeout_ms": 5_000}, {"args": "wait=nowait"}, None),
        ({"statement_timeout_ms": 60_000}, {}, None),
        ({"lock_timeout_ms": 100}, {}, None),
        ({"lock_timeout_ms": 100, "pooled": True}, {}, "lock_timeout 100ms"),
        ({"idle_in_transaction_session_timeout_ms": 5}, {}, "idle_in_transaction_session_timeout 5ms"),
        ({"idle_in_transaction_session_timeout_ms": 50}, {}, None),
        ({"idle_in_transaction_session_timeout_ms": 50}, {"hold": "exp(10ms)"}, "idle_in_transaction_session"),
        ({"idle_in_transaction_session_timeout_ms": 5}, {"strategy": "pg-advisory"}, None),
        (
            {"idle_in_transaction_session_timeout_ms": 5},
            {"strategy": "pg-advisory", "args": "scope=transaction"},
            "idle",
        ),
        ({"idle_session_timeout_ms": 500}, {"think": "1s"}, "idle_session_timeout 500ms"),
        ({"idle_session_timeout_ms": 500}, {}, None),
        ({"statement_timeout_ms": 1, "idle_session_timeout_ms": 1}, {"strategy": "mutex"}, None),
    ],
)
def test_a_limit_of_postgres_is_named_where_it_can_act(settings, fields, named):
    sentences = found("postgres", settings, **fields)
    assert len(sentences) == (named is not None)
    assert all(sentence.startswith(f"postgres 1 has {named}") for sentence in sentences)


@pytest.mark.parametrize(
    ("settings", "fields", "named"),
    [
        ({"timeout_s": 1}, {"hold": "2s"}, "timeout 1s"),
        ({"timeout_s": 1}, {}, None),
        ({"timeout_s": 0}, {"hold": "2s"}, None),
        ({"maxmemory": 1_000, "maxmemory_policy": "allkeys-lru"}, {}, "maxmemory-policy allkeys-lru"),
        ({"maxmemory": 0, "maxmemory_policy": "allkeys-lru"}, {}, None),
        ({"maxmemory": 1_000, "maxmemory_policy": "noeviction"}, {}, None),
        ({}, {}, None),
    ],
)
def test_a_setting_of_redis_is_named_where_it_can_act(settings, fields, named):
    sentences = found("redis", settings, strategy="mutex", **fields)
    assert len(sentences) == (named is not None)
    assert all(sentence.startswith(f"redis 1 has {named}") for sentence in sentences)
