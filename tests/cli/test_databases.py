"""`pybench run` with Postgres locks, alone and beside Redis locks."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from command_line import COMMAND, QUICK, Pybench, environment

from pybench.records import load
from pybench.servers import ServerPool
from pybench.servers.postgres import binaries, supervisor
from pybench.servers.postgres.supervisor import SupervisedPostgres
from pybench.servers.processes import ProcessId

MIXED = ["-s", "mutex", "-s", "pg-row", "-s", "layered", "--concurrency", "4", *QUICK]


@pytest.fixture(scope="module")
def database() -> Iterator[SupervisedPostgres]:
    """A user's own database: on loopback, with a password."""
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield process
    process.stop()


def url_of(database: SupervisedPostgres) -> str:
    endpoint = database.endpoint
    assert endpoint.password is not None
    return f"postgresql://{endpoint.user}:{endpoint.password.get_secret_value()}@127.0.0.1:{endpoint.port}/postgres"


def schemas_of(database: SupervisedPostgres) -> list[str]:
    """The schemas that runs created there."""
    with ServerPool() as pool, pool.postgres(Given(url_of(database))).session() as session:
        return [name for (name,) in session.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pybench%'")]


def test_each_lock_is_measured_on_its_kind_of_server_and_both_are_started(pybench: Pybench, tmp_path: Path):
    answer = pybench("run", *MIXED, "-s", "pg-optimistic(synchronous_commit=off)", "--out", "folder")
    assert answer.code == 0, answer.err
    run = load(tmp_path / "folder")
    assert dict(zip(run.trials["strategy"], run.trials["backend"], strict=True)) == {
        "mutex": "redis",
        "pg-row": "postgres",
        "layered": "redis+postgres",
        "pg-optimistic": "postgres",
    }
    assert set(run.trials["verdict"]) == {"SAFE"}
    assert (run.trials["server_cpu_us_per_grant"] > 0).all()
    products = [server["product"] for server in run.manifest["servers"]]
    assert sorted(products)[0] == "postgres"
    assert len(products) == 2
    controls = [control for control in run.manifest["control"] if "kind" not in control]
    assert {control["backend"]: control["caught"] for control in controls} == {"redis": True, "postgres": True}
    planted = {control["backend"] for control in run.manifest["control"] if "kind" in control}
    assert planted == {"redis", "postgres", "redis+postgres"}
    assert all(control["caught"] for control in run.manifest["control"])
    settings = [(entry["backend"], entry["appendfsync"]) for entry in run.manifest["baseline"]]
    assert sorted(settings) == [("postgres", "none"), ("redis", "off")]
    assert all(entry["round_trip_us"] > 0 for entry in run.manifest["baseline"])
    told = dict(zip(run.trials["strategy"], run.trials["database_figures"], strict=True))
    assert not isinstance(told["mutex"], str)
    assert json.loads(told["layered"])["commits"] > 0
    counted = dict(zip(run.trials["strategy"], run.trials["commandstats"], strict=True))
    assert not isinstance(counted["pg-row"], str)
    assert "set" in json.loads(counted["layered"])


def test_a_database_that_was_given_keeps_nothing_of_the_run_nor_its_password(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    url = url_of(database)
    answer = pybench("run", "-s", "pg-lease", "-s", "pg-advisory", *QUICK, "--postgres", url, "--out", "folder")
    assert answer.code == 0, answer.err
    assert ProcessId.of(database.pid) is not None
    with ServerPool() as pool, pool.postgres(Given(url)).session() as session:
        locks = session.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert (schemas_of(database), locks) == ([], (0,))
    assert database.endpoint.password is not None
    secret = database.endpoint.password.get_secret_value()
    for file in (tmp_path / "folder").iterdir():
        assert secret.encode() not in (file.read_bytes() if file.is_file() else b""), file
    assert secret not in answer.out + answer.err


def test_a_run_on_a_given_database_is_resumed_when_its_address_is_given_again(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    url = url_of(database)
    pybench("run", "-s", "pg-advisory", "-s", "mutex", *QUICK, "--postgres", url, "--out", "folder")
    path = tmp_path / "folder" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))
    refused = pybench("run", "--resume", "folder")
    assert refused.code == 40
    assert "--postgres postgresql://pybench:PASSWORD@127.0.0.1" in refused.err
    assert pybench("run", "--resume", "folder", PYBENCH_POSTGRES_URL=url).code == 0


@pytest.mark.parametrize("by_option", [True, False])
def test_a_file_that_names_a_redis_only_takes_its_database_from_elsewhere(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path, by_option: bool
):
    (tmp_path / "m.yaml").write_text("backends: {mine: }\naxes: {strategy: [mutex, pg-row]}\n")
    url = url_of(database)
    said, variables = (["--postgres", url], {}) if by_option else ([], {"PYBENCH_POSTGRES_URL": url})
    answer = pybench("run", "m.yaml", *QUICK, *said, "--out", "folder", **variables)
    assert answer.code == 0, answer.err
    run = load(tmp_path / "folder")
    assert dict(zip(run.trials["strategy"], run.trials["backend"], strict=True)) == {
        "mutex": "mine",
        "pg-row": "postgres",
    }
    addresses = {server["product"]: server["address"] for server in run.manifest["servers"]}
    assert addresses["postgres"] == f"postgresql://127.0.0.1:{database.endpoint.port}/postgres"


def test_the_schema_of_a_run_that_was_killed_is_dropped_by_the_next(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    options = ["--postgres", url_of(database), "--warmup", "0", "--trials", "1"]
    long = [*COMMAND, "run", "-s", "pg-row", "--concurrency", "4", "--duration", "60s", *options]
    with subprocess.Popen(long, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL) as killed:
        left = schemas_of(database)
        while not left and killed.poll() is None:
            time.sleep(0.05)
            left = schemas_of(database)
        killed.kill()
    assert len(left) == 1, "it was killed in the middle of its trial"
    answer = pybench("run", "-s", "pg-row", "--duration", "100ms", *options)
    assert answer.code == 0, answer.err
    assert f"dropped a schema of a killed run: {left[0]}" in answer.err.replace("\n", " ")
    assert schemas_of(database) == []


def in_its_trial(arguments: Sequence[str], where: Path, database: SupervisedPostgres) -> subprocess.Popen[str]:
    """The command during its first trial, after table and sessions were created."""
    command = [*COMMAND, "run", *arguments]
    process = subprocess.Popen(command, cwd=where, env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
    deadline = time.monotonic() + 20
    while not sessions_of(database):
        assert process.poll() is None, "it runs"
        assert time.monotonic() < deadline, "the trial begins"
        time.sleep(0.02)
    return process


def sessions_of(database: SupervisedPostgres) -> int:
    """The number of sessions of trials with a table; the control has no table."""
    like = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pybench%'"
    with ServerPool() as pool, pool.postgres(Given(url_of(database))).session() as session:
        query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name IN ({like})"
        return int(session.execute(query).fetchone()[0])


LONG = ["-s", "pg-row", "--concurrency", "4", "--hold", "5ms", "--warmup", "0", "--duration", "1s", "--trials", "3"]


def test_ctrl_c_ends_the_sessions_of_its_trial_and_drops_its_table(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    asked = [*LONG, "--hold", "20s", "--duration", "25s", "--postgres", url_of(database), "--out", "folder"]
    process = in_its_trial(asked, tmp_path, database)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert (schemas_of(database), sessions_of(database)) == ([], 0)
    assert load(tmp_path / "folder").manifest["status"] == "interrupted"
    assert (tmp_path / "folder" / "report.html").exists()


@pytest.mark.slow
def test_a_killed_run_on_a_given_database_is_resumed_and_drops_its_left_overs(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    url = url_of(database)
    process = in_its_trial([*LONG, "--postgres", url, "--out", "folder"], tmp_path, database)
    process.kill()
    process.communicate()
    [left] = schemas_of(database)
    answer = pybench("run", "--resume", "folder", PYBENCH_POSTGRES_URL=url)
    assert answer.code == 0, answer.err
    run = load(tmp_path / "folder")
    assert run.manifest["status"] == "complete"
    assert list(run.trials["status"]) == ["complete"] * 3
    assert set(run.trials["verdict"]) == {"SAFE"}
    assert schemas_of(database) == []
    assert left


def test_a_wrong_password_is_refused_and_written_nowhere(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    wrong = "s3cret-but-wr0ng"
    assert database.endpoint.password is not None
    url = url_of(database).replace(database.endpoint.password.get_secret_value(), wrong)
    answer = pybench("run", "-s", "pg-lease", *QUICK, "--postgres", url, "--out", "folder")
    assert answer.code == 41
    assert "refuses this user and password" in answer.err.replace("\n", " ")
    assert wrong not in answer.out + answer.err
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or wrong.encode() not in file.read_bytes(), file


def test_a_user_who_may_create_nothing_measures_the_locks_that_need_no_table(
    pybench: Pybench, database: SupervisedPostgres, tmp_path: Path
):
    with ServerPool() as pool, pool.postgres(Given(url_of(database))).session() as session:
        session.execute("CREATE ROLE bare LOGIN PASSWORD 'b4re'")
    url = f"postgresql://bare:b4re@127.0.0.1:{database.endpoint.port}/postgres"
    answer = pybench("run", "-s", "pg-advisory", "-s", "pg-row", *QUICK, "--postgres", url, "--out", "folder")
    assert answer.code == 0, answer.err
    assert 'may not create a schema; GRANT CREATE ON DATABASE "postgres" TO "bare"' in " ".join(answer.err.split())
    trials = load(tmp_path / "folder").trials
    assert (set(trials["strategy"]), set(trials["verdict"])) == ({"pg-advisory"}, {"SAFE"})
    assert "bare create schemas" in " ".join(pybench("doctor", "--postgres", url).out.split())


def test_clients_that_share_a_session_are_unsafe_and_break_no_promise(pybench: Pybench, tmp_path: Path):
    lock = "pg-advisory(session=shared, wait=try)"
    answer = pybench("run", "-s", lock, "--concurrency", "8", "--hold", "1ms", *QUICK, "--out", "folder")
    assert answer.code == 0, answer.err
    assert "UNSAFE" in answer.out
    (verdict,) = load(tmp_path / "folder").trials["verdict"]
    assert verdict == "UNSAFE"


class Given:
    """A backend of one given database."""

    def __init__(self, url: str) -> None:
        from pydantic import SecretStr

        self.urls = (SecretStr(url),)

    name = "given"
    source = "auto"
