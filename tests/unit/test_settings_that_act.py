from __future__ import annotations

import pytest

from pybench.analysis.acting_settings import acting_settings

ADVISORY = {"strategy": "pg-advisory"}
TRY = {"strategy": "pg-advisory", "args": "wait=try"}
ONE_EACH = {"connections": "per-client", "concurrency": 4}
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
        # Within its transaction a session is not idle in this sense.
        ({"idle_session_timeout_ms": 500}, {"hold": "1s"}, None),
        (
            {"idle_session_timeout_ms": 500},
            {**ADVISORY, "hold": "1s"},
            "idle_session_timeout 500ms, and some holds are",
        ),
        (
            {"idle_session_timeout_ms": 300},
            {**TRY, "retry": "fixed(base=2s, max_wait=20s)"},
            "idle_session_timeout 300",
        ),
        ({"idle_session_timeout_ms": 300}, {**ADVISORY, "retry": "fixed(base=2s, max_wait=20s)"}, None),
        ({"idle_session_timeout_ms": 300}, {**TRY, "retry": "fixed(base=2s, max_attempts=1)"}, None),
        ({"idle_session_timeout_ms": 300}, {"strategy": "layered", "think": "1s"}, "idle_session_timeout 300ms"),
        (
            {"transaction_timeout_ms": 300},
            {"hold": "500ms", "retry": "none"},
            "transaction_timeout 300ms, and some hol",
        ),
        ({"transaction_timeout_ms": 300}, {}, "transaction_timeout 300ms"),
        (
            {"transaction_timeout_ms": 300},
            {"strategy": "pg-serializable", "hold": "500ms"},
            "transaction_timeout 300ms",
        ),
        ({"transaction_timeout_ms": 300}, {**TRY, "hold": "500ms"}, None),
        ({"transaction_timeout_ms": 60_000}, {}, None),
        ({"default_transaction_isolation": "serializable"}, {}, "default_transaction_isolation serializable"),
        (
            {"default_transaction_isolation": "repeatable read"},
            {"strategy": "pg-lease"},
            "default_transaction_isolation",
        ),
        ({"default_transaction_isolation": "read committed"}, {}, None),
        ({"default_transaction_isolation": "serializable"}, {"strategy": "pg-serializable"}, None),
        ({"default_transaction_isolation": "serializable"}, ADVISORY, None),
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
        ({"timeout_s": 1}, {"hold": "2s", "strategy": "pg-row"}, None),
        ({"timeout_s": 1}, {"think": "exp(2s)", "hold": "2s"}, "timeout 1s, and some holds and think times are longer"),
        ({"timeout_s": 1}, {"retry": "fixed(base=4s, max_wait=20s)"}, "timeout 1s, and some back-offs are longer"),
        ({"timeout_s": 1}, {"retry": "exponential(cap=5s)"}, "timeout 1s, and some back-offs are longer"),
        ({"timeout_s": 1}, {"retry": "exponential(cap=5s, max_attempts=4)"}, None),
        ({"timeout_s": 5}, {"retry": "fixed(base=20s, max_wait=4s)"}, None),
        (
            {"timeout_s": 1},
            {"rate_per_s": 0.4, "arrival_process": "constant"},
            "timeout 1s, and some gaps between arrivals are",
        ),
        (
            {"timeout_s": 1},
            {"rate_per_s": 5, "arrival_process": "poisson"},
            "timeout 1s, and some gaps between arrivals are",
        ),
        ({"timeout_s": 1}, {"rate_per_s": 5, "arrival_process": "constant"}, None),
        ({"timeout_s": 1}, {"rate_per_s": 500, "arrival_process": "poisson"}, None),
        # Connections of their own take turns.
        ({"timeout_s": 1}, {"rate_per_s": 3, "arrival_process": "constant", **ONE_EACH}, "timeout 1s, and some gaps"),
        ({"timeout_s": 1}, {"rate_per_s": 9, "arrival_process": "constant", **ONE_EACH}, None),
        ({"maxmemory": 1_000, "maxmemory_policy": "allkeys-lru"}, {}, "maxmemory-policy allkeys-lru"),
        ({"maxmemory": 0, "maxmemory_policy": "allkeys-lru"}, {}, None),
        ({"maxmemory": 1_000, "maxmemory_policy": "noeviction"}, {}, None),
        ({}, {}, None),
    ],
)
def test_a_setting_of_redis_is_named_where_it_can_act(settings, fields, named):
    sentences = found("redis", settings, **{"strategy": "mutex", **fields})
    assert len(sentences) == (named is not None)
    assert all(sentence.startswith(f"redis 1 has {named}") for sentence in sentences)
