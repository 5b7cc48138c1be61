"""Short gates: what they are given, and what every gate of a workflow leaves behind."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from pybench.records import load
from tests.ci.workflows import Runner

SHORT = ["--trials", "2", "--duration", "40ms", "--warmup", "10ms"]
MATRIX = "name: locks\naxes: {strategy: mutex, concurrency: 4}\nfixed: {hold: 100us}\n"
NOT_SLOWER = {0, 21}
"""So few trials may leave the gate undecided, and may not blame anybody."""


def require_outputs(runner: Runner, lock: str = "mutex") -> None:
    """What the upload names, and the job summary, are there."""
    assert runner.summary.read_text().lstrip().startswith("#")
    assert (runner.workspace / "gate.html").read_text().startswith("<!doctype html>")
    cases = ET.parse(runner.workspace / "gate.xml").getroot().iter("testcase")
    assert any(lock in case.attrib["name"] for case in cases)
    folders = [path for path in (runner.workspace / "gate").iterdir() if path.is_dir()]
    assert len(folders) >= 2
    assert all(len(load(folder).trials) for folder in folders)
