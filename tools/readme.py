"""Generates what README shows of the run in results/reference and of the lab.

    python -m tools.readme

rewrites a part of the run's table, the pictures of its report, and what experiments of docs/lab.md have found. Tests
compare README with the run and the manual; no figure of it is typed by hand.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import pybench
from pybench.matrix.conditions import say_conditions
from pybench.numbers import plural
from pybench.records import Run
from pybench.report import run_facts, write_report
from tools import lab_manual, redis_vs_postgres

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results" / "reference"
README = ROOT / "README.md"
PICTURES = {"light": ROOT / "docs/images/report.png", "dark": ROOT / "docs/images/report-dark.png"}
BEGIN, END = "<!-- from results/reference -->\n", "<!-- end -->\n"
BEGIN_LAB, END_LAB = "<!-- from docs/lab.md -->\n", "<!-- end of lab -->\n"
EXPERIMENTS = {
    "oversell": ("none", "mutex"),
    "pause": ("mutex", "fenced checked"),
    "restart": ("restarts empty", "appendfsync always"),
}
"""The experiments that README shows, and the cases of each."""
SIZE = {"width": 1280, "height": 600}
COMMAND = ("pybench", "show", str(REFERENCE.relative_to(ROOT)))
COLUMNS = 96
"""The width of a code block on a repository's front page."""
LOADS = ("64 clients, 1,000 keys:",)
"""The loads that README shows: one key that all clients want, and keys that clients seldom share."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The head is followed by chunks in any order, each made of length, kind, body and checksum.
HEAD_END = len(SIGNATURE) + 4 + 4 + 13 + 4
NAME = b"pybench-run"


def shown(run: Run) -> str:
    """The part of README between its marks."""
    manifest, machine = run.manifest, run.manifest["machine"]
    plan = dict(run_facts.plan_rows(manifest))
    servers = " and ".join(server["label"].capitalize() for server in manifest["servers"])
    sockets = "on a Unix socket" if len(manifest["servers"]) == 1 else "on Unix sockets"
    fixed = say_conditions([("hold", manifest["cells"][0]["hold"])])
    return (
        f"```console\n{table_excerpt()}\n```\n\n"
        f"{plural(int(plan['trials']), 'trial')} of {plan['duration']} each; {fixed}. {servers} {sockets}, client and "
        f"server on one machine with {plural(machine['cores'], 'core')} ({machine['cpu']}).\n"
    )


def table_excerpt() -> str:
    """The head and one load of the table that `pybench show results/reference` prints."""
    environment = {name: text for name, text in os.environ.items() if name != "FORCE_COLOR"} | {"COLUMNS": str(COLUMNS)}
    printed = subprocess.run(
        [sys.executable, "-m", *COMMAND], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    lines = printed.stdout.splitlines()
    head_end = next(number for number, line in enumerate(lines) if line.startswith("---")) + 1
    head_begin = max(number for number in range(head_end) if not lines[number]) + 1
    loads = [line for load in LOADS for line in ("...", *_lines_of(load, lines))]
    return "\n".join([f"$ {' '.join(COMMAND)}", "...", *lines[head_begin:head_end], *loads])


def _lines_of(load: str, lines: list[str]) -> list[str]:
    """The heading of `load` and its rows, which end at the next heading or at the indented notes."""
    begin = lines.index(load)
    after = (
        number for number in range(begin + 1, len(lines)) if lines[number].endswith(":") or lines[number][:2] == "  "
    )
    return lines[begin : next(after)]


def experiments() -> str:
    """What the experiments of README have found, as the manual of the lab has it."""
    return "".join(f"- {_found(name, cases)}\n" for name, cases in EXPERIMENTS.items())


def _found(name: str, cases: Sequence[str]) -> str:
    lines = lab_manual.marked()[f"pybench lab {name}"].splitlines()
    sentences: list[str] = []
    for line in lines:
        if line.startswith("- "):
            sentences.append(line.removeprefix("- "))
        elif sentences and line.startswith("  "):
            sentences[-1] += f" {line.strip()}"
    by_case = dict(one.split(": ", 1) for one in sentences)
    # In the manual a lock is right or wrong in brackets; here the sentence alone says it.
    found = [f"*{case}*: {by_case[case].rpartition(' (')[0]}." for case in cases]
    return f"[`pybench lab {name}`](docs/lab.md#{name}): {' '.join(found)}"


def told() -> str:
    """What README says between its marks."""
    return redis_vs_postgres.told(README, BEGIN, END)


def run_of(picture: Path) -> str:
    """The start time of the run that a picture shows; empty if the picture does not name its run."""
    png = picture.read_bytes()
    (length,) = struct.unpack(">I", png[HEAD_END : HEAD_END + 4])
    kind, _, text = png[HEAD_END + 4 : HEAD_END + 8 + length].partition(b"\x00")
    return text.decode("latin-1") if kind == b"tEXt" + NAME else ""


def stamped(png: bytes, text: str) -> bytes:
    """`png` with a text chunk after its head that names the run."""
    assert png.startswith(SIGNATURE), "a picture is a PNG"
    body = b"tEXt" + NAME + b"\x00" + text.encode("latin-1")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:HEAD_END] + chunk + png[HEAD_END:]


def take_pictures(run: Run) -> None:
    """Take pictures of the top of the report in both themes."""
    from playwright.sync_api import sync_playwright

    from tests.report.browsing import ARGUMENTS, CHROMIUM

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        report, _ = write_report(pybench.load(shutil.copytree(REFERENCE, Path(temporary) / "reference")))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for theme, picture in PICTURES.items():
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.goto(report.as_uri())
            page.wait_for_selector(".tiles")
            picture.write_bytes(stamped(page.screenshot(), run.manifest["started_at"]))
        browser.close()


def main() -> None:
    """Rewrite README and the pictures."""
    run = pybench.load(REFERENCE)
    redis_vs_postgres.write(README, shown(run), BEGIN, END)
    redis_vs_postgres.write(README, experiments(), BEGIN_LAB, END_LAB)
    take_pictures(run)


if __name__ == "__main__":
    main()
