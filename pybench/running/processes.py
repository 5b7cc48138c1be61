"""A trial whose clients are spread over worker processes, with the methods of `_core.Trial` that a run uses.

    run ──pipe──> worker 0, worker 1, ...   connect, say that they are ready, begin at one time
        <─parts──                           what each has counted, when its window has ended
        recordings, one for each thread     every event, stored before its effect leaves
        ──> the checker, over all events    one verdict

Promises: the processes end with the trial, with an interrupt, and with this process. Specifications, with the
passwords in them, go over pipes. Recordings have no name in any folder, unless the run keeps its histories.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING, TypeVar, cast

from pybench import _core
from pybench.errors import PybenchError, RecordError, ServerError
from pybench.records.fault_rows import NEVER
from pybench.running.process_parts import judged_together
from pybench.running.watch import Progress
from pybench.running.worker_process import WorkerProcess
from pybench.servers import harm

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec
    from pybench.records.parts import TrialPart

READY_S = 60.0
"""For the start of the processes and all of their connections; a connection has 15 s."""
LEAD_NS = 20_000_000
"""From telling all processes when they begin until they begin."""
SPARE_S = 60.0
"""Beyond warm-up, window and drain of a trial."""
PARTING_S = 20.0
"""After an interrupt: what clients may take to finish."""
LOOK_S = 0.05

T = TypeVar("T")


class ProcessTrial:
    """One trial in worker processes."""

    def __init__(self, spec: TrialSpec, processes: int, secrets: Collection[str] = ()) -> None:
        """`spec` is of the whole trial, with the cores and the files of all threads; without files it needs none.

        No error contains any of the texts `secrets`.
        """
        self._given, self._processes, self._secrets = spec, processes, secrets
        self._whole = cast("TrialSpec", {name: value for name, value in spec.items() if name != "recording"})
        self._whole["cores"] = []
        self._workers: list[WorkerProcess] = []
        self._told = threading.Event()
        self._began_ns: int | None = None
        self._began_connecting_ns = time.monotonic_ns()
        self._stopped = False
        self.result: TrialPart | None = None
        _core.Trial(self._whole)  # Refuses what a worker would refuse.

    def run(self) -> TrialPart:
        """Run it to its end. An interrupt ends it early, keeps what was counted in `result`, and is raised again.

        Raises ConnectError as `_core.Trial.run` does, RecordError where the events cannot be recorded (OSError in the
        files that were given), and PybenchError where a process fails or ends by itself.
        """
        try:
            return self._run()
        except OSError as error:
            if self._given["recording"]["files"]:
                raise
            raise RecordError(
                f"the events of the trial cannot be recorded in {gettempdir()}: "
                f"{os.strerror(error.errno) if error.errno else error}",
                hint="free some space there, or set TMPDIR; the trials saved so far are intact",
            ) from error

    def _run(self) -> TrialPart:
        with ExitStack() as stack:
            files = self._start(stack)
            try:
                self._wait(lambda: all(one.is_ready or one.part for one in self._workers), READY_S, "be ready")
                self._began_ns = time.monotonic_ns() + LEAD_NS
                for worker in self._workers:
                    worker.begin_at(self._began_ns)
                self._wait(self._all_over, self._length_s() + SPARE_S, "end")
                self.result = self._judged(files)
            except KeyboardInterrupt:
                self.stop()
                if self._began_ns is not None:
                    self._wait(self._all_over, PARTING_S, "end")
                    self.result = self._judged(files)
                raise
        return self.result

    def stop(self) -> None:
        """End the trial early, from any thread."""
        self._stopped = True
        for worker in self._workers:
            worker.stop()

    def worker(self, index: int) -> WorkerProcess:
        """The process number `index`, for a fault that kills or stops it."""
        return self._workers[index]

    def cpu_ns(self) -> int:
        """The CPU time of all processes so far, by what each told last."""
        return sum(int(worker.progress.get("cpu_ns", 0)) for worker in self._workers)

    def progress(self) -> Progress:
        """The progress of all processes together, from any thread."""
        latest = [worker.progress for worker in self._workers]

        def total(name: str) -> int:
            return int(sum(one.get(name, 0) for one in latest))

        phase, since_ns = self._phase()
        return Progress(
            phase=phase,
            elapsed_ns=time.monotonic_ns() - since_ns,
            grants=total("grants"),
            grants_per_s=float(total("grants_per_s")),
            p99_ns=max((int(one.get("p99_ns", 0)) for one in latest), default=0),
            errors=total("errors"),
            reconnects=total("reconnects"),
        )

    def _phase(self) -> tuple[str, int]:
        """The phase of the trial, and when it began."""
        began_ns, now_ns = self._began_ns, time.monotonic_ns()
        if began_ns is None:
            return "connecting", self._began_connecting_ns
        opens_ns = began_ns + self._given["warmup_ns"]
        closes_ns = opens_ns + (self._given["duration_ns"] or 0)
        if now_ns < opens_ns:
            return "warmup", began_ns
        if now_ns < closes_ns and not self._stopped:
            return "measuring", opens_ns
        return ("done" if self._all_over() else "draining"), closes_ns

    def _length_s(self) -> float:
        given = self._given
        return (given["warmup_ns"] + (given["duration_ns"] or 0) + given["drain_ns"]) / 1e9

    def _start(self, stack: ExitStack) -> list[str]:
        """Start all processes. Returns the path of the recording of each thread."""
        given, threads = self._given, self._given["threads"]
        count = threads * self._processes
        recording = given["recording"]
        named, unnamed = recording["files"], []
        if not named:
            # Without a name they need no removal, whatever happens to this process.
            unnamed = [stack.enter_context(_unnamed()).fileno() for _ in range(count)]
        files = named or [f"/proc/self/fd/{number}" for number in unnamed]
        for index in range(self._processes):
            own = slice(index * threads, (index + 1) * threads)
            spec = cast(
                "TrialSpec",
                {
                    **given,
                    "process": {"index": index, "of": self._processes},
                    "cores": given["cores"][own],
                    "recording": {**recording, "files": files[own]},
                },
            )
            try:
                worker = WorkerProcess(index, spec, unnamed[own], self._secrets, self._told.set)
            except OSError as error:
                raise PybenchError(
                    f"worker process {index} of the trial cannot be started: {error.strerror}",
                    hint="run pybench doctor",
                ) from error
            self._workers.append(stack.enter_context(worker))
        return files

    def _all_over(self) -> bool:
        return all(worker.is_over for worker in self._workers)

    def _wait(self, until: Callable[[], bool], limit_s: float, for_what: str) -> None:
        """Wait until that is so. Raises the error of a process, and PybenchError where it takes too long."""
        deadline = time.monotonic() + limit_s
        while True:
            for worker in self._workers:
                worker.check()
            if until():
                return
            if time.monotonic() >= deadline:
                raise PybenchError(
                    f"the worker processes of the trial did not {for_what} within {limit_s:.0f} s",
                    hint="pybench doctor tells whether this machine is overloaded",
                )
            self._told.wait(LOOK_S)
            self._told.clear()

    def _judged(self, files: Sequence[str]) -> TrialPart:
        began_ns = self._began_ns
        assert began_ns is not None, "it has begun"
        stopped = self._stopped
        return _interruptible(lambda: judged_together(self._whole, self._workers, files, began_ns, stopped=stopped))


class KilledProcess(harm.Harm):
    """A worker process is killed, with all that its clients hold."""

    def __init__(self, trial: ProcessTrial, index: int) -> None:
        self._trial, self._index = trial, index

    def begin(self) -> None:
        """See `Harm`."""
        _require(self._trial.worker(self._index).kill())


class PausedProcess(KilledProcess):
    """A worker process is stopped, and goes on later as if nothing had happened."""

    def begin(self) -> None:
        """See `Harm`."""
        _require(self._trial.worker(self._index).pause())

    def end(self) -> None:
        """See `Harm`."""
        self._trial.worker(self._index).resume()


def _require(carried_out: bool) -> None:  # noqa: FBT001 - what a worker answered
    if not carried_out:
        raise ServerError(NEVER)


def _unnamed() -> IO[bytes]:
    return cast("IO[bytes]", TemporaryFile(buffering=0))


def _interruptible(work: Callable[[], T]) -> T:
    """Do `work`, which may take seconds, so that a signal can end the wait."""
    done: list[T] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    for error in failed:
        raise error
    return done[0]
