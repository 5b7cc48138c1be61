"""No output of any command shows a password: not the terminal, not an error, not a file of the run's folder."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pyarrow.parquet
import pytest
from command_line import QUICK, GivenServer
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from pybench.cli.line import answer
from pybench.servers import postgres
from pybench.servers.postgres import PostgresServer
from pybench.servers.redis.endpoint import Endpoint
from tests.redis_client import connect

BEGINS, ENDS = "Qx7bq", "zW9kv"
"""Two pieces of every password here, which nothing else contains."""

NASTY = f"{BEGINS}://@/?#&db=1%41 '\"\\,:;{ENDS}"


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    supervised, server = postgres.start("auto", sessions=60)
    yield server
    supervised.stop()


def with_password(given_server: GivenServer, database: PostgresServer, password: str) -> tuple[str, str]:
    """The addresses of both servers for a user who has `password`."""
    with connect(given_server.process.endpoint) as client:
        client.execute_command("ACL", "SETUSER", "ann", "reset", "on", "~*", "&*", "+@all", f">{password}")
    with psycopg.connect(
        host=database.endpoint.host or database.endpoint.folder,
        port=database.endpoint.port,
        user=database.endpoint.user,
        password=database.endpoint.password.get_secret_value() if database.endpoint.password else "",
        dbname=database.endpoint.database,
        autocommit=True,
    ) as session:
        session.execute("DROP ROLE IF EXISTS ann")
        session.execute(sql.SQL("CREATE ROLE ann SUPERUSER LOGIN PASSWORD {}").format(password))
    encoded = quote(password, safe="")
    place = database.endpoint
    where = (
        f"/{place.database}?host={quote(place.folder)}&port={place.port}&"
        if place.folder
        else (f"{place.host}:{place.port}/{place.database}?")
    )
    here = given_server.process.endpoint
    return (
        f"redis://ann:{encoded}@{here.host}:{here.port}/0",
        f"postgresql://{where}user=ann&p%61ssword={encoded}",
    )


def has_secret(text: str) -> bool:
    return BEGINS in text or ENDS in text


def texts_of(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                yield path, str(pyarrow.parquet.read_table(path).to_pylist())


def test_no_file_of_a_run_and_no_output_holds_a_password(
    given_server: GivenServer, database: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    redis, database_url = with_password(given_server, database, NASTY)
    file = tmp_path / "shop.yaml"
    file.write_text(
        f"# was {redis}\nname: shop\naxes: {{strategy: [mutex, pg-advisory]}}\n"
        f"backends:\n  a: {{url: {json.dumps(redis)}}}\n  pg: {{url: {json.dumps(database_url)}}}\n"
    )
    folder = str(tmp_path / "folder")
    command = ["run", str(file), f"--redis={redis}", "--postgres", database_url, *QUICK, "--out", folder]
    monkeypatch.setattr(sys, "argv", ["pybench", *command])
    said = [said_by(*command), said_by("plan", str(file), "--json"), said_by("report", folder)]
    assert not [text for text in said if has_secret(text)]
    kept = list(texts_of(tmp_path / "folder"))
    assert {"manifest.json", "report.html", "report.md", "trials.parquet"} <= {path.name for path, _ in kept}
    assert not [path for path, text in kept if has_secret(text)]


def said_by(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        answer(list(arguments))
    return out.getvalue() + err.getvalue()


JUNK = st.text(st.sampled_from("/:@?#&=%;,[]{}()'\"\\ +$!~*aZ1é"), max_size=5)
PLACES = (
    *("redis://:{}@127.0.0.1:1", "redis://u:{}@a..b", "postgresql://u:{}@127.0.0.1:1/db", "redis://:{}@h:port"),
    *("redis://127.0.0.1:1?p%61ssword={}", "postgresql://127.0.0.1:1/db?p%61ssword={}", "rediss://u:{}@h", "u:{}@h"),
    *("redis-cli -h 127.0.0.1 -a {}", "unix:///nowhere?db=0;password={}", "redis://127.0.0.1:1/0;password={}"),
    *(
        "postgresql://u@127.0.0.1:1/db?user=v;password={}",
        "postgresql://127.0.0.1:1/db%3Fpassword={}",
        "redis://:{}%ff@h",
    ),
    *("redis://{}@127.0.0.1:1", "redis://127.0.0.1:1?username={}", "u%3A{}@h", "postgresql://u%3A{}@127.0.0.1:1/db"),
)


COMMANDS = (
    *(("plan", "-s", "mutex", "--redis"), ("run", "-s", "pg-row", "--postgres"), ("plan",), ("run", "-s"), ("report",)),
    *(("run", "--resume"), ("run", "-s", "mutex", "--rediss"), ("plan", "-s", "mutex", "--keys"), ("doctor", "x")),
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@example(junk="@", place="redis://127.0.0.1:1?username={}", is_quoted=False, before=("plan",))
@example(junk="&", place="unix:///nowhere?db=0;password={}", is_quoted=False, before=("run", "--resume"))
@given(
    junk=JUNK,
    place=st.sampled_from(PLACES),
    is_quoted=st.booleans(),
    before=st.sampled_from(COMMANDS),
)
def test_no_error_shows_a_password_wherever_its_address_was_put(
    junk: str, place: str, is_quoted: bool, before: tuple[str, ...]
):
    password = f"{BEGINS}{junk}{ENDS}"
    # The text before a colon is the user, even if the user meant it as a part of the password.
    assume(is_quoted or ":" not in junk or "://{}@" not in place)
    assert not has_secret(said_by(*before, place.format(quote(password, safe="") if is_quoted else password)))


@pytest.mark.parametrize(
    "text",
    [
        "redis://:{}@h\n",
        "backends: redis://:{}@h\naxes: {{strategy: [mutex]}}\n",
        "backends: {{redis: redis://:{}@h}}\naxes: {{strategy: [mutex]}}\n",
        "backends: {{'redis://:{}@h': {{}}}}\naxes: {{strategy: [mutex]}}\n",
        "redis://:{}@h: 1\naxes: {{strategy: ['redis://:{}@h']}}\n",
        "backends: {{a: {{url: 'redis://:{}@h', urls: ['redis://:{}@h']}}}}\naxes: {{strategy: [mutex]}}\n",
        "name: 'redis://:{}@h'\nseed: 'redis://:{}@h'\naxes: {{strategy: [mutex]}}\nthresholds: ['redis://:{}@h']\n",
    ],
)
@pytest.mark.parametrize("password", [f"{BEGINS}{ENDS}", f"{BEGINS}://{ENDS}"])
def test_no_error_of_a_matrix_shows_a_password(tmp_path: Path, text: str, password: str):
    file = tmp_path / "m.yaml"
    file.write_text(text.replace("{}", password).replace("{{", "{").replace("}}", "}"))
    said = said_by("plan", str(file))
    assert "error" in said
    assert not has_secret(said)


def test_a_bug_shows_no_password_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    url = f"redis://:{BEGINS}://{ENDS}@127.0.0.1:1"
    monkeypatch.setenv("PYBENCH_REDIS_URL", url)

    def fails(_: object) -> None:
        raise RuntimeError(f"with {BEGINS}://{ENDS} and {url}")

    monkeypatch.setattr(Endpoint, "parse", fails)
    said = said_by("plan", "-s", "mutex")
    assert "This is a bug in pybench" in said
    assert not has_secret(said)
