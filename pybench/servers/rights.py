"""The rights that a user of a given server needs for a run, as `docs/troubleshooting.md` lists them.

Promises: a Redis user with exactly the rights of a strategy measures it; a test does so with each strategy.
Does not do: asking a server for the rights of a user; a run finds out by using each lock once.
"""

from __future__ import annotations

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


def redis_hint(strategy: str | None) -> str:
    """What to type so that a user of Redis may do what `strategy` needs."""
    if strategy is None:
        return f"allow {', '.join(command.upper() for command in CONTROL)} (docs/troubleshooting.md lists all rights)"
    return f"ACL SETUSER NAME {redis_rights(strategy)}"


POSTGRES_HINT = (
    "GRANT CONNECT, CREATE ON DATABASE ... TO ...; pg-advisory needs CONNECT alone, and the functions pg_advisory_* "
    "that PUBLIC may execute unless somebody revoked that"
)
