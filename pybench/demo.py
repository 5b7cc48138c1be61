"""The matrix of `pybench demo`: the three locks of one server, alone and in a crowd, one hot key and many cold ones."""

from __future__ import annotations

from typing import Any

MATRIX: dict[str, Any] = {
    "name": "demo",
    "trials": 3,
    "duration": "500ms",
    "warmup": "100ms",
    "axes": {"strategy": ["none", "naive", "mutex"], "concurrency": [1, 16, 64], "keys": [1, 1000]},
    "fixed": {"hold": "200us"},
}
"""Under a minute: 18 cells, of which those with one client or many keys show a lock's cost, the others contention."""
