"""What a gate and the process of a trial say to each other, over versions of pybench: one JSON line each way.

The request is `{hand_over, do, spec}`, the reply `{hand_over, ...}` or `{hand_over, error}`. `do` is one of `DOES`. The
request comes over stdin, so that passwords of servers stand on no command line. The process stops its trial when its
stdin ends.

An entry that a version adds to the specification must mean, while it is off (None, False, 0, empty), what older
versions do without it: then a gate still runs between the two.
"""

from __future__ import annotations

from typing import Any

NUMBER = 1
"""Rises when a process of an older number could not serve a request, or would misread it."""
MODULE = "pybench.gate.trial_process"
"""The module that is run; its name must not change, since a newer gate looks for it in older versions."""
DOES = ("hello", "planted", "trial")
"""Say the versions; plant faults in the checker of a trial; run a trial and return its part."""


def request(do: str, spec: Any = None) -> dict[str, Any]:  # noqa: ANN401 - a specification of the core, or None
    """The request to do one of `DOES`."""
    assert do in DOES, "a request asks for what the process knows"
    return {"hand_over": NUMBER, "do": do, "spec": spec}
