"""A resource in Redis that compares fences: it remembers the highest one, and refuses a write with a lower one.

The comparison and the write are one step. This is what Kleppmann asks of the storage behind a lock.
"""

from __future__ import annotations

from typing import Final

KEPT_S: Final = 86_400

CHECKED: Final = """
local highest = tonumber(redis.call('GET', KEYS[2]) or '-1')
if tonumber(ARGV[1]) < highest then return 'stale' end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[4])
local after = redis.call(ARGV[2], KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return after
"""
"""KEYS: the value, the highest fence. ARGV: the fence, SET or DECRBY, its argument, how long both are kept."""
STALE: Final = b"stale"
"""The reply to a write that was refused."""
REFUSED: Final = "Write refused: a higher fence was seen"
"""The error of a client whose write was refused."""


def checked_write(value: str, fence: int, command: str, argument: int) -> tuple[str, ...]:
    """The words of the command that carries out `command` on the key `value` unless a higher fence was seen there."""
    return ("EVAL", CHECKED, "2", value, f"{value}:fence", str(fence), command, str(argument), str(KEPT_S))
