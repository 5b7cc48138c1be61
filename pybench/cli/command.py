"""The command line that repeats a run, as its manifest keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def repeating(arguments: Sequence[str]) -> list[str]:
    """`pybench` and its `arguments`, without `--out`, whose folder is in use once the run has it."""
    return ["pybench", *_without_out(arguments)]


def _without_out(arguments: Sequence[str]) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        if word == "--out":
            next(words, None)
        elif not word.startswith("--out="):
            yield word
