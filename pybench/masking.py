"""Passwords in addresses: where they stand in a URL, and the text in which stars stand for them.

Promises: whatever is not known to be harmless is masked, in a malformed address too. A password that is one `${NAME}`
is the name of a variable, no secret, and stays. Knows no server and no file; imports nothing heavy.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

MASK: Final = "***"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_SCHEME_LETTERS = frozenset(string.ascii_letters + string.digits + "+.-")
_KEYWORD = re.compile(r"[A-Za-z_]+\s*\Z")
# A path of the file system has one slash where a URL has two: so a URL looks that was taken for a file's name.
_URL_AS_FILE = re.compile(r"(?:rediss?|unix|postgres(?:ql)?):/", re.IGNORECASE)
_NAMED_PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{\w+\}")
_PLACE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.%\w]*\]|[^/?#:]*)(?::(?P<port>\d*|\$\{\w+\}))?(?P<path>/[^?#]*)?(?P<rest>[?#].*)?\Z",
    re.DOTALL,
)
_COMMAND = re.compile(r"[a-z][a-z-]*(?=\s)")
"""The first word of what is no URL: a command such as redis-cli, behind which a password may stand anywhere."""
# Where a client is called, a password may stand anywhere behind it, in any option that was meant for something else.
_CLIENT = re.compile(r"\b(?:redis-cli|valkey-cli|psql)(?=\s)")
_SEPARATOR = re.compile(r"[;&?=]|%(?:25)*(?:3b|26|3f|3d)", re.IGNORECASE)
"""What stands between options, as it is or encoded however often."""
_HARMLESS = frozenset({"db", "host", "hostaddr", "port", "user", "username", "dbname", "sslmode"})
_SECRET = frozenset({"password", "sslpassword"})
_NUMBERED = frozenset({"db", "port"})
_USER = frozenset({"user", "username"})
_WITH_PLAIN_USERS = ("postgres", "postgresql")
"""Schemes whose user without a password is a name. That of a Redis address was the password once: `redis-cli -u`."""

_SHORTEST = 4
"""A secret of fewer characters is masked in its address and not looked for elsewhere: it would be found anywhere."""
_COMMON = frozenset(
    {
        "postgres",
        "postgresql",
        "redis",
        "valkey",
        "mutex",
        "unix",
        "url",
        "urls",
        "backends",
        "localhost",
        "password",
        "default",
    }
)
"""Words that a matrix consists of. As passwords they are no secrets, and text without them would say nothing."""


def masked_url(url: str) -> str:
    """One address as it may be shown, however malformed. A well-formed one keeps everything but its password."""
    scheme, rest = _split(url)
    keyword, equals, _ = rest.partition("=")
    if scheme is None and equals and _KEYWORD.match(keyword):
        return f"{keyword}={MASK}"  # A connection string: host=... password=...
    if scheme is None and re.search(r"\s", rest.strip()):
        command = _COMMAND.match(rest.lstrip())
        return f"{command[0]} {MASK}" if command else MASK
    front = f"{scheme}://" if scheme is not None else ""
    user, at, place = rest.rpartition("@")
    hides_user = _is_user_secret(scheme, rest)
    if not at:
        return front + _masked_place(rest, is_behind_user=False, hides_user=hides_user)
    name, colon, password = user.partition(":")
    if re.search(r"[?#\s]", user) or hides_option(name) or _NAMED_PASSWORD.search(decoded(user)):
        # Either the password holds this character, or what is behind it holds the @: where each ends is not known.
        return front + MASK
    is_name = scheme is not None and not re.search(r"[/:]", decoded(name)) and not hides_user
    shown = name if is_name or not name or _VARIABLE.fullmatch(name) else MASK
    secret = f":{password if _VARIABLE.fullmatch(password) else MASK}" if colon else ""
    return f"{front}{shown}{secret}@{_masked_place(place, is_behind_user=True, hides_user=hides_user)}"


def masked_word(word: str) -> str:
    """A value or an argument that may be or end with an address, such as `--redis=URL`: masked up to its end."""
    if client := _CLIENT.search(word):
        return f"{word[: client.end()]} {MASK}"
    start, is_url = _start_of_url(word), True
    if start is None and (as_file := _URL_AS_FILE.search(word)):
        start, is_url = as_file.start(), False
    named = _NAMED_PASSWORD.search(word)
    if named and (start is None or named.start() < start):
        return f"{word[: named.end()]}{MASK}"
    if start and word[start - 1] == ":" and "@" in word:
        return masked_url(word)  # Without a scheme: it is a password that holds the slashes.
    if start is not None:
        url = word[start:]
        return word[:start] + masked_url(url if is_url else url.replace(":/", "://", 1))
    return masked_url(word) if "@" in word else word


def masked_argument(word: str, secrets: Iterable[str]) -> str:
    """An argument of a command line without its password, and without `secrets` where it is no address."""
    masked = masked_word(word)
    return without(word, secrets) if masked == word else masked


def masked_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Running text with every address in it masked, and every one of `secrets` wherever else it stands."""
    return "".join(masked_word(piece) if is_url else without(piece, secrets) for is_url, piece in _pieces(text))


