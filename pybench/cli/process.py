"""The process of a command: its standard streams, its signals, and its exit.

Promises: a closed standard stream acts as /dev/null; Ctrl-C, SIGTERM and a closed terminal end the command with exit
code 130 and without a traceback.
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
    """Set up streams and signals."""
    _open_closed_streams()
    codecs.register_error("pybench", _instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="pybench")
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def end(code: int) -> NoReturn:
    """End the process with `code`; later signals are ignored."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # An interrupt inside an `exec` of text, as a dataclass runs when it is made, lets `python -m` end itself by SIGINT,
    # whatever `code` is, unless another text was executed since (CPython's `unhandled_keyboard_interrupt`).
    exec("")
    sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Replace closed standard streams by /dev/null; otherwise the next file that is opened would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # `open` returns the lowest free descriptor, which is that of the closed stream.
            descriptor = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _instead(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that the stream cannot encode, so that a terminal without µ and ± still shows the figures.

    A file name that is not UTF-8 keeps its bytes, because a script needs the exact name.
    """
    assert isinstance(error, UnicodeEncodeError), "the handler is used for output streams only"
    written = (
        bytes([ord(one) - 0xDC00]) if "\udc80" <= one <= "\udcff" else b"?"
        for one in error.object[error.start : error.end]
    )
    return b"".join(written), error.end
