"""The process of one trial: takes a request over stdin, and prints its reply; see `hand_over`.

    python -P -m pybench.gate.trial_process

Promises: one trial, then the process ends. It ends early when its stdin does, and then replies with what was counted
until then. A specification with an entry that this version does not know is refused, not measured without the entry,
unless the entry is off.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any, cast

from pybench import _core, core_specs
from pybench.gate.hand_over import DOES, NUMBER
from pybench.records.parts import TrialPart, with_tuples


def main() -> None:
    """Answer the one request."""
    # Whatever else is printed, also by native code, must not stand in the reply.
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    line = sys.stdin.readline()
    print(json.dumps({"hand_over": NUMBER, **_answer(line, sys.stdin)}), file=reply, flush=True)
    # The thread that waits for the end of stdin must not keep the process.
    os._exit(0)


def _answer(line: str, stdin: IO[str]) -> dict[str, Any]:
    try:
        asked = json.loads(line)
        if asked["hand_over"] > NUMBER or asked["do"] not in DOES:
            return _error("version", f"it knows hand-over {NUMBER}, and was asked for {asked['hand_over']}")
        if asked["do"] == "hello":
            from pybench.records.manifest import describe_versions

            return {"versions": describe_versions()}
        spec = with_tuples(asked["spec"])
        if unknown := _unknown(spec):
            return _error("version", f"it does not know {', '.join(unknown)} of a trial")
        trial = _core.Trial(cast("core_specs.TrialSpec", spec))
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        return _error("version", f"it cannot run this trial: {error}")
    if asked["do"] == "planted":
        return {"planted": trial.planted()}
    threading.Thread(target=_stop_at_end, args=(stdin, trial), daemon=True).start()
    try:
        return {"part": base64.b64encode(TrialPart.of(trial.run()).encode()).decode()}
    except _core.ConnectError as error:
        return {**_error("connect", str(error)), "refusal": error.refusal}
    except (OSError, RuntimeError) as error:
        return _error("trial", str(error))


def _stop_at_end(stdin: IO[str], trial: _core.Trial) -> None:
    stdin.read()
    trial.stop()


def _unknown(spec: Mapping[str, Any]) -> list[str]:
    """The entries of `spec` that this version would ignore."""
    known = {
        "redis": core_specs.RedisServerSpec.__annotations__,
        "postgres": core_specs.PostgresServerSpec.__annotations__,
    }
    found = _used(spec) - set(core_specs.TrialSpec.__annotations__)
    for server in spec["servers"]:
        found |= _used(server) - set(known[server["kind"]])
    return sorted(found)


def _used(entries: Mapping[str, Any]) -> set[str]:
    """The entries that are not off, such as False or an empty list."""
    return {name for name, value in entries.items() if value}


def _error(kind: str, text: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "text": text}}


if __name__ == "__main__":
    main()
