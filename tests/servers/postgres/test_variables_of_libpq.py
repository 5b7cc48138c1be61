"""What the environment says to libpq is meant for other programs: pybench's own Postgres must start and answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench.servers import postgres
from pybench.servers.postgres import PostgresServer, probe

VARIABLES = {
    "PGSERVICE": "no-such-service",
    "PGSERVICEFILE": "/nowhere",
    "PGSYSCONFDIR": "/nowhere",
    "PGHOST": "127.0.0.2",
    "PGHOSTADDR": "127.0.0.2",
    "PGPORT": "1",
    "PGDATABASE": "no-such-database",
    "PGUSER": "nobody-there",
    "PGPASSWORD": "wrong",
    "PGPASSFILE": "/nowhere",
    "PGREQUIREPEER": "somebody-else",
    "PGREQUIREAUTH": "gss",
    "PGCHANNELBINDING": "require",
    "PGSSLMODE": "verify-full",
    "PGREQUIRESSL": "1",
    "PGSSLCERTMODE": "require",
    "PGSSLNEGOTIATION": "direct",
    "PGSSLMINPROTOCOLVERSION": "TLSv9",
    "PGSSLROOTCERT": "/nowhere",
    "PGGSSENCMODE": "require",
    "PGOPTIONS": "-c no_such_setting=1",
    "PGTZ": "No/Where",
    "PGDATESTYLE": "no style",
    "PGGEQO": "perhaps",
    "PGCLIENTENCODING": "NO_CODE",
    "PGCONNECT_TIMEOUT": "soon",
    "PGTARGETSESSIONATTRS": "read-only",
    "PGLOADBALANCEHOSTS": "sometimes",
    "PGAPPNAME": "x" * 100,
    "PGMINPROTOCOLVERSION": "9.9",
    "PGMAXPROTOCOLVERSION": "1.0",
    "PGDATA": "/nowhere",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_running_server_answers_whatever_a_variable_says(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv(name, VARIABLES[name])
    assert probe(server.endpoint).version == server.version
    assert os.environ[name] == VARIABLES[name]


def test_a_server_starts_whatever_all_variables_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    supervised, server = postgres.start("auto", sessions=0)
    try:
        with server.session() as session:
            assert session.execute("SHOW timezone").fetchone() != ("No/Where",)
    finally:
        supervised.stop()
    assert os.environ["PGSERVICE"] == "no-such-service"
