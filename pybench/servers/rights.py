"""The rights that a user of a given server needs for a run, as `docs/troubleshooting.md` lists them.

Promises: a Redis user with exactly the rights of a strategy can measure it; a test does so with each strategy.
Nothing here asks a server for the rights of a user: a run uses each lock once to find out.
"""

from __future__ import annotations

import re

CONTROL = ("ping", "info", "hello", "scan", "unlink")
"""The commands of a run to every Redis server besides its locks: for the probe, the counters and the cleanup."""

SCRIPTS = ("eval", "evalsha", "script|load")

IDLE_CALL = ("set", "get", "del")
"""The commands of one idle call, which a run measures with a `mutex` unless its only lock is `naive`."""

COMMANDS = {
    "none": (),
    "naive": ("setnx", "expire", "del"),
    "mutex": (),
    "watchdog": ("pexpire",),
    "reentrant": ("exists", "pexpire", "rpush", "lindex", "llen", "ltrim"),
    "read-write": ("exists", "time", "pexpireat", "zadd", "zcard", "zrem", "zremrangebyscore", "zrevrange", "zscore"),
    "semaphore": ("time", "pexpireat", "zadd", "zcard", "zrem", "zremrangebyscore", "zrevrange", "zscore"),
    "fair": ("xgroup|create", "xadd", "xreadgroup", "xack", "xdel", "xtrim"),
    "fair-queue": (
        *("exists", "pexpire", "pttl", "copy", "rename", "rpush", "blpop"),
        *("zadd", "zpopmin", "zrange", "zrem"),
    ),
    "notify": ("pttl", "pexpire", "publish", "subscribe", "unsubscribe"),
    "fenced": ("exists", "incr", "pexpire"),
    "replicated": ("wait",),
    "redlock": (),
    "redisson-redlock": ("pexpire",),
    "multilock": (),
    "redisson-multilock": ("pexpire",),
    "layered": (),
}
"""The commands of the lock of each strategy and of its scripts, besides `SCRIPTS` and `IDLE_CALL`."""


def redis_rights(strategy: str) -> str:
    """The ACL rules that a user of Redis or Valkey needs to measure `strategy`, as ACL SETUSER takes them."""
    own = COMMANDS.get(strategy, ())
    commands = (*CONTROL, *own) if strategy == "naive" else (*CONTROL, *SCRIPTS, *IDLE_CALL, *own)
    channels = " &pybench:*" if "subscribe" in own else ""
    return f"~pybench:*{channels} {' '.join(f'+{command}' for command in commands)}"


def redis_hint(strategy: str | None, user: str = "NAME") -> str:
    """What to type to give `user` of a Redis the rights for `strategy`; None: the rights that every run needs."""
    if strategy is None:
        commands = " ".join(f"+{command}" for command in CONTROL)
        return f"ACL SETUSER {user} {commands} (docs/troubleshooting.md lists all rights)"
    return f"ACL SETUSER {user} {redis_rights(strategy)}"


def lacks_right(code: str, text: str) -> bool:
    """Whether the error `code` with the words `text` means that the user lacks a right."""
    return code in ("NOPERM", NO_PRIVILEGE) or any(words in text for words in _REFUSED_IN_SCRIPTS)


NO_PRIVILEGE = "42501"
"""The SQLSTATE for a missing right."""

_REFUSED_IN_SCRIPTS = ("ACL failure in script", "The user executing the script can't")
"""The words of Redis 7.2 and later, and of earlier versions, for a script without a right. Their code is ERR."""


def postgres_hint(text: str, *, database: str | None = None, user: str | None = None) -> str:
    """What to type to give `user` the right that Postgres refused with the words `text`."""
    whom = "..." if user is None else _quoted(user)
    where = "" if database is None else f", in the database {_quoted(database)}"
    if function := re.search(r"permission denied for function (\w+)", text):
        name = function[1]
        # Other functions of this name take two numbers, so that GRANT needs the arguments.
        arguments = "(bigint)" if re.match(r"pg_(try_)?advisory_", name) else ""
        return f"GRANT EXECUTE ON FUNCTION {name}{arguments} TO {whom}{where}"
    if relation := re.search(r"permission denied for (?:table|view) (\w+)", text):
        return f"GRANT SELECT ON {relation[1]} TO {whom}{where}"
    grant = f"GRANT CONNECT, CREATE ON DATABASE {'...' if database is None else _quoted(database)} TO {whom}"
    return (
        f"{grant}; pg-advisory needs CONNECT alone, and the functions pg_advisory_* that PUBLIC may execute unless "
        "somebody revoked that"
    )


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
