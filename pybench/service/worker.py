"""A worker: one of several processes that serve the same socket. `workers` starts it, with its settings on stdin.

It ends by SIGTERM, or when stdin ends because the process that started it has died.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading

from pybench.errors import PybenchError
from pybench.service.figures import FOLDER_VARIABLE
from pybench.service.process import serve
from pybench.service.settings import Settings

READY = b"ready\n"
FAILED = 1

_PARENT_DIED = threading.Event()


def main() -> int:
    """Serve until told to end; the exit code."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    settings = Settings.from_json(sys.stdin.readline())
    # Ctrl-C reaches every process of the terminal: the one that started us passes on what is meant for us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="pybench-parent", daemon=True).start()
    try:
        serve(settings, listening, _ready)
    except PybenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    finally:
        if _PARENT_DIED.is_set():
            shutil.rmtree(os.environ[FOLDER_VARIABLE], ignore_errors=True)
    return 0


def _ready() -> None:
    os.write(1, READY)


def _end_with_parent() -> None:
    os.read(0, 1)
    # The process that started us closes stdin only after our end.
    _PARENT_DIED.set()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
