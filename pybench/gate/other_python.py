"""Trials in a process of another environment: started for one trial, and gone when it has ended.

Base and head both run their trials so when the base has an environment of its own: a process has a layout of memory of
its own, which makes all its trials a little faster or slower, and so must be drawn anew for each trial of both sides.

Promises: the process ends with the trial, with an interrupt, and with this process. Passwords are on no command line,
and in no error.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Self

from pybench import _core
from pybench.errors import InputError, PybenchError
from pybench.gate.hand_over import MODULE, NUMBER, request
from pybench.masking import without
from pybench.records.parts import TrialPart
from pybench.running.watch import Progress

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

OUR_ROOT = Path(__file__).parents[2]
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
            process.send(do, spec)
            return process.reply(limit_s)

    def refused(self, why: str) -> InputError:
        """The error for a pybench there that cannot take part."""
        return InputError(f"the pybench of {self.python} cannot take part: {without(why, self.secrets)}", hint=UPGRADE)

    def variables(self) -> dict[str, str]:
        """The environment variables of a process: an inherited path would lead to this pybench instead of its own."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        inherited = os.environ.get("PYTHONPATH")
        ours = {"PYTHONPATH": os.pathsep.join(filter(None, [str(OUR_ROOT), inherited]))}
        return kept | ours if self.is_ours else kept


class Process:
    """One process of an environment. A context manager; leaving it ends the process."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._errors = TemporaryFile()  # noqa: SIM115 - closed with the process
        self._lines: list[str] = []
        # -P: the working folder may hold another pybench. A session of its own: Ctrl-C is for the gate alone.
        command = [str(environment.python), "-P", "-m", MODULE]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment.variables(),
                start_new_session=True,
                encoding="utf-8",
            )
        except OSError as error:
            self._errors.close()
            raise InputError(
                f"{environment.python} cannot be started: {error.strerror}", hint="name another --base-python"
            ) from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def send(self, do: str, spec: TrialSpec | None) -> None:
        """Send the request. A process that has ended already says why in `reply`."""
        assert self._process.stdin is not None, "the process has a pipe"
        try:
            self._process.stdin.write(json.dumps(request(do, spec)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def stop(self) -> None:
        """End the trial early: the end of its stdin says so."""
        assert self._process.stdin is not None, "the process has a pipe"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def reply(self, limit_s: float) -> dict[str, Any]:
        """Wait for the reply. Raises InputError for a pybench that cannot take part, PybenchError without a reply."""
        self.wait(limit_s)
        for line in reversed(self._lines):
            if line.startswith('{"hand_over"'):
                return self._accepted(json.loads(line))
        raise self._without_reply()

    def wait(self, limit_s: float) -> None:
        """Wait until all that the process says is read. Raises PybenchError where that takes longer."""
        self._reader.join(limit_s)
        if self._reader.is_alive():
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
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        last = said.splitlines()[-1] if said else "nothing"
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

    def _read(self) -> None:
        assert self._process.stdout is not None, "the process has a pipe"
        self._lines += list(self._process.stdout)


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
            process.send("trial", self.spec)
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
            raised = _core.ConnectError(error["text"])
            raised.refusal = None if reply["refusal"] is None else tuple(reply["refusal"])
            raise raised
        text = without(error["text"], self.environment.secrets)
        raise PybenchError(
            f"a trial in {self.environment.python} failed: {text}",
            hint="run the gate again; pybench doctor looks at it",
        )
