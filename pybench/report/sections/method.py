"""How it was measured: enough to judge the figures, and to repeat them."""

from __future__ import annotations

from pybench.report import run_facts
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.view import View


def render(view: View) -> Section:
    """The command, the servers, the control and the baseline, the machine, settings and versions."""
    manifest = view.run.manifest
    matrix = manifest.get("matrix") or {}
    html = fill(
        "method.html",
        command=run_facts.command_line(manifest),
        servers=run_facts.server_rows(manifest),
        controls=run_facts.control_rows(manifest),
        baseline=run_facts.baseline_sentences(manifest),
        groups=[
            ("Run", [("seed", run_facts.say(manifest.get("seed"))), *run_facts.plan_rows(manifest)]),
            ("In every cell", run_facts.shared_settings(manifest)),
            ("Machine", run_facts.machine_rows(manifest)),
            ("Versions", run_facts.version_rows(manifest)),
        ],
        matrix=matrix.get("given"),
    )
    return Section("method", "How it was measured", html, nav="Method")
