from __future__ import annotations

from pybench.records import RunFolder, load
from pybench.report import write_report
from tests.report.support import Point, manifest


def test_a_run_folder_gets_its_reports_whole(tmp_path):
    folder = RunFolder.create(
        tmp_path / "run", manifest([Point("mutex", 1, 1)], name="x", status="running", caught=True, trials=1)
    )
    html, markdown = write_report(load(folder.path))
    assert (html, markdown) == (folder.path / "report.html", folder.path / "report.md")
    assert markdown.read_text(encoding="utf-8").startswith("### x: No trial was completed")
    assert "Not finished" in (folder.path / "report.html").read_text(encoding="utf-8")
    assert not list(folder.path.glob(".*.tmp"))
