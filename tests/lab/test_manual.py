"""docs/lab.md is true: every experiment has its section, and its output is what the command prints."""

from __future__ import annotations

import re

import pytest

from pybench.lab.catalogue import EXPERIMENTS
from tools.lab_manual import MANUAL, constant, marked, printed

TEXT = MANUAL.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_section_with_its_output(name: str):
    assert f"\n## {name}\n" in TEXT
    found = [output for command, output in marked().items() if command.split()[2] == name]
    assert found
    experiment = EXPERIMENTS[name]
    for output in found:
        unwrapped = re.sub(r"\s+", " ", output)
        assert f"{name}: {experiment.summary}" in unwrapped
        assert experiment.learn in unwrapped
        assert "As expected: " in unwrapped


def test_the_columns_of_the_log_are_listed():
    from pybench.lab.telling import LOG_COLUMNS

    assert ", ".join(f"`{name}`" for name in LOG_COLUMNS) in re.sub(r"\s+", " ", TEXT)


@pytest.mark.slow
@pytest.mark.parametrize("command", marked())
def test_the_output_in_the_manual_is_what_the_command_prints(command: str):
    assert constant(printed(command)) == constant(marked()[command])


def test_figures_and_the_layout_that_follows_from_them_are_not_compared():
    assert constant("| a |  12.5 ms |") == constant("| a | 0 |") != constant("| b | 0 |")
    assert constant("after 657\n  µs, and") == constant("after 0, and")
    assert constant("2 servers") == "0 servers"
