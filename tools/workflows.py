"""The workflows of this project and those that the manual shows, checked by actionlint.

    python -m tools.workflows .tools/actionlint

`make lint-workflows` builds actionlint first. A fault in the manual is reported with the line of the manual.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
MANUAL = ROOT / "docs" / "ci.md"

BLOCK = re.compile(r"^```yaml\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
JOBS = re.compile(r"^jobs:", re.MULTILINE)


def is_workflow(text: str) -> bool:
    """Whether a YAML text is a workflow, and not a matrix of pybench."""
    return JOBS.search(text) is not None


def of_manual(page: Path = MANUAL) -> Iterator[tuple[int, str]]:
    """Each workflow that the page shows, with the number of its first line there."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if is_workflow(found["text"]):
            yield text.count("\n", 0, found.start("text")) + 1, found["text"]


def check(actionlint: Path) -> int:
    """The exit code of actionlint over all workflows: 0 without a fault."""
    codes = [subprocess.run([actionlint, *sorted(WORKFLOWS.glob("*.yml"))], check=False).returncode]
    for line, text in of_manual():
        with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
            # Empty lines in front give every fault the line that it has in the manual.
            file.write("\n" * (line - 1) + text)
            file.flush()
            shown = subprocess.run([actionlint, "-no-color", file.name], check=False, capture_output=True, text=True)
        sys.stdout.write(shown.stdout.replace(file.name, str(MANUAL.relative_to(ROOT))) + shown.stderr)
        codes.append(shown.returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1])))
