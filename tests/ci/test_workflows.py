"""The workflows as data: their form, what they may do, what they use, and that every script of theirs is tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci.workflows import Workflow, ours, shown

OURS, SHOWN = ours(), shown()
ALL = [*OURS.values(), *SHOWN.values()]

ACTIONS = {
    "actions/cache": "v5",
    "actions/checkout": "v6",
    "actions/download-artifact": "v8",
    "actions/setup-go": "v6",
    "actions/setup-python": "v6",
    "actions/upload-artifact": "v7",
}
"""The actions that workflows use, all of GitHub itself, each with its one version."""


def named(workflow: Workflow) -> str:
    return f"{workflow.name}: {workflow.tree['name']}"


def test_there_are_workflows():
    assert set(OURS) == {"benchmark.yml", "ci.yml"}
    assert len(SHOWN) >= 2


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_a_workflow_only_reads_the_repository(workflow: Workflow):
    assert workflow.tree["permissions"] == {"contents": "read"}
    assert not [name for name, job in workflow.jobs.items() if "permissions" in job]


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_every_job_ends_and_makes_way_for_a_newer_one(workflow: Workflow):
    assert all(5 <= job["timeout-minutes"] <= 120 for job in workflow.jobs.values())
    assert "github.ref" in workflow.tree["concurrency"]["group"]


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_every_action_has_the_version_that_all_workflows_use(workflow: Workflow):
    assert set(workflow.actions) <= {f"{name}@{version}" for name, version in ACTIONS.items()}


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_a_checkout_leaves_no_token_behind(workflow: Workflow):
    checkouts = [step for job in workflow.jobs.values() for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_what_an_author_of_a_pull_request_writes_is_never_part_of_a_script(workflow: Workflow):
    scripts = [step["run"] for job in workflow.jobs.values() for step in job["steps"] if "run" in step]
    assert not [script for script in scripts if re.search(r"\$\{\{", script)]


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_scripts_run_in_a_shell_that_stops_at_the_first_error(workflow: Workflow):
    # Named, bash gets `-eo pipefail`; without a name it gets `-e` alone.
    assert workflow.tree["defaults"]["run"]["shell"] == "bash"


@pytest.mark.parametrize("workflow", ALL, ids=named)
def test_the_schema_of_workflows_holds(workflow: Workflow, tmp_path: Path):
    file = tmp_path / "workflow.yml"
    file.write_text(workflow.text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_script_is_carried_out_by_a_test():
    """A new step needs a test; the tests name the steps that they carry out."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*steps.py"))
    names = {name for workflow in ALL for job in workflow.jobs for name in workflow.steps(job)}
    assert {name for name in names if f'"{name}"' not in tests} == set()


def test_ours_run_for_pull_requests_without_secrets():
    for workflow in OURS.values():
        # YAML 1.1 would make a boolean of "on".
        assert "pull_request" in workflow.tree["on"]
        assert "pull_request_target" not in workflow.tree["on"]
        assert "secrets." not in str(workflow.tree)
