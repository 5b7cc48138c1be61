"""The process of a command: its standard streams, what asks it to end, and how it ends.

Promises: with any of its streams closed a command runs as with /dev/null there; whoever asks it to end, by Ctrl-C,
SIGTERM or by closing the terminal, gets exit code 130 and no traceback.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from pybench.running.interrupts import SIGNALS


def begin() -> None:
    """Make streams and signals ready."""
    _open_closed_streams()
    codecs.register_error("pybench", _instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="pybench")
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def end(code: int) -> NoReturn:
    """End the process with `code`, whatever signal still comes."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Put /dev/null where a standard stream is closed, or the next file that is opened would stand in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest number that is free, which is the stream's own.
            descriptor = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _instead(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written for characters that cannot be: a terminal without µ and ± still gets its figures.

    A file name that is not UTF-8 keeps its bytes: it is what a script goes on with.
    """
    assert isinstance(error, UnicodeEncodeError), "only what is written is encoded here"
    written = (
        bytes([ord(one) - 0xDC00]) if "\udc80" <= one <= "\udcff" else b"?"
        for one in error.object[error.start : error.end]
    )
    return b"".join(written), error.end
