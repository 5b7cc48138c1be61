"""Which backends a matrix has, of which kinds, and which locks are measured on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.matrix import Matrix, expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.reader import Document
from pybench.running.job import read_matrix
from pybench.strategies import ServerKind


def ids(matrix: Matrix) -> list[str]:
    return [cell.id for cell in expand(matrix)]


def written(folder: Path, text: str) -> Path:
    path = folder / "m.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("strategies", "backends", "cells"),
    [
        ("mutex", ["redis"], ["mutex"]),
        ("none", ["redis"], ["none"]),
        ("pg-row", ["postgres"], ["pg-row"]),
        ("layered", ["redis", "postgres"], ["layered"]),
        ("pg-row,mutex", ["redis", "postgres"], ["pg-row", "mutex"]),
        # What asks no server is where the others are.
        ("none,pg-row", ["postgres"], ["none backend=postgres", "pg-row"]),
        ("none,pg-row,mutex", ["redis", "postgres"], ["none", "pg-row", "mutex"]),
    ],
)
def test_where_nothing_is_said_of_servers_there_are_those_that_the_strategies_need(strategies, backends, cells):
    matrix = matrix_from_options(strategy=strategies)
    assert (list(matrix.backends), ids(matrix)) == (backends, cells)
    assert list(matrix.to_dict()["backends"]) == backends


def test_a_strategy_is_measured_on_the_backends_of_its_kind_and_on_no_others():
    mapping = {
        "axes": {"strategy": ["none", "mutex", "pg-row", "layered"]},
        "backends": {"a": {}, "b": {"url": "redis://b.example"}, "c": {"kind": "postgres"}, "pg": {}},
    }
    assert ids(matrix_from_mapping(mapping)) == [
        *("none backend=a", "none backend=b", "mutex backend=a", "mutex backend=b"),
        # The first of each kind, for nothing else is said.
        *("pg-row backend=c", "pg-row backend=pg", "layered backend=a+c"),
    ]
    said = {**mapping, "fixed": {"backend": "b + pg"}}
    assert ids(matrix_from_mapping(said)) == [
        *("none backend=b", "mutex backend=b", "pg-row backend=pg", "layered backend=b+pg")
    ]


def test_the_persistence_of_redis_is_no_axis_of_a_database():
    matrix = matrix_from_options(strategy="mutex,pg-lease,layered", appendfsync="off,always")
    assert [(cell.id, cell.appendfsync) for cell in expand(matrix)] == [
        ("mutex", "off"),
        ("mutex appendfsync=always", "always"),
        ("pg-lease", "none"),
        ("layered", "off"),
        ("layered appendfsync=always", "always"),
    ]
    assert [cell.columns()["appendfsync"] for cell in expand(matrix)] == ["off", "always", "none", "off", "always"]


def test_an_address_replaces_the_backends_of_its_kind_and_no_others(tmp_path):
    text = "axes: {strategy: [mutex, pg-row]}\nbackends: {a: , b: , c: {kind: postgres}}\n"
    path = written(tmp_path, text)
    by_redis = load_matrix(path, redis="redis://h")
    assert [(name, backend.is_given) for name, backend in by_redis.backends.items()] == [("redis", True), ("c", False)]
    by_postgres = load_matrix(path, postgres="postgresql://h/d")
    assert [(name, backend.is_given) for name, backend in by_postgres.backends.items()] == [
        ("a", False),
        ("b", False),
        ("postgres", True),
    ]


def test_an_address_takes_no_name_from_a_backend_of_the_other_kind(tmp_path):
    path = written(tmp_path, "axes: {strategy: [mutex, pg-row]}\nbackends: {postgres: {url: 'redis://h'}, pg: }\n")
    with pytest.raises(InputError) as caught:
        load_matrix(path, postgres="postgresql://h/d")
    assert caught.value.message == "--postgres: the backend postgres of this matrix is not a Postgres server"


def test_one_address_leaves_the_other_kind_to_be_started_where_it_is_needed():
    matrix = matrix_from_options(strategy="mutex,pg-row", postgres="postgresql://me:hunter2@h/d")
    told = matrix.to_dict()["backends"]
    assert told == {
        "redis": {"kind": "redis", "source": "auto"},
        "postgres": {"kind": "postgres", "url": "postgresql://me:***@h/d"},
    }
    assert list(matrix_from_options(strategy="mutex", redis="redis://h").backends) == ["redis"]
    started = matrix_from_options(strategy="mutex,pg-row", redis="redis://h", servers="path").backends
    assert [(backend.kind, backend.source) for backend in started.values()] == [("redis", "auto"), ("postgres", "path")]


def test_the_kind_of_a_backend_is_said_by_its_address_or_its_name():
    mapping = {
        "axes": {"strategy": ["mutex", "pg-row"]},
        "backends": {"a": {"url": "postgres://h"}, "postgresql": {}, "b": {}, "c": {"url": "unix:///s"}},
    }
    matrix = matrix_from_mapping(mapping)
    assert [backend.kind for backend in matrix.backends.values()] == ["postgres", "postgres", "redis", "redis"]
    assert matrix_from_mapping(matrix.to_dict()).backends == matrix.backends


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "axes: {strategy: [pg-row, mutex]}\nbackends: {a: {kind: postgres}}\n",
            "m.yaml:1:27: axes.strategy: mutex needs a Redis server, and backends lists no Redis server; "
            "add redis: {} to backends (pybench starts a server), or pass an address with --redis",
        ),
        (
            "axes: {strategy: [mutex, layered]}\nfixed: {backend: redis}\n",
            "m.yaml:1:26: axes.strategy: layered needs a Redis server and a Postgres server, and backend names "
            "no such server; name a suitable backend, or leave backend out",
        ),
        (
            "include: [{strategy: pg-row, backend: redis}]\n",
            "m.yaml:1:11: include: pg-row needs a Postgres server, and backend names no such server; "
            "name a suitable backend, or leave backend out",
        ),
        (
            "axes: {strategy: layered}\nfixed: {backend: postgres+redis}\n",
            "m.yaml:2:18: fixed.backend: postgres+redis is not a pair of a Redis backend and a Postgres backend; "
            "use this order: redis+postgres",
        ),
        (
            "axes: {strategy: layered}\nfixed: {backend: redis+pg}\n",
            'm.yaml:2:18: fixed.backend: there is no backend "pg"; known: redis, postgres',
        ),
        (
            "axes: {strategy: pg-row}\nbackends: {a: {kind: postgres, url: 'redis://h'}}\n",
            "m.yaml:2:16: the address of this backend is not that of a Postgres server; leave kind out: the address "
            "decides",
        ),
        (
            "axes: {strategy: mutex}\nbackends: {a: {prepare: unnamed}}\n",
            "m.yaml:2:16: prepare is for Postgres servers only; leave prepare out",
        ),
        (
            "axes: {strategy: [pg-row, pg-lease], appendfsync: [off, always]}\n",
            "m.yaml:1:38: appendfsync has no effect, because no cell uses a Redis server; leave appendfsync out; for "
            "locks of a database use their argument synchronous_commit",
        ),
        (
            "axes: {strategy: pg-row}\nbackends: {a: {url: 'postgresql://me:hunter2@h/d?sslmode=require'}}\n",
            "m.yaml:2:21: backends.a.url: postgresql://me:***@h/d?sslmode=require: TLS comes in a later step: "
            "sslmode=require asks for it; give postgresql://[user[:password]@]host[:port]/database or "
            "postgresql:///database?host=/socket/folder; write special characters of a password as %XX",
        ),
        (
            "axes: {strategy: pg-row}\nbackends: {a: {urls: ['postgresql://h/d', 'postgresql://i/d']}}\n",
            "m.yaml:2:22: backends.a.urls: a list of addresses contains a Postgres server; no lock uses several "
            "databases; list each server as a backend of its own",
        ),
    ],
)
def test_what_leaves_a_lock_without_its_kind_of_server_is_told_with_its_line(tmp_path, text, told):
    with pytest.raises(InputError) as caught:
        load_matrix(written(tmp_path, text))
    assert caught.value.message.replace(f"{tmp_path}/", "").splitlines() == [told]


def test_a_password_is_in_no_text_of_a_database_s_address():
    matrix = matrix_from_options(strategy="pg-row", postgres="postgresql://me:hunter2@localhost/shop")
    backend = matrix.backends["postgres"]
    assert "hunter2" not in repr(matrix) + repr(backend) + str(matrix.to_dict())
    assert backend.shown_urls == ("postgresql://me:***@localhost/shop",)


@pytest.mark.parametrize(
    ("strategies", "options", "given"),
    [
        ("mutex,pg-row", {}, {"redis": "redis://env", "postgres": "postgresql://env/d"}),
        ("pg-row", {}, {"postgres": "postgresql://env/d"}),
        ("mutex", {}, {"redis": "redis://env"}),
        ("mutex,pg-row", {"redis": "redis://said"}, {"redis": "redis://said", "postgres": "postgresql://env/d"}),
        ("mutex,pg-row", {"servers": "path"}, {"redis": None, "postgres": None}),
    ],
)
def test_the_environment_names_servers_where_nothing_else_names_any_of_their_kind(
    monkeypatch, strategies, options, given
):
    monkeypatch.setenv("PYBENCH_REDIS_URL", "redis://env")
    monkeypatch.setenv("PYBENCH_POSTGRES_URL", "postgresql://env/d")
    backends = read_matrix(None, **{"strategy": strategies, "redis": None, "postgres": None, **options}).backends
    assert {name: url and url.get_secret_value() for name, url in ((n, b.url) for n, b in backends.items())} == given


def test_the_environment_changes_nothing_of_a_file_that_names_backends(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBENCH_POSTGRES_URL", "postgresql://env/d")
    path = written(tmp_path, "axes: {strategy: [pg-row]}\nbackends: {postgres: }\n")
    assert not read_matrix(path).backends["postgres"].is_given
    assert read_matrix(path, postgres="postgresql://said/d").backends["postgres"].is_given


@pytest.mark.parametrize("backends", ["", "backends: {mine: {url: 'redis://h'}}\n"])
@pytest.mark.parametrize("by_option", [True, False])
def test_a_file_that_names_no_database_is_measured_on_the_one_that_is_named_elsewhere(
    tmp_path, monkeypatch, backends, by_option
):
    path = written(tmp_path, f"axes: {{strategy: [mutex, pg-row]}}\n{backends}")
    read = []
    parse = Document.parse
    monkeypatch.setattr(Document, "parse", lambda *given: read.append(given) or parse(*given))
    if not by_option:
        monkeypatch.setenv("PYBENCH_POSTGRES_URL", "postgresql://me:hunter2@h/d")
    options = {"postgres": "postgresql://me:hunter2@h/d"} if by_option else {}
    matrix = read_matrix(path, None, redis=[], **options)
    assert list(matrix.backends) == ["mine" if backends else "redis", "postgres"]
    assert matrix.backends["postgres"].shown_urls == ("postgresql://me:***@h/d",)
    assert [cell.backend for cell in expand(matrix)] == list(matrix.backends)
    assert len(read) == 1


@pytest.mark.parametrize("address", ["postgresql://h/d", "nonsense", "redis://h"])
def test_an_address_of_the_environment_that_nothing_needs_is_not_looked_at(tmp_path, monkeypatch, address):
    monkeypatch.setenv("PYBENCH_POSTGRES_URL", address)
    path = written(tmp_path, "axes: {strategy: mutex}\nbackends: {mine: }\n")
    assert list(read_matrix(path).backends) == ["mine"]
    assert list(read_matrix(None, strategy="mutex").backends) == ["redis"]
    # A name that a backend of another kind has is its own.
    path = written(tmp_path, "axes: {strategy: mutex}\nbackends: {postgres: {kind: redis}}\n")
    assert not read_matrix(path).backends["postgres"].is_given


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            "redis://:hunter2@h",
            "PYBENCH_POSTGRES_URL: redis://:***@h is not the address of a Postgres server; "
            "pass this address with --redis, or set PYBENCH_REDIS_URL",
        ),
        (
            "postgresql://me:hunter2@h/d?sslmode=require",
            "PYBENCH_POSTGRES_URL: postgresql://me:***@h/d?sslmode=require: TLS comes in a later step: ",
        ),
    ],
)
def test_a_variable_that_is_no_address_is_told_by_its_name(tmp_path, monkeypatch, address, told):
    monkeypatch.setenv("PYBENCH_POSTGRES_URL", address)
    for path in (None, written(tmp_path, "axes: {strategy: pg-row}\nbackends: {mine: }\n")):
        with pytest.raises(InputError) as caught:
            read_matrix(path, None, **({"strategy": "pg-row"} if path is None else {}))
        assert caught.value.message.startswith(told)
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("option", ["redis", "postgres"])
@pytest.mark.parametrize("address", ["", "host=localhost dbname=x", "mysql://me:***@h/d", "localhost:5432"])
def test_what_is_no_address_is_not_taken_for_one_of_redis(option, address):
    with pytest.raises(InputError) as caught:
        matrix_from_options(strategy="mutex,pg-row", **{option: address.replace("***", "hunter2")})
    shown = address.replace("localhost dbname=x", "***")
    forms = "use redis://HOST:PORT or postgresql://HOST/DATABASE"
    meant = "did you mean postgresql://localhost:5432?" if address == "localhost:5432" else forms
    told = f'--{option}: "{shown}" is not an address; {meant}'
    assert caught.value.message == told


@pytest.mark.parametrize("option", ["redis", "postgres"])
def test_a_client_call_that_is_given_as_an_address_shows_its_first_word(option):
    for called, told in (("redis-cli -h 127.0.0.1 -a hunter2", "redis-cli ***"), ("hunter2 -a x", "***")):
        with pytest.raises(InputError) as caught:
            matrix_from_options(strategy="mutex,pg-row", **{option: called})
        assert f'--{option}: "{told}" is not an address' in caught.value.message


def test_an_address_of_the_environment_with_odd_bytes_is_refused_in_words(tmp_path, monkeypatch):
    for address in ("redis://us\udcffer:pw@h", "redis://u:p%ffw@h", "unix:///a\udcff.sock"):
        monkeypatch.setenv("PYBENCH_REDIS_URL", address)
        with pytest.raises(InputError, match=r"PYBENCH_REDIS_URL: .* not UTF-8"):
            read_matrix(None, strategy="mutex")


def test_a_second_database_for_the_same_locks_is_refused():
    with pytest.raises(InputError, match="--postgres: a list of addresses contains a Postgres server"):
        matrix_from_options(strategy="pg-row", postgres=["postgresql://h/d", "postgresql://i/d"])


def test_each_kind_has_one_variable():
    assert [kind.variable for kind in ServerKind] == ["PYBENCH_REDIS_URL", "PYBENCH_POSTGRES_URL"]
