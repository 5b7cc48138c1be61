"""The meaning of an error reply, and what the user can do about it. No error made here shows the password."""

from __future__ import annotations

from pybench.errors import ServerError
from pybench.masking import MASK
from pybench.servers import rights
from pybench.servers.connection import OWN_WORDS, Meaning
from pybench.servers.redis.conversation import Refusal
from pybench.servers.redis.endpoint import Endpoint

_SHOWN = 200


BY_CODE = {
    "NOAUTH": Meaning(
        "asks for a password", "put it into the URL, redis://:PASSWORD@host, best by way of PYBENCH_REDIS_URL"
    ),
    "WRONGPASS": Meaning("refuses this user and password", "check both; special characters as %XX"),
    "LOADING": Meaning("is still loading its data", "wait, and try again"),
    "BUSY": Meaning("is busy with somebody's script", "wait, or end the script: SCRIPT KILL"),
    "DENIED": Meaning(
        "is in protected mode: without a password it serves its own machine only",
        "set a password there (requirepass) and put it into the URL, or measure on its machine",
    ),
    "OOM": Meaning("is out of memory, and takes no locks", "give it more (maxmemory), or remove what fills it"),
    "READONLY": Meaning("is a replica: it takes no locks", "give its primary"),
    "MISCONF": Meaning("cannot save its data, and takes no writes", "see its log: is its disk full?"),
    "MASTERDOWN": Meaning("is a replica that has lost its primary", "give its primary"),
    "NOREPLICAS": Meaning(
        "has fewer replicas in step than its min-replicas-to-write asks for, and takes no writes",
        "start its replicas, or CONFIG SET min-replicas-to-write 0",
    ),
    "MOVED": Meaning("is part of a cluster, and sends clients elsewhere", "give a standalone server"),
    "CROSSSLOT": Meaning("is part of a cluster", "give a standalone server"),
    "CLUSTERDOWN": Meaning("is part of a cluster, which is down", "give a standalone server"),
}
"""By the first word of the reply. A server gives these to any client, in the middle of a run, too."""


_LOG_IN = ("NOAUTH", "WRONGPASS")
_ALONE = "a password comes after a colon: redis://:PASSWORD@HOST; without the colon it is a user"


def refused(endpoint: Endpoint, refusal: Refusal) -> ServerError:
    """The error for a server that replied with `refusal`."""
    text = str(refusal)
    # A server that does not know AUTH quotes its arguments.
    if endpoint.password is not None:
        text = text.replace(endpoint.password.get_secret_value() or MASK, MASK)
    elif endpoint.username:
        text = text.replace(endpoint.username, MASK)
    meaning = BY_CODE.get(refusal.code) or _by_text(endpoint, refusal.code, text)
    if refusal.code in _LOG_IN and endpoint.password is None and endpoint.username:
        meaning = Meaning(meaning.what, _ALONE)
    return ServerError(f"{endpoint} {meaning.what}", hint=meaning.hint)


def _by_text(endpoint: Endpoint, code: str, text: str) -> Meaning:
    if "AUTH" in text and "without any password" in text:
        return Meaning("has no password, but one was given", "leave it out of the URL")
    if rights.lacks_right(code, text):
        hint = rights.redis_hint(None, endpoint.user)
        return Meaning(f"does not let this user do what a run needs: {text[:_SHOWN]}", hint)
    if "DB index" in text:
        return Meaning(f"has no database {endpoint.db}", "give a lower number")
    if "max number of clients" in text:
        return Meaning("has no connection left", "raise its maxclients, or end other clients")
    return Meaning(f"answers with an error: {text[:_SHOWN]}", OWN_WORDS)


def refused_calls(endpoint: Endpoint, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
    """The error for a server that refused `calls` of a trial of `strategy`; `first` is its first error reply."""
    told = f'it refused {calls} of {strategy}: "{first}"'
    meaning = BY_CODE.get(code, Meaning("answered with errors", OWN_WORDS))
    if rights.lacks_right(code, first):
        meaning = Meaning(
            f"does not let this user do what {strategy} needs", rights.redis_hint(strategy, endpoint.user)
        )
    return ServerError(f"{endpoint.address} {meaning.what}: {told}", hint=meaning.hint)
