"""A workspace for the steps of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.workflows import Runner


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    workspace.mkdir()
    temporary.mkdir()
    return Runner(workspace, temporary)
