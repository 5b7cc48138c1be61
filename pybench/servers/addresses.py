"""What no address may hold, whatever its server: text that its client could not be given, or would read otherwise.

Promises: no reason made here repeats any of the address. Does not know the options of any server.
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
_JOINED = "parameters stand behind one ? and are joined by &; any other ; is written as %3B"
_COLON = "the colon between user and password is written as it is: USER:PASSWORD@HOST"
_SECRETS = frozenset({"password"})
_USERS = frozenset({"user", "username"})


class Unreadable(NamedTuple):
    """Why an address is refused, and what to write instead."""

    reason: str
    hint: str


def unreadable(url: str) -> Unreadable | None:
    """Why `url` is none that a client could be given as it was meant; None: nothing here is against it."""
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
    """`url` as a message shows it: masked, without what a terminal would obey, and no longer than a message can bear.

    An address that stays within what a host and a path can need is shown whole.
    """
    text = visible(masked_url(url)) or _EMPTY
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def is_number(text: str, *, highest: int) -> bool:
    """Whether `text` is a number up to `highest`: in plain digits, and no more of them than one can need."""
    return re.fullmatch("[0-9]{1,10}", text) is not None and int(text) <= highest


def scheme_of(url: str) -> str:
    """In lower case; empty where there is none."""
    return url.partition("://")[0].lower() if "://" in url else ""


def is_host(name: str) -> bool:
    """Whether `name` could be that of a host: the resolver breaks off at others."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True
