"""Locks broken on purpose: one exact change of a copy of the core's sources, built, beside a copy of the package.

Promises: a change whose text is not found exactly once is an error, so that no mutant quietly becomes an honest lock.
The copy and its build stay in `target/mutants`, where the next build goes on; the repository's own core is not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "target" / "mutants"
SOURCES = PLACE / "sources"
BUILT = PLACE / "target" / "release" / "lib_core.so"
PACKAGE = PLACE / "package"


@dataclass(frozen=True)
class Mutation:
    """What is changed in the core."""

    path: str
    """Of a source file, below `rust_core`."""
    old: str
    new: str


def copy_sources() -> None:
    """The core as it is, without a change. All files are new for Cargo, which goes by their times."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    SOURCES.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, SOURCES / name)
    shutil.copytree(ROOT / "rust_core", SOURCES / "rust_core", copy_function=shutil.copyfile)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    no_core = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "pybench", PACKAGE / "pybench", ignore=no_core)


def build(mutation: Mutation) -> Path:
    """Where Python finds a package whose core has this one change. The sources are then as they were."""
    source = SOURCES / "rust_core" / mutation.path
    before = source.read_text(encoding="utf-8")
    found = before.count(mutation.old)
    assert found == 1, f"{mutation.path} has the text to change {found} times, and must have it once: {mutation.old}"
    source.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        _build()
    finally:
        source.write_text(before, encoding="utf-8")
    # A new file in place of the old one: a process may still have that mapped.
    core = PACKAGE / "pybench" / "_core.abi3.so"
    core.unlink(missing_ok=True)
    shutil.copyfile(BUILT, core)
    return PACKAGE


def _build() -> None:
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "pybench-core"]
    # As maturin says it: without, an extension module is linked against one libpython.
    variables = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    environment = {**os.environ, **variables, "CARGO_TARGET_DIR": str(PLACE / "target")}
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the mutant does not build: {done.stderr}"
