"""Workflows as data, and their steps carried out as GitHub's runner does it: a script, a shell, an environment.

A step that says `${{ }}` is an error, so that no value is guessed. Steps that use an action are not carried out: a
test lays out what they would bring.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tools.workflows import WORKFLOWS, of_manual

SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
"""What the runner makes of `shell: bash`."""


@dataclass(frozen=True)
class Step:
    """A step of a job that runs a script."""

    name: str
    script: str
    env: Mapping[str, str]
    folder: str = "."


@dataclass(frozen=True)
class Workflow:
    """A workflow of `.github/workflows/`, or one that the manual shows."""

    name: str
    text: str
    tree: Mapping[str, Any]

    @property
    def jobs(self) -> Mapping[str, Mapping[str, Any]]:
        return self.tree["jobs"]

    @property
    def actions(self) -> Iterator[str]:
        for job in self.jobs.values():
            yield from (step["uses"] for step in job["steps"] if "uses" in step)

    def steps(self, job: str) -> dict[str, Step]:
        """The steps of a job that run a script, by name."""
        env = {**self.tree.get("env", {}), **self.jobs[job].get("env", {})}
        return {
            step["name"]: Step(
                step["name"], step["run"], {**env, **step.get("env", {})}, step.get("working-directory", ".")
            )
            for step in self.jobs[job]["steps"]
            if "run" in step
        }


def read(name: str, text: str) -> Workflow:
    return Workflow(name, text, YAML(typ="safe").load(text))


def ours() -> dict[str, Workflow]:
    return {path.name: read(path.name, path.read_text()) for path in sorted(WORKFLOWS.glob("*.yml"))}


def shown() -> dict[str, Workflow]:
    """Those of docs/ci.md, by the name that they have there."""
    found = (read("docs/ci.md", text) for _, text in of_manual())
    return {workflow.tree["name"]: workflow for workflow in found}


def plain(text: object) -> str:
    """`text`, which must have no expression."""
    assert "${{" not in str(text), f"only GitHub knows the value of {text}"
    return str(text)


@dataclass
class Runner:
    """A workspace in which the steps of one job are carried out, one after another."""

    workspace: Path
    temporary: Path
    variables: dict[str, str] = field(default_factory=dict)
    """What the test changes of the environment: it wins over what the workflow says, to make a step short."""

    def __post_init__(self) -> None:
        for file in (self.summary, self.output, self.environment, self.path):
            file.touch()

    @property
    def summary(self) -> Path:
        return self.temporary / "summary.md"

    @property
    def output(self) -> Path:
        return self.temporary / "output"

    @property
    def environment(self) -> Path:
        return self.temporary / "env"

    @property
    def path(self) -> Path:
        return self.temporary / "path"

    def run(self, step: Step, *, timeout: float = 250) -> subprocess.CompletedProcess[str]:
        """The finished step; stdout and stderr stand in `stdout`, as in the log of the runner."""
        script = self.temporary / "script.sh"
        script.write_text(plain(step.script))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYBENCH_", "GITHUB_"))}
        path = [*self.path.read_text().splitlines()[::-1], str(Path(sys.executable).parent), os.environ["PATH"]]
        return subprocess.run(
            [*SHELL, str(script)],
            cwd=self.workspace / step.folder,
            env={
                **kept,
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "GITHUB_OUTPUT": str(self.output),
                "GITHUB_ENV": str(self.environment),
                "GITHUB_PATH": str(self.path),
                "RUNNER_TEMP": str(self.temporary),
                **dict(line.split("=", 1) for line in self.environment.read_text().splitlines()),
                **{name: plain(value) for name, value in step.env.items()},
                **self.variables,
                "PATH": os.pathsep.join(path),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