def without(text: str, secrets: Iterable[str]) -> str:
    """`text` with stars for each of `secrets`, and for all that several of them cover together where they overlap."""
    spans = sorted((start, start + len(secret)) for secret in secrets for start in _places(secret, text))
    kept: list[str] = []
    shown_to = 0
    for start, end in spans:
        if start >= shown_to:
            kept += [text[shown_to:start], MASK]
        shown_to = max(shown_to, end)
    return "".join([*kept, text[shown_to:]])


def secrets_of(word: str) -> frozenset[str]:
    """The secret texts of an address, or of an argument that ends with one, in each form in which they may be written.

    Without those that are too short or too common to be looked for in other text.
    """
    if client := _CLIENT.search(word):
        # Which of its words is the password only the client knows.
        return frozenset(filter(is_sought, (one for one in word[client.end() :].split() if not one.startswith("-"))))
    scheme, rest = _split(word[_start_of_url(word) or 0 :])
    user, at, place = rest.rpartition("@")
    behind = (user if at else place).partition(":")[2]
    raw = {behind} if at or not re.match(r"\d*(?:[/?]|\Z)", behind) else set()
    hides_user = scheme is not None and _is_user_secret(scheme, rest)
    name = user.partition(":")[0]
    raw |= _secrets_of_user(name, hides_user=hides_user) if scheme is not None else set()
    is_odd = any(map(hides_option, (name, place.partition("?")[0]))) or _NAMED_PASSWORD.search(decoded(user))
    if scheme is not None and is_odd:
        # The password goes on to an end that is not known: every piece behind may be one of it.
        pieces = _SEPARATOR.split(rest)[1:]
        raw.update(pieces, *(re.split("[@/#]", piece) for piece in pieces))
    is_behind_secret = False
    for part in rest.partition("?")[2].split("&"):
        name, equals, value = part.partition("=")
        known = decoded(name).lower()
        if known not in _HARMLESS and (equals or is_behind_secret):
            # An & of a password that was meant as a character: what is behind it has the look of an option.
            raw |= {name, value} if is_behind_secret else {value}
            is_behind_secret = True
        elif known in _USER:
            raw |= _secrets_of_user(value, hides_user=hides_user)
        if equals and known in _HARMLESS and hides_option(value):
            raw.update(_SEPARATOR.split(value)[1:])
    forms = {form for one in raw for form in _forms(one)}
    return frozenset(filter(is_sought, forms))


def is_sought(secret: str) -> bool:
    """Whether `secret` is looked for in other text: it is neither too short nor too common for that."""
    return len(secret) >= _SHORTEST and secret.lower() not in _COMMON


def unknown_option(query: str, understood: Iterable[str]) -> str | None:
    """What to say of the first option of an address that is none of `understood`; its name may be part of a secret."""
    is_behind_secret = False
    for part in filter(None, query.split("&")):
        name = decoded(part.partition("=")[0])
        if name not in understood:
            is_word = re.fullmatch(r"[a-z_]+", name) and "=" in part and not is_behind_secret
            return f"unknown option {name!r}" if is_word else "it has an option that is not known"
        is_behind_secret = is_behind_secret or name in _SECRET
    return None


def hides_option(text: str) -> bool:
    """Whether a host, a path or a harmless value goes on with what was meant as options: `/0;password=...`."""
    said = decoded(text)
    separator = re.search("[;?&]", said)
    is_option = separator is not None and "=" in said[separator.end() :]
    return ";" in text or is_option or bool(_NAMED_PASSWORD.search(said))


def decoded(text: str) -> str:
    """What `text` says however often it was encoded."""
    while (once := unquote(text)) != text:
        text = once
    return text.strip()


def is_masked(url: str) -> bool:
    """Whether a password was taken out of this address."""
    return MASK in url


