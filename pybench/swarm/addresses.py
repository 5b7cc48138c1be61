"""Addresses of servers as options of Locust: a text that shows no password, and remembers it.

Locust puts every option into its web page, and sends it to its workers. An `Address` is a text with stars in place of
the password; what it stands for is kept in this process. When the form sends the stars back, they stand for the same.

Promises: the password is in no `str`, `repr`, page or message of Locust.
"""

from __future__ import annotations

import re
from typing import Self

from pybench.masking import masked_text

_BETWEEN = re.compile(r"[\s,]+(?=\w+://)")
"""What separates several addresses; a password may contain a comma."""

_known: dict[str, str] = {}
"""What each masked text of this process stands for."""


class Address(str):
    """One or several addresses, masked. `Address(text)` takes a text with passwords, or one that was masked before."""

    __slots__ = ()

    def __new__(cls, text: str = "") -> Self:
        """Mask `text`, and remember it."""
        shown = masked_text(" ".join(_BETWEEN.split(text.strip())))
        if shown != text:
            _known[shown] = text
        return super().__new__(cls, shown)


def urls_of(option: str | None) -> tuple[str, ...]:
    """The addresses with their passwords that an option stands for."""
    text = (option or "").strip()
    whole = _known.get(text, text)
    return tuple(part for part in _BETWEEN.split(whole.strip()) if part)
