"""How much CPU time the control groups of this process allow, and for how long they stopped it.

Promises: reads both versions of control groups, and every group up to the root, for the least quota of them counts;
what cannot be read limits nothing. The folders are arguments, so that nothing here depends on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup")
MEMBERSHIP: Final = Path("/proc/self/cgroup")

_CONTROLLER = "cpu"


def cpu_quota(root: Path = GROUPS, membership: Path = MEMBERSHIP) -> float | None:
    """The cores' worth of CPU time that this process may use in each period; None: no group limits it."""
    quotas = [quota for group in _groups(root, membership) if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def throttled_us(root: Path = GROUPS, membership: Path = MEMBERSHIP) -> int | None:
    """For how long a quota has stopped processes of our groups until now, in µs; None where none is told."""
    times = [time for group in _groups(root, membership) if (time := _throttled(group)) is not None]
    return max(times, default=None)


def throttled_since_ms(before_us: int | None) -> float | None:
    """For how long a quota stopped processes of our groups since `throttled_us` told `before_us`."""
    now_us = throttled_us()
    return None if before_us is None or now_us is None else max(0, now_us - before_us) / 1000


def quota_sentence(quota: float | None, cores: int | None) -> str | None:
    """What a quota of fewer cores than there are means for a run; None where there is none."""
    if quota is None or (cores is not None and quota >= cores):
        return None
    return (
        f"a quota of the control group allows {quota:g} cores' worth of CPU time: once it is used up, all processes "
        "stop for the rest of the period, and a lock seems to stall"
    )


def _groups(root: Path, membership: Path) -> Iterator[Path]:
    """The folders of our groups, each with those above it. In a container the root may be our group itself."""
    for line in _read(membership).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
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


def _throttled(group: Path) -> int | None:
    for line in _read(group / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if value.isdecimal() and name in ("throttled_usec", "throttled_time"):
            # Version 1 counts nanoseconds.
            return int(value) if name == "throttled_usec" else int(value) // 1000
    return None


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
