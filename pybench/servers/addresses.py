"""Checks for the address of any server: text that a client could not take, or would misread.

Promises: no reason made here quotes the address. The options of each server are checked elsewhere.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from pybench.masking import decoded, hides_option, masked_url
from pybench.notation import is_text, visible

AS_CODES: Final = "write special characters of a password as %XX"
_EMPTY = "an empty text"
_SHOWN_CHARACTERS = 300
_JOINED = "put options after one ?, join them with &, and write any other ; as %3B"
_COLON = "write the colon between user and password as it is, and not as %3A: USER:PASSWORD@HOST"
_SECRETS = frozenset({"password"})
_USERS = frozenset({"user", "username"})


class Unreadable(NamedTuple):
    """Why an address is refused, and what to write instead."""

    reason: str
    hint: str


def unreadable(url: str) -> Unreadable | None:
    """Why no client could use `url` as it was meant; None when these checks find nothing."""
    if not is_text(url):
        return Unreadable("it holds bytes that are not UTF-8", AS_CODES)
    try:
        plain = unquote(url, errors="strict")
    except UnicodeDecodeError:
        return Unreadable("its %XX are bytes that are not UTF-8", "write each character as the %XX of its UTF-8")
    if "\0" in plain:
        return Unreadable("it holds a zero byte", "leave it out")
    if re.search(r"\s", url):
        return Unreadable("it holds white space", AS_CODES)
    user, _, place = url.partition("://")[2].rpartition("@")
    front, _, query = place.partition("?")
    options = [(decoded(name).lower(), value) for name, _, value in (o.partition("=") for o in query.split("&"))]
    if ";" in place or hides_option(front):
        return Unreadable("it holds a ';' or an option where none can stand", _JOINED)
    if any(hides_option(value) for name, value in options if name not in _SECRETS):
        return Unreadable("the value of an option goes on with another option", _JOINED)
    users = [user.partition(":")[0], *(value for name, value in options if name in _USERS)]
    if any(":" in decoded(one) for one in users):
        return Unreadable("its user holds a colon", _COLON)
    return None


def shown_address(url: str) -> str:
    """`url` for a message: masked, without control characters, and cut where it is longer than any real address."""
    text = visible(masked_url(url)) or _EMPTY
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def is_number(text: str, *, highest: int) -> bool:
    """Whether `text` is a number up to `highest`, in at most ten plain digits."""
    return re.fullmatch("[0-9]{1,10}", text) is not None and int(text) <= highest


def scheme_of(url: str) -> str:
    """In lower case; empty where there is none."""
    return url.partition("://")[0].lower() if "://" in url else ""


def is_host(name: str) -> bool:
    """Whether `name` could be the name of a host. The resolver breaks off at any other name."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True
