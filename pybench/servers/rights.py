"""The rights that a user of a given server needs for a run, as `docs/troubleshooting.md` lists them.

Promises: a Redis user with exactly the rights of a strategy measures it; a test does so with each strategy.
Does not do: asking a server for the rights of a user; a run finds out by using each lock once.
"""

from __future__ import annotations

import re

CONTROL = ("ping", "info", "hello", "scan", "unlink")
"""What a run asks of every Redis server beside its locks: what it is, what it spent, and the removal of keys."""

SCRIPTS = ("eval", "evalsha", "script|load")

IDLE_CALL = ("set", "get", "del")
"""A run measures one idle call by a `mutex`, except where its only lock is `naive`."""

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
"""What the lock of each strategy sends, and its scripts call, beyond scripts themselves and the idle call."""


def redis_rights(strategy: str) -> str:
    """The ACL rules that a user of Redis or Valkey needs to measure `strategy`, as ACL SETUSER takes them."""
    own = COMMANDS.get(strategy, ())
    commands = (*CONTROL, *own) if strategy == "naive" else (*CONTROL, *SCRIPTS, *IDLE_CALL, *own)
    channels = " &pybench:*" if "subscribe" in own else ""
    return f"~pybench:*{channels} {' '.join(f'+{command}' for command in commands)}"


def redis_hint(strategy: str | None, user: str = "NAME") -> str:
    """What to type so that `user` of a Redis may do what `strategy` needs; None: what every run asks."""
    if strategy is None:
        commands = " ".join(f"+{command}" for command in CONTROL)
        return f"ACL SETUSER {user} {commands} (docs/troubleshooting.md lists all rights)"
    return f"ACL SETUSER {user} {redis_rights(strategy)}"


def lacks_right(code: str, text: str) -> bool:
    """Whether a server said by this error, in `text`, that its user lacks a right."""
    return code in ("NOPERM", NO_PRIVILEGE) or any(words in text for words in _REFUSED_IN_SCRIPTS)


NO_PRIVILEGE = "42501"
"""The SQLSTATE of it."""

_REFUSED_IN_SCRIPTS = ("ACL failure in script", "The user executing the script can't")
"""What Redis 7.2 and later, and those before, say of a command that a script may not call: their code is ERR."""


def postgres_hint(text: str, *, database: str | None = None, user: str | None = None) -> str:
    """What to type so that `user` may do what `text`, in the words of Postgres, says is refused."""
    whom = "..." if user is None else _quoted(user)
    where = "" if database is None else f", in the database {_quoted(database)}"
    if function := re.search(r"permission denied for function (\w+)", text):
        name = function[1]
        # Others of the same name take two numbers, so that the name alone would not do.
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
