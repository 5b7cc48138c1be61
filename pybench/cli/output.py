"""Where output goes: data to stdout, talk to stderr. NO_COLOR is honoured, and a pipe gets plain text."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def data(text: str) -> None:
    """Write data, whole, to stdout."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def data_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write `value` as JSON to stdout; NaN and other absent figures must be None already."""
    data(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Write one line of talk to stderr, now."""
    print(text, file=sys.stderr, flush=True)


def stdout_console() -> Console:
    """A console for data: styled on a terminal, plain text elsewhere."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


def stderr_console() -> Console:
    """A console for talk."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def versions() -> str:
    """The versions of pybench and of its core, for a report of a fault; "no core" when it is not built."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("pybench")
    except PackageNotFoundError:
        own = "of a source tree"
    try:
        from pybench import _core
    except ImportError:
        return f"pybench {own}, no core"
    return f"pybench {own}, core {_core.version} ({_core.build_profile})"
