from __future__ import annotations

import pytest

from pybench.errors import RecordError
from pybench.records import RunFolder
from pybench.report import write_html, write_markdown
from tests.report.support import Point, manifest


def test_a_run_folder_gets_its_reports_whole(tmp_path):
    folder = RunFolder.create(
        tmp_path / "run", manifest([Point("mutex", 1, 1)], name="x", status="running", caught=True, trials=1)
    )
    assert write_html(folder.path) == folder.path / "report.html"
    assert write_markdown(folder.path).read_text(encoding="utf-8").startswith("### x: No trial was completed")
    assert "Not finished" in (folder.path / "report.html").read_text(encoding="utf-8")
    assert not list(folder.path.glob(".*.tmp"))


def test_what_is_no_run_folder_is_refused(tmp_path):
    with pytest.raises(RecordError, match="not a run folder"):
        write_html(tmp_path)
