"""The machine that a run is measured on, as far as it influences the figures, and so without its name."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from pybench.quota import cpu_quota

_CPUINFO = Path("/proc/cpuinfo")
_PRODUCT = Path("/sys/class/dmi/id/product_name")
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, kernel and whether it is a virtual machine; a fact that cannot be read is None."""
    cpuinfo = read_cpuinfo()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(cpuinfo) or platform.processor() or None,
        "cores": os.cpu_count(),
        "cores_allowed": cores_allowed(),
        "cpu_quota": cpu_quota(),
        "memory_bytes": _memory_bytes(),
        "virtualisation": virtualisation(cpuinfo, _read(_PRODUCT).strip()),
        "container": any(mark.exists() for mark in _CONTAINER_MARKS),
    }


def read_cpuinfo() -> str:
    """The text of `/proc/cpuinfo`; empty where it does not exist."""
    return _read(_CPUINFO)


def cpu_model(cpuinfo: str) -> str | None:
    """The name of the processor in the text of `/proc/cpuinfo`."""
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else None


def virtualisation(cpuinfo: str, product: str) -> str | None:
    """The name of the virtual machine's product, or just "hypervisor"; None where nothing hints at one."""
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        return product or "hypervisor"
    return None


def cores_allowed() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _memory_bytes() -> int | None:
    with suppress(ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
