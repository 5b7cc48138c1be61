"""pybench: is a distributed lock safe, how fast is it, and what does it cost, on your own servers.

    import pybench

    run = pybench.run("matrix.yaml", quick=True)
    run.summary  # one row a cell, as a pandas frame

Importing it loads nothing heavy and starts no thread: the names below are found at their first use.
"""

from __future__ import annotations

# What `typing` calls so, which takes longer to load than all that the command needs before it waits for Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybench.errors import PybenchError
    from pybench.lock_client import LockClient
    from pybench.matrix import Matrix
    from pybench.records import Run, load
    from pybench.records.comparing import compare
    from pybench.running.job import run

    __version__: str

__all__ = ["LockClient", "Matrix", "PybenchError", "Run", "__version__", "compare", "load", "run"]

_HOME = {
    "LockClient": "pybench.lock_client",
    "Matrix": "pybench.matrix",
    "PybenchError": "pybench.errors",
    "Run": "pybench.records",
    "compare": "pybench.records.comparing",
    "load": "pybench.records",
    "run": "pybench.running.job",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("pybench")
    elif name in _HOME:
        from importlib import import_module

        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'pybench' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
