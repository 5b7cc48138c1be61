"""The matrix of `pybench demo`: the three locks of one server, alone and in a crowd, one hot key and many cold ones."""

from __future__ import annotations

from typing import Any

MATRIX: dict[str, Any] = {
    "name": "demo",
    "trials": 4,
    "duration": "550ms",
    "warmup": "50ms",
    "axes": {"strategy": ["none", "naive", "mutex"], "concurrency": [1, 16, 64], "keys": [1, 1000]},
    "fixed": {"hold": "200us"},
}
"""Just under a minute, in trials that are long enough and enough to tell locks apart: 18 cells, of which those with one
client or many keys show a lock's cost, the others contention."""
