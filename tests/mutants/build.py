"""Builds the core with the feature `mutants`, beside a copy of the package.

Promises: the repository's own core is not touched. The build stays in `target/mutants`, where the next one goes on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "target" / "mutants"
BUILT = PLACE / "target" / "release" / "lib_core.so"
PACKAGE = PLACE / "package"

SOURCE = ROOT / "rust_core" / "locks" / "src" / "mutants.rs"
QUICK = {
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
}
"""Nobody measures with this core, and so it is built in a quarter of the time."""

CHOOSER = "PYBENCH_MUTANT"
"""The environment variable that names the mutant of a process."""


def names() -> list[str]:
    """The names of all mutants, as the core lists them."""
    return re.findall(r'^    \w+ = "(.+)";$', SOURCE.read_text(encoding="utf-8"), re.MULTILINE)


def build() -> Path:
    """Where Python finds the package with this core."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "pybench-core", "--features", "mutants"]
    # As maturin says it: without, an extension module is linked against one libpython.
    variables = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    environment = {**os.environ, **variables, **QUICK, "CARGO_TARGET_DIR": str(PLACE / "target")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    no_core = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "pybench", PACKAGE / "pybench", ignore=no_core)
    shutil.copyfile(BUILT, PACKAGE / "pybench" / "_core.abi3.so")
    return PACKAGE
