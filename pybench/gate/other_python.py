"""Trials in a process of another environment: started for one trial, and gone when it has ended.

Base and head both run their trials so when the base has an environment of its own: a process has a layout of memory of
its own, which makes all its trials a little faster or slower, and so must be drawn anew for each trial of both sides.

Promises: the process ends with the trial, with an interrupt, and with this process. Passwords are on no command line,
and in no error.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pybench.errors import InputError, PybenchError
from pybench.gate.hand_over import MODULE, NUMBER, request
from pybench.masking import without
from pybench.records.parts import TrialPart
from pybench.running.child import Child, connect_error, inherited_variables, our_variables
from pybench.running.watch import Progress

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

HELLO_S = 120.0
"""The first start reads the whole of an environment from the disk."""
PLANTED_S = 60.0
SPARE_S = 60.0
"""Beyond warm-up, window and drain of a trial: start, connections, and the reply."""
PARTING_S = 20.0
"""After an interrupt: what clients may take to finish."""
_MISSING = re.compile(r"No module named '?(pybench[\w.]*)'?")
UPGRADE = "install a pybench with `pybench gate` into it, or give another base"


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with a pybench of its own."""

    python: Path
    secrets: Collection[str] = ()
    """Texts that no error may contain."""
    is_ours: bool = False
    """Whether it runs this very pybench, as the head's does."""

    @classmethod
    def at(cls, path: Path) -> Self:
        """The environment `path`: the folder of a virtual environment, or a Python in it. Raises InputError."""
        for python in (path / "bin" / "python", path / "bin" / "python3"):
            if python.is_file() and os.access(python, os.X_OK):
                return cls(python.absolute())
        if path.is_file() and os.access(path, os.X_OK):
            return cls(path.absolute())
        raise InputError(
            f"--base-python: there is no Python at {path}",
            hint="name the folder of a virtual environment, or the python in it",
        )

    @classmethod
    def of_this(cls, secrets: Collection[str]) -> Self:
        """The environment of this process."""
        return cls(Path(sys.executable), secrets, is_ours=True)

    def hello(self) -> dict[str, Any]:
        """The versions there, as a manifest has them. Raises InputError for a pybench that cannot run trials."""
        found = self.ask("hello", None, HELLO_S).get("versions")
        if not isinstance(found, dict):
            raise self.refused("it does not say its versions")
        return found

    def start_s(self) -> float:
        """The seconds that a process there takes without a trial: from its start until it has ended."""
        began = time.monotonic()
        with Process(self) as process:
            # Without a request it has nothing to do.
            process.stop()
            process.wait(HELLO_S)
        return time.monotonic() - began

    def ask(self, do: str, spec: TrialSpec | None, limit_s: float) -> dict[str, Any]:
        """The reply of a new process. Raises InputError, PybenchError."""
        with Process(self) as process:
            process.ask(do, spec)
            return process.reply(limit_s)

    def refused(self, why: str) -> InputError:
        """The error for a pybench there that cannot take part."""
        return InputError(f"the pybench of {self.python} cannot take part: {without(why, self.secrets)}", hint=UPGRADE)

    def variables(self) -> dict[str, str]:
        """The environment variables of a process: an inherited path would lead to this pybench instead of its own."""
        return our_variables() if self.is_ours else inherited_variables()


class Process(Child):
    """One process of an environment, which answers one request."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._lines: list[str] = []
        try:
            super().__init__(environment.python, MODULE, variables=environment.variables(), hear=self._lines.append)
        except OSError as error:
            raise InputError(
                f"{environment.python} cannot be started: {error.strerror}", hint="name another --base-python"
            ) from error

    def ask(self, do: str, spec: TrialSpec | None) -> None:
        """Send the request. A process that has ended already says why in `reply`."""
        self.send(json.dumps(request(do, spec)))

    def reply(self, limit_s: float) -> dict[str, Any]:
        """Wait for the reply. Raises InputError for a pybench that cannot take part, PybenchError without a reply."""
        self.wait(limit_s)
        for line in reversed(self._lines):
            if line.startswith('{"hand_over"'):
                return self._accepted(json.loads(line))
        raise self._without_reply()

    def wait(self, limit_s: float) -> None:
        """Wait until all that the process says is read. Raises PybenchError where that takes longer."""
        if not self.heard_all(limit_s):
            raise PybenchError(
                f"a process of {self.environment.python} did not reply within {limit_s:.0f} s",
                hint="pybench doctor tells whether this machine is overloaded",
            )

    def _accepted(self, reply: dict[str, Any]) -> dict[str, Any]:
        error = reply.get("error")
        if reply["hand_over"] != NUMBER:
            raise self.environment.refused(f"it knows hand-over {reply['hand_over']}, and this one {NUMBER}")
        if error is not None and error["kind"] == "version":
            raise self.environment.refused(error["text"])
        return reply

    def _without_reply(self) -> PybenchError:
        code, last = self.exit_code(), self.last_words()
        missing = _MISSING.search(last)
        if missing and missing[1] == "pybench":
            return InputError(f"there is no pybench in {self.environment.python}", hint=UPGRADE)
        if missing:
            return self.environment.refused("it is too old, since it has no `pybench gate`")
        return PybenchError(
            f"a process of {self.environment.python} ended with code {code} and without a reply; it said: "
            f"{without(last, self.environment.secrets)}",
            hint=f"try it: {self.environment.python} -P -c 'import pybench._core'",
        )


class OtherTrial:
    """One trial that runs in a process of `environment`, with the methods of `_core.Trial` that a run uses."""

    def __init__(self, environment: Environment, spec: TrialSpec) -> None:
        self.environment, self.spec = environment, spec
        self.result: TrialPart | None = None
        self._began: float | None = None

    def run(self) -> TrialPart:
        """Run it to its end. An interrupt ends it early, keeps its part in `result`, and is raised again.

        Raises ConnectError as `_core.Trial.run` does, PybenchError where the process fails.
        """
        nanos = self.spec["warmup_ns"] + (self.spec["duration_ns"] or 0) + self.spec["drain_ns"]
        with Process(self.environment) as process:
            process.ask("trial", self.spec)
            self._began = time.monotonic()
            try:
                reply = process.reply(nanos / 1e9 + SPARE_S)
            except KeyboardInterrupt:
                process.stop()
                self.result = self._part(process.reply(PARTING_S))
                raise
        self.result = self._part(reply)
        return self.result

    def planted(self) -> list[tuple[str, bool]]:
        """As `_core.Trial.planted`: with the checker of the other environment."""
        found = self.environment.ask("planted", self.spec, PLANTED_S)["planted"]
        return [(str(kind), bool(caught)) for kind, caught in found]

    def progress(self) -> Progress:
        """Only how long ago it was started."""
        since = 0.0 if self._began is None else time.monotonic() - self._began
        return Progress(elapsed_ns=round(since * 1e9))

    def _part(self, reply: Mapping[str, Any]) -> TrialPart:
        error = reply.get("error")
        if error is None:
            return TrialPart.decode(base64.b64decode(reply["part"]))
        if error["kind"] == "connect":
            raise connect_error(error["text"], reply["refusal"])
        text = without(error["text"], self.environment.secrets)
        raise PybenchError(
            f"a trial in {self.environment.python} failed: {text}",
            hint="run the gate again; pybench doctor looks at it",
        )
