"""The commands of the page of the manual about load over HTTP, and how a test runs one of them."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from pybench.servers.supervised import free_port
from tests.load.commands import PATIENT, ROOT, Ended, ended

PAGE = (ROOT / "docs/http-load.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.strip().splitlines()]
LOCUST = [line for line in LINES if re.match(r"(\w+=\w+ )?locust ", line)]
K6 = [line for line in LINES if line.startswith("k6 ")]
SERVE = [line for line in LINES if line.startswith("pybench serve")]
DISTRIBUTED = [line for line in LOCUST if re.search("--(master|worker)", line)]


def command(line: str) -> tuple[list[str], dict[str, str]]:
    """The words of a command line, and the variables before them."""
    words = shlex.split(line, comments=True)
    variables = {}
    while "=" in words[0]:
        name, _, variables[name] = words.pop(0).partition("=")
    return words, variables


def code_told(line: str) -> int:
    """The exit code in the comment behind the command."""
    told = re.search(r"# exits with (\d+)", line)
    return int(told[1]) if told else 0


def run(line: str, folder: Path, host: str, **variables: str) -> Ended:
    """The command as the page has it, in a checkout; variables replace its address and ports."""
    folder.mkdir()
    for name in ("locustfiles", "load-tests"):
        (folder / name).symlink_to(ROOT / name)
    words, more = command(line)
    if words[0] == "locust":
        words[:1] = [sys.executable, "-m", "locust"]
    ours = {"LOCUST_HOST": host, "BASE_URL": host, "LOCUST_WEB_HOST": "127.0.0.1"}
    if "--headless" not in words and "--worker" not in words:
        ours |= {"LOCUST_AUTOSTART": "true", "LOCUST_AUTOQUIT": "0", "LOCUST_WEB_PORT": str(free_port())}
    return ended(words, folder, **PATIENT | ours | more | variables)
