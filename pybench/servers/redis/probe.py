"""The facts of a Redis server: its product, its version, and the settings that matter to a lock.

Promises: facts or a ServerError within 2 s, whatever listens at the address; changes nothing on the server.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pybench.errors import ServerError
from pybench.notation import visible
from pybench.servers.answered import MOST_OF_VERSION
from pybench.servers.connection import PROBE_S
from pybench.servers.redis.conversation import Conversation, Refusal, fields
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.refusals import refused

CompareAndDelete = Literal["script", "delifeq", "delex"]
Role = Literal["primary", "replica"]

_PRODUCTS = (
    ("valkey", "valkey_version"),
    ("dragonfly", "dragonfly_version"),
    ("garnet", "garnet_version"),
    ("redis", "redis_version"),
)
"""Forks report their own version and the Redis version that they are compatible with, so Redis comes last."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a server reports. None: it does not report them, or this user may not ask."""

    product: str
    version: str
    transport: Literal["unix", "tcp"]
    peer: str | None
    """The numeric address that answered; None for a Unix socket."""
    protocol: Literal[2, 3]
    """The highest version of the protocol."""
    compare_and_delete: CompareAndDelete
    """The native command for it, or `script` where there is none."""
    process_id: int | None
    run_id: str | None
    """Changes with each start of the server."""
    maxclients: int | None
    maxmemory: int | None
    """Bytes; 0 is no limit."""
    maxmemory_policy: str | None
    appendfsync: str | None
    """`off` without an append-only file, otherwise `always`, `everysec` or `no`."""
    io_threads: int | None
    replicas: int | None = None
    """Replicas that follow it now."""
    clients: int | None = None
    """Connections at the time of the probe, with the probe's own."""
    timeout_s: int | None = None
    """Seconds after which it closes a connection that sends nothing; 0: never."""

    @property
    def connections_free(self) -> int | None:
        """How many more connections it takes, after the probe's own is closed."""
        return None if self.maxclients is None else max(0, self.maxclients - max(0, (self.clients or 1) - 1))

    def record(self) -> dict[str, Any]:
        """The facts for a record, without those that differ from start to start."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("process_id", "run_id", "peer", "clients")
        }


def probe(where: Endpoint | str, *, role: Role = "primary", seconds: float = PROBE_S) -> Facts:
    """Connect, log in, ask. Raises InputError for a URL that cannot be read, ServerError for everything else.

    A server with the role of a replica has to follow its primary already.
    """
    endpoint = Endpoint.parse(where) if isinstance(where, str) else where
    with Conversation(endpoint, seconds=seconds) as conversation:
        try:
            conversation.log_in()
            if conversation.ask("PING") != b"PONG":
                raise ServerError(f"{endpoint} answers, but not as Redis does", hint="check the port")
            info = fields(conversation.ask("INFO"))
        except Refusal as refusal:
            raise refused(endpoint, refusal) from None
        _must_be_usable(endpoint, info, role)
        product, version = next(((name, info[field]) for name, field in _PRODUCTS if field in info), ("unknown", "0"))
        config = _config(conversation)
        fsync = "off" if info.get("aof_enabled") == "0" else config.get("appendfsync")
        return Facts(
            product=product,
            version=visible(version.removeprefix("df-").removeprefix("v"))[:MOST_OF_VERSION],
            transport="tcp" if endpoint.unix is None else "unix",
            peer=conversation.peer,
            process_id=_number(info.get("process_id")),
            run_id=info.get("run_id"),
            clients=_number(info.get("connected_clients")),
            maxclients=_number(info.get("maxclients") or config.get("maxclients")),
            maxmemory=_number(info.get("maxmemory")),
            maxmemory_policy=info.get("maxmemory_policy"),
            appendfsync=fsync,
            io_threads=_number(config.get("io-threads")),
            timeout_s=_number(config.get("timeout")),
            replicas=_number(info.get("connected_slaves")),
            # A replica takes no writes, and no lock sends it any.
            compare_and_delete="script" if role == "replica" else _compare_and_delete(conversation),
            protocol=_protocol(conversation),  # The last command: after it the server speaks RESP3.
        )


def _must_be_usable(endpoint: Endpoint, info: dict[str, str], role: Role) -> None:
    if "redis_version" not in info:
        raise ServerError(f"{endpoint} speaks the Redis protocol but does not report a version", hint="check the port")
    mode = info.get("server_mode", info.get("redis_mode", "standalone"))
    if mode in ("cluster", "sentinel"):
        raise ServerError(
            f"{endpoint} runs in {mode} mode, which comes in a later step", hint="give a standalone server"
        )
    if role == "replica":
        if info.get("master_link_status") != "up":
            raise ServerError(f"{endpoint} does not follow its primary", hint="see its log")
    elif info.get("role", "master") != "master":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        raise ServerError(f"{endpoint} is a replica: it takes no locks", hint=f"give its primary, {primary}")


def _config(conversation: Conversation) -> dict[str, str]:
    # One at a time: servers before 7.0 take a single name, and managed ones may refuse the command altogether.
    found: dict[str, str] = {}
    for name in ("appendfsync", "io-threads", "maxclients", "timeout"):
        try:
            answer = conversation.ask("CONFIG", "GET", name)
        except Refusal:
            break
        if isinstance(answer, list) and len(answer) == 2 and isinstance(answer[1], bytes):
            found[name] = answer[1].decode("utf-8", "replace")
    return found


def _compare_and_delete(conversation: Conversation) -> CompareAndDelete:
    # Each command is tried on a key that cannot exist: this user may lack the right, or DELEX may take no condition.
    key = f"pybench:probe:{secrets.token_hex(16)}"
    attempts: tuple[tuple[CompareAndDelete, list[str]], ...] = (
        ("delifeq", ["DELIFEQ", key, "x"]),
        ("delex", ["DELEX", key, "IFEQ", "x"]),
    )
    for name, command in attempts:
        try:
            if conversation.ask(*command) == 0:
                return name
        except Refusal:
            continue
    return "script"


def _protocol(conversation: Conversation) -> Literal[2, 3]:
    try:
        conversation.ask("HELLO", "3")
    except Refusal:
        return 2
    return 3


def _number(text: str | None) -> int | None:
    # A number of more digits is none of a server, and Python refuses to read it.
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
