"""Passwords in addresses: finding them in URLs and other text, and masking them with stars.

Promises: every part that is not known to be harmless is masked, even in a malformed address. A password of the form
`${NAME}` is the name of a variable, and stays. The module reads no files, contacts no servers and imports little.
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
# A URL that was taken for a file name has one slash where a URL has two.
_URL_AS_FILE = re.compile(r"(?:rediss?|unix|postgres(?:ql)?):/", re.IGNORECASE)
_NAMED_PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{\w+\}")
_PLACE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.%\w]*\]|[^/?#:]*)(?::(?P<port>\d*|\$\{\w+\}))?(?P<path>/[^?#]*)?(?P<rest>[?#].*)?\Z",
    re.DOTALL,
)
_COMMAND = re.compile(r"[a-z][a-z-]*(?=\s)")
"""The first word of a text that is no URL: a command such as redis-cli, whose arguments may have a password."""
# After the name of a client program, any argument may be a password.
_CLIENT = re.compile(r"\b(?:redis-cli|valkey-cli|psql)(?=\s)")
_SEPARATOR = re.compile(r"[;&?=]|%(?:25)*(?:3b|26|3f|3d)", re.IGNORECASE)
"""A separator between options, plain or percent-encoded any number of times."""
_HARMLESS = frozenset({"db", "host", "hostaddr", "port", "user", "username", "dbname", "sslmode"})
_SECRET = frozenset({"password", "sslpassword"})
_NUMBERED = frozenset({"db", "port"})
_USER = frozenset({"user", "username"})
_WITH_PLAIN_USERS = ("postgres", "postgresql")
"""Schemes whose user is always a name. In a Redis address a lone user may be the password, as in `redis-cli -u`."""

_SHORTEST = 4
"""A shorter secret is masked in its address only: in other text it would match too much."""
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
"""Common words of a matrix. As passwords they are no secrets, and masking them would make text useless."""


def masked_url(url: str) -> str:
    """One address with its password masked; a malformed address may lose more."""
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
        # Either the password contains this character, or the text after it contains the @: the end is not known.
        return front + MASK
    is_name = scheme is not None and not re.search(r"[/:]", decoded(name)) and not hides_user
    shown = name if is_name or not name or _VARIABLE.fullmatch(name) else MASK
    secret = f":{password if _VARIABLE.fullmatch(password) else MASK}" if colon else ""
    return f"{front}{shown}{secret}@{_masked_place(place, is_behind_user=True, hides_user=hides_user)}"


def masked_word(word: str) -> str:
    """A value or argument that may end with an address, such as `--redis=URL`, with the address masked."""
    if client := _CLIENT.search(word):
        return f"{word[: client.end()]} {MASK}"
    start, is_url = _start_of_url(word), True
    if start is None and (as_file := _URL_AS_FILE.search(word)):
        start, is_url = as_file.start(), False
    named = _NAMED_PASSWORD.search(word)
    if named and (start is None or named.start() < start):
        return f"{word[: named.end()]}{MASK}"
    if start and word[start - 1] == ":" and "@" in word:
        return masked_url(word)  # The address has no scheme, and its password contains the slashes.
    if start is not None:
        url = word[start:]
        return word[:start] + masked_url(url if is_url else url.replace(":/", "://", 1))
    return masked_url(word) if "@" in word else word


def masked_argument(word: str, secrets: Iterable[str]) -> str:
    """An argument of a command line with its address masked, or, without an address, with `secrets` masked."""
    masked = masked_word(word)
    return without(word, secrets) if masked == word else masked


def masked_text(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every address masked, and with `secrets` masked in the other text."""
    return "".join(masked_word(piece) if is_url else without(piece, secrets) for is_url, piece in _pieces(text))


def without(text: str, secrets: Iterable[str]) -> str:
    """`text` with stars for each of `secrets`; overlapping secrets are covered together."""
    spans = sorted((start, start + len(secret)) for secret in secrets for start in _places(secret, text))
    kept: list[str] = []
    shown_to = 0
    for start, end in spans:
        if start >= shown_to:
            kept += [text[shown_to:start], MASK]
        shown_to = max(shown_to, end)
    return "".join([*kept, text[shown_to:]])


