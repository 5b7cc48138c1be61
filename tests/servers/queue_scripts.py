"""The scripts of `fair-queue` as its tests on real servers call them."""

from __future__ import annotations

from pathlib import Path

import redis

LUA = Path(__file__).parents[2] / "rust_core" / "locks" / "src" / "lua"
# Hours, so that nothing ends by itself on a busy machine: `Queue.pass_ms` lets time pass.
LEASE_MS = 5_000_000
ALIVE_MS = 3_000_000
TAKEN, WAITS, PLACED, TURNED_AWAY = 0, 1, 2, -1
TOKEN_LENGTH = 32


# Redis deletes a key whose end it is told to be over, as it does when it finds the end passed.
PASS = """
for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if left >= 0 then
        redis.call('PEXPIRE', key, left - tonumber(ARGV[1]))
    end
end
"""


class Queue:
    """The scripts of `fair-queue` for one lock. Tokens are of one length: here names, filled up."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.keys = ["lock{1}", *(f"lock{{1}}:{suffix}" for suffix in ("queue", "place", "bell", "next"))]
        self.take_script = client.register_script((LUA / "queue_take.lua").read_text(encoding="utf-8"))
        self.confirm_script = client.register_script((LUA / "queue_confirm.lua").read_text(encoding="utf-8"))
        self.leave_script = client.register_script((LUA / "queue_leave.lua").read_text(encoding="utf-8"))

    def take(self, name: str, lease_ms: int = LEASE_MS, alive_ms: int = ALIVE_MS) -> int:
        return self.take_script(self.keys, [token(name), lease_ms, alive_ms])

    def confirm(self, name: str, lease_ms: int = LEASE_MS, *, wants_heir: bool = True) -> int | str:
        """What the script answers, an heir by its name."""
        answer = self.confirm_script(self.keys, [token(name), lease_ms, int(wants_heir)])
        return answer if isinstance(answer, int) else named(answer)

    def leave(self, name: str, lasts_ms: int = LEASE_MS, *, listens: bool = False) -> int:
        return self.leave_script(self.keys, [token(name), lasts_ms, int(listens)])

    def give(self, name: str, heir: str) -> bool:
        """What a holder does who knows its heir; whether he is rung."""
        try:
            return self.client.rename(self.key("next", name), self.key("bell", heir))
        except redis.ResponseError as error:
            if str(error) != "no such key":
                raise
            return False

    def pass_ms(self, ms: int) -> None:
        """Let every key end that much sooner, all at once."""
        self.client.eval(PASS, 0, ms)

    def holder(self) -> str | None:
        held = self.client.get("lock{1}")
        return None if held is None else named(held[:TOKEN_LENGTH])

    def waiters(self) -> list[str]:
        return [named(waiter) for waiter in self.client.zrange("lock{1}:queue", 0, -1)]

    def ttl(self, suffix: str, name: str) -> int:
        return self.client.pttl(self.key(suffix, name))

    def ring(self, name: str) -> bool:
        """Whether the bell of `name` rang; it is silent afterwards."""
        return self.client.lpop(self.key("bell", name)) is not None

    def key(self, suffix: str, name: str) -> str:
        return f"lock{{1}}:{suffix}:{token(name)}"


def token(name: str) -> str:
    return name.ljust(TOKEN_LENGTH, "-")


def named(token: bytes) -> str:
    return token.decode().rstrip("-")
