"""JUnit XML: a test case for each cell's verdict and for each threshold, as the test report of a CI service shows them.

The file agrees with the exit code of a run: a broken promise and a missed threshold are failures, and a void run is an
error. A cell that is undecided, or unsafe as its promise allows, neither passed nor failed: it is skipped, with the
reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from pybench.analysis.verdicts import Verdict, broken_cells
from pybench.numbers import missing
from pybench.report.verdict_reasons import reasons
from pybench.report.view import make_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybench.analysis.thresholds import ThresholdResult
    from pybench.records import Run
    from pybench.report.view import CellView, View

FIGURES = ("safe_grants_per_s", "acquire_p50_us", "acquire_p99_us", "longest_wait_us", "grants", "contended_grants")
_OUTCOMES = {Verdict.UNSAFE.value: "skipped", Verdict.UNDECIDED.value: "skipped", Verdict.VOID.value: "error"}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def build(run: Run, view: View | None = None) -> str:
    """The whole file; `view` is that of `run`, where the caller has it."""
    view = make_view(run) if view is None else view
    name = str(run.manifest.get("name") or "run")
    root = Xml.Element("testsuites", name=text(f"pybench {name}"))
    verdicts = Xml.SubElement(root, "testsuite", name=text(f"{name}: verdicts"))
    told = reasons(view)
    broken = broken_cells(run.trials)
    for cell in view.cells:
        _verdict(verdicts, name, cell, f"{cell.verdict}: {told[cell.id]}", is_broken=cell.id in broken)
    add_thresholds(root, name, run.thresholds)
    return document(root)


def add_thresholds(root: Xml.Element, name: str, results: Sequence[ThresholdResult]) -> None:
    """Add a suite with a case for each result; none without thresholds."""
    if not results:
        return
    suite = Xml.SubElement(root, "testsuite", name=text(f"{name}: thresholds"))
    for result in results:
        case = Xml.SubElement(
            suite, "testcase", classname=text(f"{name}.{result.threshold.text}"), name=text(result.cell or "")
        )
        if not result.passed:
            Xml.SubElement(case, "failure", message=text(threshold_sentence(result)))


def threshold_sentence(result: ThresholdResult) -> str:
    """A threshold with the figure that it was compared with."""
    return f"{result.threshold.text}: {result.figure_text}"


def document(root: Xml.Element) -> str:
    """The whole file; the cases of each suite are counted."""
    for suite in root:
        _count(suite)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _verdict(suite: Xml.Element, run: str, cell: CellView, reason: str, *, is_broken: bool) -> None:
    case = Xml.SubElement(suite, "testcase", classname=text(f"{run}.{cell.series.label}"), name=text(cell.name))
    properties = Xml.SubElement(case, "properties")
    for column in ("verdict", *FIGURES):
        value = cell.row.get(column)
        if not missing(value):
            Xml.SubElement(properties, "property", name=column, value=text(value))
    outcome = "failure" if is_broken else _OUTCOMES.get(cell.verdict)
    if outcome is not None:
        Xml.SubElement(case, outcome, message=text(reason))


def _count(suite: Xml.Element) -> None:
    suite.set("tests", str(len(suite)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"./testcase/{kind}"))))


def text(value: object) -> str:
    """`value` as XML can hold it."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", f"{value:g}" if isinstance(value, float) else str(value))