def secrets_of(word: str) -> frozenset[str]:
    """The secrets of an address, or of an argument that ends with an address, in every encoding.

    Secrets that are too short or too common to be searched for in other text are left out.
    """
    if client := _CLIENT.search(word):
        # Only the client program knows which argument is the password.
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
        # The end of the password is not known: every later piece may be part of it.
        pieces = _SEPARATOR.split(rest)[1:]
        raw.update(pieces, *(re.split("[@/#]", piece) for piece in pieces))
    is_behind_secret = False
    for part in rest.partition("?")[2].split("&"):
        name, equals, value = part.partition("=")
        known = decoded(name).lower()
        if known not in _HARMLESS and (equals or is_behind_secret):
            # The password may contain a literal &, after which its rest looks like an option.
            raw |= {name, value} if is_behind_secret else {value}
            is_behind_secret = True
        elif known in _USER:
            raw |= _secrets_of_user(value, hides_user=hides_user)
        if equals and known in _HARMLESS and hides_option(value):
            raw.update(_SEPARATOR.split(value)[1:])
    forms = {form for one in raw for form in _forms(one)}
    return frozenset(filter(is_sought, forms))


def is_sought(secret: str) -> bool:
    """Whether `secret` is searched for in other text, being neither too short nor too common."""
    return len(secret) >= _SHORTEST and secret.lower() not in _COMMON


def unknown_option(query: str, understood: Iterable[str]) -> str | None:
    """The problem with the first option of an address that is not in `understood`; its name may be part of a secret."""
    is_behind_secret = False
    for part in filter(None, query.split("&")):
        name = decoded(part.partition("=")[0])
        if name not in understood:
            is_word = re.fullmatch(r"[a-z_]+", name) and "=" in part and not is_behind_secret
            return f"unknown option {name!r}" if is_word else "the address has an unknown option"
        is_behind_secret = is_behind_secret or name in _SECRET
    return None


def hides_option(text: str) -> bool:
    """Whether a host, a path or a harmless value contains misplaced options: `/0;password=...`."""
    plain = decoded(text)
    separator = re.search("[;?&]", plain)
    is_option = separator is not None and "=" in plain[separator.end() :]
    return ";" in text or is_option or bool(_NAMED_PASSWORD.search(plain))


def decoded(text: str) -> str:
    """`text` with all levels of percent-encoding removed."""
    while (once := unquote(text)) != text:
        text = once
    return text.strip()


def is_masked(url: str) -> bool:
    """Whether a password of this address was masked."""
    return MASK in url


def _split(url: str) -> tuple[str | None, str]:
    """The scheme and the text after its slashes. A password may contain `://`, so the first one counts."""
    scheme, slashes, rest = url.partition("://")
    return (scheme, rest) if slashes and _SCHEME.match(scheme.strip()) else (None, url)


def _is_user_secret(scheme: str | None, rest: str) -> bool:
    """Whether the user of an address without a password may be the password."""
    if scheme is not None and scheme.strip().lower() in _WITH_PLAIN_USERS:
        return False
    user, _, place = rest.rpartition("@")
    options = place.partition("?")[2].split("&")
    return ":" not in user and not any(decoded(one.partition("=")[0]).lower() in _SECRET for one in options)


def _secrets_of_user(name: str, *, hides_user: bool) -> set[str]:
    """The secret parts of a user: the whole user, or the text after an encoded colon."""
    behind = decoded(name).partition(":")[2]
    return {name, behind} if hides_user or behind else set()


def _masked_place(place: str, *, is_behind_user: bool, hides_user: bool) -> str:
    """Host, port, path and options, masked. Without a user, the text in place of the port may be a password."""
    if space := re.search(r"\s+(?=\S)", place):
        # An address ends at white space; the rest may be arguments of a command: -a PASSWORD.
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
    # A password may contain a literal &: after a secret, only numbers are certainly not part of it.
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
    """The pieces of `text` between white space, each with whether it is an address."""
    for piece in re.split(r"(\s+)", text):
        yield _start_of_url(piece) is not None or bool(_URL_AS_FILE.search(piece)), piece


def _start_of_url(text: str) -> int | None:
    """Where the scheme of the first URL in `text` begins; None without a URL.

    The search goes backwards from the slashes. A pattern from the scheme on takes quadratic time on long words.
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
