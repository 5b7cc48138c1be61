"""The manual is true: its links work, its matrices can be planned, its commands and defaults exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from pybench.cli.app import app
from pybench.columns import SUMMARY_FIGURES
from pybench.exits import PRECEDENCE
from pybench.matrix import load_matrix
from pybench.matrix.cells import AXES
from pybench.matrix.models import Matrix
from pybench.planning.plan import make_plan
from pybench.records.schema import TRIAL_COLUMNS
from pybench.strategies import CATALOGUE
from tools import manual_tables, workflows

ROOT = Path(__file__).parents[2]
FOLDERS = ("results", "deploy", "notebooks")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / folder / "README.md" for folder in FOLDERS)])
MANUAL = {page.name: page for page in ROOT.glob("docs/*.md")}
COMMANDS = get_command(app).commands

FENCE = re.compile(r"^```(?P<language>[\w-]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
WORDS_AROUND = re.compile(r"[^\w\- ]")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [found["text"] for found in FENCE.finditer(page.read_text()) if found["language"] == language]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {WORDS_AROUND.sub("", heading.lower()).replace(" ", "-") for heading in headings}


def table(page: Path, *heading: str) -> list[list[str]]:
    """The rows of the table with this heading, without code marks."""
    lines = page.read_text().splitlines()
    wanted = f"| {' | '.join(heading)} |"
    assert wanted in lines, f"{named(page)} has a table {wanted}"
    rows = []
    for line in lines[lines.index(wanted) + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([part.strip().strip("`") for part in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def command_lines(page: Path) -> list[str]:
    """Every `pybench ...` that a reader might type, in blocks and in running text."""
    typed = [line for language in ("sh", "console") for block in blocks(page, language) for line in block.splitlines()]
    typed += re.findall(r"`(pybench [^`]+)`", prose(page))
    lines = (re.sub(r"^(\$ )?(\.venv/bin/)?", "", line.strip()) for line in typed)
    return [line for line in lines if line.startswith("pybench ")]


def test_there_is_a_manual():
    assert {"matrix.md", "verdicts.md", "measuring.md", "strategies.md", "exit-codes.md"} <= set(MANUAL)
    assert (ROOT / "README.md") in PAGES
    assert sum(len(command_lines(page)) for page in PAGES) > 20, "command lines are found at all"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    targets += re.findall(r'(?:src|srcset|href)="([^"]+)"', prose(page))
    broken = []
    for target in targets:
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_matrix_of_the_manual_can_be_planned(page, tmp_path, monkeypatch):
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    monkeypatch.setenv("PGPASSWORD", "secret")
    matrices = [text for text in blocks(page, "yaml") if not workflows.is_workflow(text)]
    for number, text in enumerate(matrices):
        file = tmp_path / f"matrix-{number}.yaml"
        file.write_text(text)
        plan = make_plan(load_matrix(file))
        assert plan.cells
        assert not plan.refused


def test_there_are_matrices_to_be_planned():
    assert len(blocks(MANUAL["matrix.md"], "yaml")) >= 4


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_line_names_a_command_and_options_that_exist(page):
    wrong = []
    for line in command_lines(page):
        _, *words = shlex.split(line, comments=True)
        if words and words[0] in ("--help", "--version"):
            continue
        command = COMMANDS.get(words[0]) if words else None
        if isinstance(command, TyperGroup) and words[1:] and words[1] != "NAME" and words[1][0] != "-":
            command = command.get_command(Context(command), words[1])
        if command is None:
            wrong.append(line)
            continue
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        wrong += [f"{line}: {option}" for option in sorted(given - known - {"--help"})]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_target_of_make_that_is_named_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = re.findall(r"`make ([a-z-]+)", prose(page)) + re.findall(
        r"^make ([a-z-]+)", "\n".join(blocks(page, "sh")), re.MULTILINE
    )
    assert set(typed) <= targets


def test_the_table_of_keys_has_every_key_with_its_default():
    told = {key: default for key, default, _ in table(MANUAL["matrix.md"], "key", "default", "meaning")}
    plain = Matrix.model_validate({"axes": {"strategy": "mutex"}}).to_dict()
    assert list(told) == list(plain)
    scalars = {key: str(value) for key, value in plain.items() if not isinstance(value, dict | list)}
    assert {key: told[key] for key in scalars} == scalars
    assert all(told[key] == "none" for key, value in plain.items() if key not in scalars and key not in ("backends",))


def test_the_table_of_exit_codes_lists_all_codes_in_order_of_precedence():
    rows = table(MANUAL["exit-codes.md"], "code", "name", "when")
    assert [(int(code), name) for code, name, _ in rows] == [(code.value, code.name) for code in PRECEDENCE]


def test_every_strategy_is_listed_with_the_commands_of_a_grant():
    rows = table(MANUAL["strategies.md"], "strategy", "acquire", "release", "commands per grant", "promise")
    told = {name: int(commands) for name, _, _, commands, _ in rows}
    assert told == {name: strategy.commands_per_grant for name, strategy in CATALOGUE.items()}
    assert set(CATALOGUE) <= anchors(MANUAL["strategies.md"])


def test_axes_and_columns_are_explained_as_they_are_defined():
    assert manual_tables.committed() == manual_tables.generated(), "python -m tools.manual_tables writes them anew"
    columns, axes = manual_tables.columns(), manual_tables.axes()
    assert all(f"`{name}`" in columns for name in (*TRIAL_COLUMNS, *SUMMARY_FIGURES))
    assert all(f"`{name}`" in axes for name in AXES)


def test_every_message_that_troubleshooting_explains_is_in_the_code():
    sources = "".join(path.read_text() for path in ROOT.glob("pybench/**/*.py"))
    explained = re.findall(r"^\*\*`([^`]+)`", MANUAL["troubleshooting.md"].read_text(), re.MULTILINE)
    assert len(explained) > 10
    assert [message for message in explained if message not in sources] == []


def test_the_readme_fits_into_three_screens_and_begins_with_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 160
    first = blocks(ROOT / "README.md", "sh")[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make run", "make test"]


def test_pictures_are_small_enough_for_a_slow_line():
    large = [picture.name for picture in (ROOT / "docs/images").iterdir() if picture.stat().st_size > 300_000]
    assert not large


def test_the_servers_for_docker_listen_on_this_machine_only_and_keep_nothing():
    services = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())["services"]
    assert len(services) >= 3
    ports = [port for service in services.values() for port in service["ports"]]
    assert len(set(ports)) == len(services)
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for service in services.values():
        command = service["command"]
        assert command[command.index("--save") + 1] == ""
        assert command[command.index("--appendonly") + 1] == "no"
