"""What README shows of the run in results/reference: the answer and the pictures.

    python -m tools.readme

writes them anew after the run was made anew. A test compares; nothing of it is typed by hand.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from pathlib import Path

import pybench
from pybench.analysis.answer import answer
from pybench.matrix.conditions import say_conditions
from pybench.numbers import plural
from pybench.records import Run
from pybench.report import run_facts, write_html
from tools import redis_vs_postgres

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results" / "reference"
README = ROOT / "README.md"
PICTURES = {"light": ROOT / "docs/images/report.png", "dark": ROOT / "docs/images/report-dark.png"}
BEGIN, END = "<!-- from results/reference -->\n", "<!-- end -->\n"
SIZE = {"width": 1280, "height": 600}
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# After the head come chunks in any order, of length, kind, body and check.
HEAD_END = len(SIGNATURE) + 4 + 4 + 13 + 4
NAME = b"pybench-run"


def shown(run: Run) -> str:
    """The part of README between its marks."""
    manifest, machine = run.manifest, run.manifest["machine"]
    plan = dict(run_facts.plan_rows(manifest))
    servers = " and ".join(server["label"].capitalize() for server in manifest["servers"])
    sockets = "on a Unix socket" if len(manifest["servers"]) == 1 else "on Unix sockets"
    fixed = say_conditions([("hold", manifest["cells"][0]["hold"])])
    found = answer(run.summary, run.trials)
    # What speaks against the lock to take; the picture shows the rest.
    against = [clause for clause in found.further if clause.startswith("but ")]
    return (
        f"> {'; '.join([found.headline, *against])}.\n\n"
        f"{plural(int(plan['trials']), 'trial')} of {plan['duration']} each; {fixed}. {servers} {sockets}, client and "
        f"server on one machine with {plural(machine['cores'], 'core')} ({machine['cpu']}).\n"
    )


def told() -> str:
    """What README says between its marks."""
    return redis_vs_postgres.told(README, BEGIN, END)


def run_of(picture: Path) -> str:
    """Which run a picture is of, by when that began; empty where the picture does not say."""
    png = picture.read_bytes()
    (length,) = struct.unpack(">I", png[HEAD_END : HEAD_END + 4])
    kind, _, text = png[HEAD_END + 4 : HEAD_END + 8 + length].partition(b"\x00")
    return text.decode("latin-1") if kind == b"tEXt" + NAME else ""


def stamped(png: bytes, text: str) -> bytes:
    """`png` with a text chunk that says which run it is of, after its head."""
    assert png.startswith(SIGNATURE), "a picture is a PNG"
    body = b"tEXt" + NAME + b"\x00" + text.encode("latin-1")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:HEAD_END] + chunk + png[HEAD_END:]


def take_pictures(run: Run) -> None:
    """The top of the report in both themes."""
    from playwright.sync_api import sync_playwright

    from tests.report.browsing import ARGUMENTS, CHROMIUM

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        report = write_html(Path(shutil.copytree(REFERENCE, Path(temporary) / "reference")))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for theme, picture in PICTURES.items():
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.goto(report.as_uri())
            page.wait_for_selector(".tiles")
            picture.write_bytes(stamped(page.screenshot(), run.manifest["started_at"]))
        browser.close()


def main() -> None:
    """Write README and the pictures anew."""
    run = pybench.load(REFERENCE)
    redis_vs_postgres.write(README, shown(run), BEGIN, END)
    take_pictures(run)


if __name__ == "__main__":
    main()
