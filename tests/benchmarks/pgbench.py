"""What locks of a database are measured beside: pgbench with the same prepared statements, on the same server."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pybench import _core
from pybench.servers.postgres import (
    PostgresServer,
    binaries,
    drop_schema,
    prepare_schema,
    schema_name,
    start,
    table_name,
)
from pybench.servers.postgres.supervisor import SupervisedPostgres
from tests.benchmarks.references import SECONDS, Figure, figure
from tests.core_trials import MS, trial_spec_of

KEYS = 1_000
SCHEMA = schema_name("0", 0)
TABLE = table_name(SCHEMA)

TRY = "SELECT pg_try_advisory_lock(:k);\nSELECT pg_advisory_unlock(:k);"
BLOCK = "SELECT pg_advisory_lock(:k);\nSELECT pg_advisory_unlock(:k);"
ROW = f"BEGIN;\nSELECT id FROM {TABLE} WHERE id = :k FOR UPDATE;\nCOMMIT;"

NOT_HELD = b"you don't own a lock"
"""Of the warning that an unlock after a failed try brings: that pair locked nothing."""

_CORES: list[int] = []
_STARTED: list[tuple[SupervisedPostgres, PostgresServer]] = []


def keep_to(cores: Sequence[int]) -> None:
    """The cores of the server that `database` is to start; none: any."""
    _CORES[:] = cores


def database() -> PostgresServer:
    """The Postgres of this run, with a table of 1,000 rows; started when first needed."""
    if not _STARTED:
        supervised, server = start("auto", sessions=100, cores=_CORES)
        _STARTED.append((supervised, server))
        with server.session() as session:
            prepare_schema(session, SCHEMA, KEYS)
    return _STARTED[0][1]


def started() -> PostgresServer | None:
    """That one, if it was needed."""
    return _STARTED[0][1] if _STARTED else None


def stop() -> None:
    """Ends what `database` started."""
    while _STARTED:
        supervised, server = _STARTED.pop()
        try:
            with server.session() as session:
                drop_schema(session, SCHEMA)
        finally:
            supervised.stop()


def pgbench(server: PostgresServer, script: str, *, clients: int, keys: int = KEYS) -> Figure:
    """Pairs that locked, of `clients` on one thread, on keys drawn from `keys`."""
    endpoint = server.endpoint
    program = binaries.beside(binaries.find("auto"), "pgbench")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.sql"
        path.write_text(f"\\set k random(0, {keys - 1})\n{script}\n", encoding="utf-8")
        command = [str(program), "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", "2", "-f", str(path)]
        address = ["-h", endpoint.folder or str(endpoint.host), "-p", str(endpoint.port), "-U", endpoint.user]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (Path(folder) / "warnings").open("w+b") as warnings:
            ended = subprocess.run(
                [*command, *address, endpoint.database],
                stdout=subprocess.PIPE,
                stderr=warnings,
                env={**os.environ, "PGPASSWORD": endpoint.password.get_secret_value() if endpoint.password else ""},
                text=True,
                check=True,
            )
            warnings.seek(0)
            failed = warnings.read().count(NOT_HELD)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = re.search(r"transactions actually processed: (\d+)", ended.stdout)
    tps = re.search(r"tps = ([0-9.]+)", ended.stdout)
    assert done is not None and tps is not None, ended.stdout  # noqa: PT018 - one text, two figures in it
    locked = int(done[1]) - failed
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(float(tps[1]) * locked / int(done[1]), cpu_s * 1e6 / locked)


def ours(server: PostgresServer, strategy: str, **fields: Any) -> Figure:  # noqa: ANN401 - any field of a TrialSpec
    """The same of one trial by the core."""
    asked = {
        "strategy": strategy,
        "key_prefix": f"perf:{os.getpid()}:",
        "keys": KEYS,
        "warmup_ns": 200 * MS,
        "duration_ns": round(2 * SECONDS * 1e9),
        "client_name": "pybench-perf",
    }
    return figure(_core.Trial(trial_spec_of([core_spec(server)], **{**asked, **fields})).run())


def core_spec(server: PostgresServer) -> dict[str, Any]:
    """The server as the core takes it, with the settings of a run."""
    return {
        "kind": "postgres",
        **server.core_spec(),
        "table": TABLE,
        "settings": {"lock_timeout": "10000", "client_connection_check_interval": "100"},
        "prepare": "named",
    }
