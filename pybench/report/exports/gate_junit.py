"""JUnit XML of a gate: a test case for each cell and for each threshold of the head.

A regression is a failure. A cell of which the gate can't tell, or whose speed is not judged, neither passed nor failed:
it is skipped, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from pybench.analysis.between_runs import Turn
from pybench.analysis.gating import Finding
from pybench.report.exports.junit import add_thresholds, document, text
from pybench.report.gate_words import sentence

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell
    from pybench.records import Run


def build(answer: GateAnswer | None, head: Run | None, name: str, reason: str) -> str:
    """The whole file. Without an answer it has one case, an error with the `reason`."""
    root = Xml.Element("testsuites", name=text(f"pybench gate {name}"))
    suite = Xml.SubElement(root, "testsuite", name=text(f"{name}: gate"))
    if answer is None or not answer.is_whole:
        case = Xml.SubElement(suite, "testcase", classname=text(name), name="gate")
        Xml.SubElement(case, "error", message=text(reason))
    for cell in answer.cells if answer is not None else ():
        _case(suite, name, cell)
    if head is not None:
        add_thresholds(root, name, head.thresholds)
    return document(root)


def _case(suite: Xml.Element, name: str, cell: GateCell) -> None:
    change = cell.change
    case = Xml.SubElement(suite, "testcase", classname=text(f"{name}.{change.lock}"), name=text(change.name))
    properties = Xml.SubElement(case, "properties")
    facts: dict[str, object] = {
        "result": cell.word,
        "base_verdict": change.old_verdict.value,
        "head_verdict": change.new_verdict.value,
    }
    for number, judged in (("first", cell.first), ("second", cell.second)):
        if judged is not None:
            facts |= {f"{number}_{which}": getattr(judged.ratio, which) for which in ("value", "low", "high")}
            facts |= {f"{number}_limit": judged.limit, f"{number}_noise": judged.noise}
    for key, value in facts.items():
        Xml.SubElement(properties, "property", name=key, value=text(value))
    if cell.is_regression:
        Xml.SubElement(case, "failure", message=text(sentence(cell)))
    elif cell.finding in (None, Finding.UNKNOWN) or change.turn is Turn.LOST:
        Xml.SubElement(case, "skipped", message=text(sentence(cell)))
