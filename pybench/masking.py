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
_HARMLESS = frozenset({"db", "host", "hostaddr", "port", "user", "username", "dbname", "sslmode"})
_SECRET = frozenset({"password", "sslpassword"})
_NUMBERED = frozenset({"db", "port"})

_SHORTEST = 4
"""A secret of fewer characters is masked in its address and not looked for elsewhere: it would be found anywhere."""
_COMMON = frozenset(
    {"postgres", "postgresql", "redis", "valkey", "mutex", "unix", "url", "urls", "backends", "localhost", "password"}
)
"""Words that a matrix consists of. As passwords they are no secrets, and text without them would say nothing."""


def masked_url(url: str) -> str:
    """One address as it may be shown, however malformed. A well-formed one keeps everything but its password."""
    scheme, rest = _split(url)
    keyword, equals, _ = rest.partition("=")
    if scheme is None and equals and _KEYWORD.match(keyword):
        return f"{keyword}={MASK}"  # A connection string: host=... password=...
    front = f"{scheme}://" if scheme is not None else ""
    user, at, place = rest.rpartition("@")
    if not at:
        return front + _masked_place(rest, is_behind_user=False)
    if "?" in user or "#" in user:
        # Either the password holds this character, or the option behind it holds the @: where each ends is not known.
        return front + MASK
    name, colon, password = user.partition(":")
    shown = MASK if scheme is None or re.search(r"[/\s]", name) else name
    secret = f":{password if _VARIABLE.fullmatch(password) else MASK}" if colon else ""
    return f"{front}{shown}{secret}@{_masked_place(place, is_behind_user=True)}"


def masked_word(word: str) -> str:
    """A value or an argument that may be or end with an address, such as `--redis=URL`: masked up to its end."""
    start, is_url = _start_of_url(word), True
    if start is None and (as_file := _URL_AS_FILE.search(word)):
        start, is_url = as_file.start(), False
    named = _NAMED_PASSWORD.search(word)
    if named and (start is None or named.start() < start):
        return f"{word[: named.end()]}{MASK}"
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
    """`text` with stars for each of `secrets`."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def secrets_of(word: str) -> frozenset[str]:
    """The secret texts of an address, or of an argument that ends with one, in each form in which they may be written.

    Without those that are too short or too common to be looked for in other text.
    """
    _, rest = _split(word[_start_of_url(word) or 0 :])
    user, at, place = rest.rpartition("@")
    behind = (user if at else place).partition(":")[2]
    raw = {behind} if at or not re.match(r"\d*(?:[/?]|\Z)", behind) else set()
    for part in rest.partition("?")[2].split("&"):
        name, equals, value = part.partition("=")
        if equals and _decoded(name).lower() not in _HARMLESS:
            raw.add(value)
    forms = {form for one in raw for form in _forms(one)}
    return frozenset(form for form in forms if len(form) >= _SHORTEST and form.lower() not in _COMMON)


def unknown_option(query: str, understood: Iterable[str]) -> str | None:
    """What to say of the first option of an address that is none of `understood`; its name may be part of a secret."""
    is_behind_secret = False
    for part in filter(None, query.split("&")):
        name = _decoded(part.partition("=")[0])
        if name not in understood:
            is_word = re.fullmatch(r"[a-z_]+", name) and "=" in part and not is_behind_secret
            return f"unknown option {name!r}" if is_word else "it has an option that is not known"
        is_behind_secret = is_behind_secret or name in _SECRET
    return None


def is_masked(url: str) -> bool:
    """Whether a password was taken out of this address."""
    return MASK in url


def _split(url: str) -> tuple[str | None, str]:
    """The scheme and what is behind its slashes. A password may hold `://` too, so the first one counts."""
    scheme, slashes, rest = url.partition("://")
    return (scheme, rest) if slashes and _SCHEME.match(scheme.strip()) else (None, url)


def _masked_place(place: str, *, is_behind_user: bool) -> str:
    """Host, port, path and options. Without a user, what stands where the port should may be a password."""
    match = _PLACE.match(place)
    if match is None:
        host, _, port = place.partition(":")
        if not is_behind_user or re.search(r"[?#=\s]", place):
            return f"{re.split(r'[?#=]', host)[0]}:{MASK}"
        return f"{host}:{port}"
    rest = match["rest"] or ""
    front = place[: len(place) - len(rest)]
    if rest.startswith("?"):
        return f"{front}?{'&'.join(_masked_options(rest[1:]))}"
    return f"{front}#{MASK}" if rest else front


def _masked_options(query: str) -> Iterator[str]:
    # A password may hold an & that was meant as a character: behind a secret, only numbers are certainly none of it.
    is_behind_secret = False
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        known = _decoded(name).lower()
        is_number = known in _NUMBERED and value.isdecimal()
        if (equals and known in _HARMLESS and not is_behind_secret) or is_number or _VARIABLE.fullmatch(value):
            yield part
        else:
            is_behind_secret = True
            yield f"{name}={MASK}" if known in _SECRET else MASK


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


def _decoded(name: str) -> str:
    """What `name` says however often it was encoded."""
    while (once := unquote(name)) != name:
        name = once
    return name.strip()


def _forms(raw: str) -> set[str]:
    if not raw or _VARIABLE.fullmatch(raw):
        return set()
    plain = {raw, unquote(raw), unquote_plus(raw)}
    encoded = {quote(one, safe=safe, errors="replace") for one in plain for safe in ("", "/", "!$'()*,;:=~")}
    return plain | encoded | {re.sub(r"%..", lambda code: code[0].lower(), one) for one in encoded}
