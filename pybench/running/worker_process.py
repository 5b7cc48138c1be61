"""One worker process of a trial, as its parent sees it."""

from __future__ import annotations

import base64
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pybench.errors import PybenchError
from pybench.masking import without
from pybench.records.parts import Placed, TrialPart, merge
from pybench.running.child import Child, connect_error, our_variables

if TYPE_CHECKING:
    from pybench.core_results import Recorded
    from pybench.core_specs import TrialSpec

MODULE = "pybench.running.trial_worker"
HAND_OVER_S = 0.3
"""How long a process that is about to be killed or stopped may take to hand over what it has counted."""


class WorkerProcess:
    """The process number `index` of a trial, with its share of the clients. A context manager, which ends it.

    A thread reads what it says, and calls `told` after each line.
    """

    def __init__(
        self, index: int, spec: TrialSpec, files: Collection[int], secrets: Collection[str], told: Callable[[], None]
    ) -> None:
        """Start it with its own `spec`; it inherits the descriptors `files`. Raises OSError."""
        self.index = index
        self.spec = spec
        self.progress: dict[str, Any] = {}
        """The latest that it told of its progress."""
        self.is_ready = False
        self.is_over = False
        """Whether it says nothing more."""
        self.part: TrialPart | None = None
        """All that it counted, once its share of the trial has ended."""
        self.drained: TrialPart | None = None
        """What it had counted when it was about to be killed or stopped."""
        self.died_ns: int | None = None
        """When it was about to be killed on purpose."""
        self.was_stopped = False
        self._is_stopped = self._is_ending = False
        self._signalling = threading.Lock()
        self._error: dict[str, Any] | None = None
        self._secrets, self._told = secrets, told
        self._handed_over = threading.Event()
        self._child = Child(
            sys.executable,
            MODULE,
            variables=our_variables(),
            hear=self._hear,
            ended=self._ended,
            files=[*files],
        )
        self._child.send(json.dumps(spec))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.end()

    @property
    def is_dead(self) -> bool:
        """Whether it was killed on purpose before its share of the trial had ended."""
        return self.died_ns is not None and self.part is None

    def begin_at(self, at_ns: int) -> None:
        """Let its clients begin then."""
        self._child.send(f"begin {at_ns}")

    def stop(self) -> None:
        """End its share of the trial early."""
        with self._signalling:
            self._is_ending = True
        self.resume()
        self._child.stop()

    def kill(self) -> bool:
        """Kill it, with all that its clients hold (SIGKILL); false where its share is about to end by itself."""
        if not self._is_stopped:
            self._hand_over()
        with self._signalling:
            if self._is_ending or self.is_over:
                return False
            self.died_ns = time.monotonic_ns()
            self._child.signal(signal.SIGKILL)
        return True

    def pause(self) -> bool:
        """Stop it, in the middle of whatever it does (SIGSTOP); false as in `kill`."""
        self._hand_over()
        with self._signalling:
            if self._is_ending or self.is_over:
                return False
            self.was_stopped = self._is_stopped = True
            self._child.signal(signal.SIGSTOP)
        return True

    def resume(self) -> None:
        """Let a stopped process go on (SIGCONT)."""
        with self._signalling:
            if self._is_stopped:
                self._child.signal(signal.SIGCONT)
                self._is_stopped = False

    def check(self) -> None:
        """Raise the error of its trial, or a PybenchError where it has ended by itself."""
        error = self._error
        if error is None and self.is_over and self.part is None and self.died_ns is None:
            raise PybenchError(
                f"worker process {self.index} of the trial {_ended_how(self._child.exit_code())}; its last words: "
                f"{without(self._child.last_words(), self._secrets)}",
                hint="pybench doctor looks at this machine; --resume goes on from the trials that are saved",
            )
        if error is None:
            return
        text = without(error["error"], self._secrets)
        match error["kind"]:
            case "connect":
                raise connect_error(text, error["refusal"])
            case "os":
                raise OSError(error["errno"], text)
        raise PybenchError(f"worker process {self.index} of the trial failed: {text}", hint="run pybench doctor")

    @property
    def recorded(self) -> Recorded | None:
        """What its share of the trial recorded, once it has ended."""
        return None if self.part is None else self.part.recorded

    def _hand_over(self) -> None:
        self._handed_over.clear()
        if self.is_over:
            return
        self._child.send("drain")
        self._handed_over.wait(HAND_OVER_S)

    def _hear(self, line: str) -> None:
        said = json.loads(line)
        match said:
            case {"ready": _}:
                self.is_ready = True
            case {"progress": now}:
                self.progress = now
                return
            case {"drained": data}:
                more = TrialPart.decode(base64.b64decode(data))
                known = [] if self.drained is None else [Placed(self.drained, "")]
                self.drained = merge([*known, Placed(more, "")])
                self._handed_over.set()
            case {"part": data, "recorded": recorded}:
                recorded["window"] = tuple(recorded["window"])
                self.part = replace(TrialPart.decode(base64.b64decode(data)), recorded=recorded)
            case {"error": _}:
                self._error = said
        self._told()

    def _ended(self) -> None:
        self.is_over = True
        self._handed_over.set()
        self._told()


def _ended_how(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    return f"was ended by {signal.Signals(-code).name}"
