"""The CPU quota of the control groups of this process, and how long the quota stopped processes.

Promises: both versions of control groups are read, and all groups up to the root, since the smallest quota counts. A
quota that cannot be read counts as no limit. The folders are arguments, so that tests do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

GROUPS: Final = Path("/sys/fs/cgroup")
MEMBERSHIP: Final = Path("/proc/self/cgroup")

_CONTROLLER = "cpu"


class Throttled(NamedTuple):
    """How often and how long a quota stopped processes; None where unknown. Some kernels count only periods."""

    periods: int | None = None
    us: int | None = None

    def columns(self) -> dict[str, float | int | None]:
        """The columns of a trial."""
        return {"throttled_periods": self.periods, "throttled_ms": None if self.us is None else self.us / 1000}


def cpu_quota(root: Path = GROUPS, membership: Path = MEMBERSHIP) -> float | None:
    """The CPU time per period that this process may use, in cores; None without a limit."""
    quotas = [quota for group in _groups(root, membership) if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def throttled(root: Path = GROUPS, membership: Path = MEMBERSHIP) -> Throttled:
    """How often and how long a quota has stopped processes of our groups so far."""
    counts = [_throttled(group) for group in _groups(root, membership)]
    return Throttled(
        max((one.periods for one in counts if one.periods is not None), default=None),
        max((one.us for one in counts if one.us is not None), default=None),
    )


def throttled_since(before: Throttled) -> Throttled:
    """The difference between `throttled` now and `before`."""
    return Throttled(
        *(None if a is None or b is None else max(0, b - a) for a, b in zip(before, throttled(), strict=True))
    )


def binding(quota: float | None, cores: int | None) -> float | None:
    """`quota` where it is below the number of cores; None where it has no effect."""
    return None if quota is None or (cores is not None and quota >= cores) else quota


def quota_sentence(quota: float | None, cores: int | None) -> str | None:
    """A warning about a quota below the number of cores; None without such a quota."""
    effective = binding(quota, cores)
    if effective is None:
        return None
    return (
        f"a quota of the control group allows the CPU time of {effective:g} cores: once it is used up, all processes "
        "stop for the rest of the period, and locks seem to stall"
    )


def _groups(root: Path, membership: Path) -> Iterator[Path]:
    """The folders of our groups and of their parents. In a container the root may be our own group."""
    for line in _read(membership).splitlines():
        number, _, location = line.partition(":")
        controllers, _, path = location.partition(":")
        if number == "0" and not controllers:
            tops = [root, root / "unified"]
        elif _CONTROLLER in controllers.split(","):
            tops = [root / controllers, root / _CONTROLLER]
        else:
            continue
        for top in filter(Path.is_dir, tops):
            parts = [part for part in path.split("/") if part not in ("", ".", "..")]
            for length in range(len(parts), -1, -1):
                yield top.joinpath(*parts[:length])


def _quota(group: Path) -> float | None:
    with suppress(ValueError, ZeroDivisionError):
        allowed, period = _read(group / "cpu.max").split()
        return None if allowed == "max" else int(allowed) / int(period)
    with suppress(ValueError, ZeroDivisionError):
        allowed_us = int(_read(group / "cpu.cfs_quota_us"))
        return allowed_us / int(_read(group / "cpu.cfs_period_us")) if allowed_us > 0 else None
    return None


def _throttled(group: Path) -> Throttled:
    counters = {
        name: int(value)
        for name, _, value in (line.partition(" ") for line in _read(group / "cpu.stat").splitlines())
        if value.isdecimal()
    }
    # Version 1 counts nanoseconds.
    older_us = counters["throttled_time"] // 1000 if "throttled_time" in counters else None
    return Throttled(counters.get("nr_throttled"), counters.get("throttled_usec", older_us))


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
