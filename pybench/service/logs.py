"""The log: one JSON object a line on stderr.

Promises: no address with its password, and no header of a request, is logged. Lines of one round of the event loop are
written at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
import traceback
from typing import Final

from pydantic_core import to_json

from pybench.masking import masked_text
from pybench.service.settings import LogLevel

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """The log of one process."""

    def __init__(self, level: LogLevel) -> None:
        self._level = LEVELS[level]
        self._lines: list[str] = []
        self._pid = os.getpid()

    def takes(self, level: LogLevel) -> bool:
        """Whether lines of this level are written."""
        return LEVELS[level] >= self._level

    def write(self, level: LogLevel, event: str, **fields: object) -> None:
        """Log one event."""
        if not self.takes(level):
            return
        told = {"time": round(time.time(), 6), "level": level, "event": event, "pid": self._pid, **fields}
        line = to_json(told, fallback=str, inf_nan_mode="strings").decode()
        if not self._lines:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                # Before the loop runs, or after it.
                self._lines.append(line)
                self.flush()
                return
        self._lines.append(line)

    def failure(self, request_id: str, error: BaseException) -> None:
        """Log an error that is a fault of the service."""
        trace = "".join(traceback.format_exception(error))
        self.write("error", "failure", request_id=request_id, error=repr(error), trace=masked_text(trace))

    def flush(self) -> None:
        """Write what was logged. A stderr that cannot be written raises nothing: the service goes on."""
        lines, self._lines = self._lines, []
        if lines:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\n".join(lines) + "\n")
                sys.stderr.flush()


class Forward(logging.Handler):
    """Messages of libraries, such as the HTTP server's, in the form of the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one message, with the traceback of an error."""
        level: LogLevel = "error" if record.levelno >= logging.ERROR else "warning"
        if record.levelno < logging.WARNING:
            level = "debug"
        text = masked_text(record.getMessage())
        trace = {}
        if record.exc_info and record.exc_info[0] is not None:
            trace["trace"] = masked_text(logging.Formatter().formatException(record.exc_info))
        self._log.write(level, "message", logger=record.name, message=text, **trace)
