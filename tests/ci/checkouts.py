"""Checkouts of this project for a job, and environments as `make build` would leave them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

from tools.workflows import ROOT


def files() -> list[str]:
    """What git would check out, uncommitted changes included."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def check_out(place: Path) -> Path:
    """A clean checkout of this project at `place`: a repository, as the runner's is."""
    for name in files():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(place), *command], check=True)
    return place


def built(place: Path, gate: Sequence[str] = ()) -> Path:
    """A checkout at `place` as `make build` leaves it: the core, and an environment with the packages of this one."""
    check_out(place)
    core = next((ROOT / "pybench").glob("_core*.so"))
    shutil.copy2(core, place / "pybench" / core.name)
    environment(place / ".venv", place, gate=gate)
    return place


def environment(place: Path, source: Path, gate: Sequence[str] = ()) -> Path:
    """A virtual environment with the packages of this one and the pybench of the folder `source`.

    To install the packages again would take a minute and change nothing. The options `gate` end each command line of
    `pybench gate`: the scripts of a workflow name none that would make it short.
    """
    venv.create(place, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    paths = [str(source), *(path for path in sys.path if path.endswith("-packages"))]
    (packages / "these.pth").write_text("".join(f"{path}\n" for path in paths))
    command = place / "bin" / "pybench"
    command.write_text(COMMAND.format(python=place / "bin" / "python", gate=list(gate)))
    command.chmod(0o755)
    return place


COMMAND = """\
#!{python}
import sys
from pybench.cli import main
if sys.argv[1:2] == ["gate"]:
    sys.argv += {gate}
sys.exit(main())
"""
