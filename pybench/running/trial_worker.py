"""The program of one worker process of a trial: it runs its share of the clients, and says what it has counted.

    python -P -m pybench.running.trial_worker

It reads lines from its standard input: the specification, then `begin NS` and `drain`. The end of the input stops the
trial. It prints a line of JSON for each step: `ready`, `progress`, `drained`, and at last `part` or `error`.

Promises: it ends with its parent, whatever happens to that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process as soon as `parent`, the process that started it, has ended."""
    # At once, and also while this process is stopped: then it would not see the end of its input.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # It died before the call above, which then had nobody to watch.
        os._exit(1)


def main() -> None:
    """Run the one trial."""
    end_with_parent(os.getppid())
    # After the line above, because loading takes a while.
    from pybench.running.worker_trial import WorkerTrial

    # Whatever else is printed, also by native code, must not stand among the replies.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    WorkerTrial(sys.stdin, out).run()
    # The thread that waits for the end of the input must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
