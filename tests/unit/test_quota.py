from __future__ import annotations

from pathlib import Path

import pytest

from pybench.quota import Throttled, cpu_quota, throttled


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_max", ".max").replace("_stat", ".stat")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def membership(folder: Path, text: str) -> Path:
    path = folder / "membership"
    path.write_text(text)
    return path


def test_the_least_quota_of_the_groups_above_counts(tmp_path: Path):
    root = tmp_path / "cgroup"
    put(root, a__b__cpu_max="400000 100000\n", a__cpu_max="150000 100000\n", cpu_stat="nr_throttled 0\n")
    assert cpu_quota(root, membership(tmp_path, "0::/a/b\n")) == 1.5


def test_a_group_without_a_quota_limits_nothing(tmp_path: Path):
    root = tmp_path / "cgroup"
    put(root, a__cpu_max="max 100000\n")
    assert cpu_quota(root, membership(tmp_path, "0::/a\n")) is None
    assert cpu_quota(tmp_path / "nowhere", tmp_path / "nothing") is None


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_version_1_has_a_quota_below_the_root(tmp_path: Path, folder: str):
    group = tmp_path / folder / "box"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("50000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (group / "cpu.stat").write_text("nr_periods 9\nnr_throttled 2\nthrottled_time 7000000\n")
    (tmp_path / folder / "cpu.cfs_quota_us").write_text("-1\n")
    own = membership(tmp_path, "11:memory:/box\n4:cpu,cpuacct:/box\n")
    assert cpu_quota(tmp_path, own) == 0.5
    assert throttled(tmp_path, own) == Throttled(2, 7000)


def test_a_container_whose_group_is_its_root_is_found_there(tmp_path: Path):
    root = tmp_path / "cgroup"
    put(root, cpu_max="200000 100000\n", cpu_stat="usage_usec 5\nnr_throttled 3\nthrottled_usec 1234\n")
    own = membership(tmp_path, "0::/../../system.slice/box\n")
    assert cpu_quota(root, own) == 2.0
    assert throttled(root, own) == Throttled(3, 1234)


@pytest.mark.parametrize("text", ["", "max", "x y", "1 0", "1 2 3"])
def test_what_cannot_be_read_limits_nothing(tmp_path: Path, text: str):
    put(tmp_path / "cgroup", cpu_max=text)
    assert cpu_quota(tmp_path / "cgroup", membership(tmp_path, "0::/\n")) is None


def test_without_groups_nothing_is_told_of_any_standstill(tmp_path: Path):
    assert throttled(tmp_path / "nowhere", tmp_path / "nothing") == Throttled()
    assert Throttled().columns() == {"throttled_periods": None, "throttled_ms": None}