def _split(url: str) -> tuple[str | None, str]:
    """The scheme and what is behind its slashes. A password may hold `://` too, so the first one counts."""
    scheme, slashes, rest = url.partition("://")
    return (scheme, rest) if slashes and _SCHEME.match(scheme.strip()) else (None, url)


def _is_user_secret(scheme: str | None, rest: str) -> bool:
    """Whether the user of an address, which has no password beside it, may be the password."""
    if scheme is not None and scheme.strip().lower() in _WITH_PLAIN_USERS:
        return False
    user, _, place = rest.rpartition("@")
    options = place.partition("?")[2].split("&")
    return ":" not in user and not any(decoded(one.partition("=")[0]).lower() in _SECRET for one in options)


def _secrets_of_user(name: str, *, hides_user: bool) -> set[str]:
    """What of a user is none: all of it, or what is behind a colon that was encoded."""
    behind = decoded(name).partition(":")[2]
    return {name, behind} if hides_user or behind else set()


def _masked_place(place: str, *, is_behind_user: bool, hides_user: bool) -> str:
    """Host, port, path and options. Without a user, what stands where the port should may be a password."""
    if space := re.search(r"\s+(?=\S)", place):
        # No address goes on behind white space; the rest of a command may: -a PASSWORD.
        before = _masked_place(place[: space.start()], is_behind_user=is_behind_user, hides_user=hides_user)
        return f"{before} {MASK}"
    if hides_option(before := re.split("[?#]", place, maxsplit=1)[0]):
        separator = _SEPARATOR.search(before)
        shown = before[: separator.start()] if separator else ""
        masked = _masked_place(shown, is_behind_user=is_behind_user, hides_user=hides_user)
        return f"{masked.removesuffix(MASK)}{MASK}"
    match = _PLACE.match(place)
    if match is None:
        host, _, port = place.partition(":")
        if not is_behind_user or re.search(r"[?#=\s]", place):
            return f"{re.split(r'[?#=]', host)[0]}:{MASK}"
        return f"{host}:{port}"
    rest = match["rest"] or ""
    front = place[: len(place) - len(rest)]
    if rest.startswith("?"):
        return f"{front}?{'&'.join(_masked_options(rest[1:], hides_user=hides_user))}"
    return f"{front}#{MASK}" if rest else front


def _masked_options(query: str, *, hides_user: bool) -> Iterator[str]:
    # A password may hold an & that was meant as a character: behind a secret, only numbers are certainly none of it.
    is_behind_secret = False
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        known = decoded(name).lower()
        is_number = known in _NUMBERED and value.isdecimal()
        is_harmless = equals and known in _HARMLESS and not is_behind_secret
        if is_number or _VARIABLE.fullmatch(value):
            yield part
        elif not is_harmless:
            is_behind_secret = True
            yield f"{name}={MASK}" if known in _SECRET else MASK
        elif hides_option(value):
            is_behind_secret = True
            yield f"{name}={MASK}"
        else:
            is_secret = known in _USER and (hides_user or ":" in decoded(value))
            yield f"{name}={MASK}" if is_secret else part


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """`text` in pieces, each with whether it is an address: one ends at white space."""
    for piece in re.split(r"(\s+)", text):
        yield _start_of_url(piece) is not None or bool(_URL_AS_FILE.search(piece)), piece


def _start_of_url(text: str) -> int | None:
    """Where the scheme of the first URL in `text` begins; None without one.

    From its slashes backwards: a pattern that begins with the scheme reads a long word once from each of its letters.
    """
    slashes = text.find("://")
    while slashes >= 0:
        start = slashes
        while start and text[start - 1] in _SCHEME_LETTERS:
            start -= 1
        while start < slashes and text[start] not in string.ascii_letters:
            start += 1
        if start < slashes:
            return start
        slashes = text.find("://", slashes + 3)
    return None


def _places(secret: str, text: str) -> Iterator[int]:
    start = text.find(secret) if secret else -1
    while start >= 0:
        yield start
        start = text.find(secret, start + 1)


def _forms(raw: str) -> set[str]:
    if not raw or _VARIABLE.fullmatch(raw):
        return set()
    plain = {raw, unquote(raw), unquote_plus(raw)}
    encoded = {quote(one, safe=safe, errors="replace") for one in plain for safe in ("", "/", "!$'()*,;:=~")}
    return plain | encoded | {re.sub(r"%..", lambda code: code[0].lower(), one) for one in encoded}
