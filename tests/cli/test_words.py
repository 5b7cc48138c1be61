"""The output of commands, word for word; run `pytest --snapshot-update` after an intended change."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Pybench, masked
from syrupy.assertion import SnapshotAssertion

COMMANDS = [
    "demo",
    "init",
    "run",
    "plan",
    "show",
    "report",
    "gate",
    "judge",
    "fuzz",
    "replay",
    "doctor",
    "strategies",
    "schema",
]

MATRIX = """\
name: shop
seed: 7
trials: 3
axes:
  strategy: [naive, mutex]
  concurrency: [1, 64]
  hold: [1ms, 20s]
"""


def test_the_help_lists_every_command_and_exit_code(pybench_inside: Pybench, snapshot: SnapshotAssertion):
    assert pybench_inside("--help").out == snapshot


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_in_80_columns(pybench_inside: Pybench, snapshot: SnapshotAssertion, command: str):
    answer = pybench_inside(command, "--help")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert answer.out == snapshot


def test_a_plan_names_cells_time_servers_and_what_it_refuses(
    pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path
):
    (tmp_path / "shop.yaml").write_text(MATRIX)
    answer = pybench_inside("plan", "shop.yaml")
    assert answer.code == 0
    assert masked(answer.out) == snapshot


def test_a_plan_as_json_holds_the_same(pybench_inside: Pybench, snapshot: SnapshotAssertion, tmp_path: Path):
    (tmp_path / "shop.yaml").write_text(MATRIX)
    assert masked(pybench_inside("plan", "shop.yaml", "--json").out) == snapshot


def test_a_plan_of_both_kinds_of_server_says_which_are_started_and_which_are_given(
    pybench_inside: Pybench, snapshot: SnapshotAssertion
):
    locks = ["-s", "mutex", "-s", "pg-row(wait=nowait)", "-s", "layered", "--concurrency", "16,2000"]
    assert masked(pybench_inside("plan", *locks).out) == snapshot
    given = ["--redis", "redis://h", "--postgres", "postgresql://me:hunter2@h/shop"]
    assert masked(pybench_inside("plan", *locks, *given).out) == snapshot


def test_the_strategies_are_listed_in_brief_and_shown_in_full(pybench_inside: Pybench, snapshot: SnapshotAssertion):
    assert pybench_inside("strategies").out == snapshot
    assert pybench_inside("strategies", "mutex").out == snapshot
    assert pybench_inside("strategies", "pg-advisory").out == snapshot
    assert pybench_inside("strategies", "layered").out == snapshot


def test_the_version_names_the_core_too(pybench_inside: Pybench, snapshot: SnapshotAssertion):
    assert masked(pybench_inside("--version").out) == snapshot


@pytest.mark.parametrize(
    "line",
    [
        "frobnicate",
        "run",
        "run --concurency 4",
        "run -s mutx",
        "run -s mutex --trials many",
        "run missing.yaml",
        "run -s mutex --hold 20s",
        "run -s mutex --rtt 2s",
        "run -s redlock --rtt per-server(1ms,2ms)",
        "run -s redlock --rtt per-server(1ms)",
        "run --resume nowhere",
        "run --resume nowhere --keys 5",
        "run -s mutex --redis rediss://example.org",
        "run -s pg-row --postgres postgresql://h/d?sslmode=verify-full",
        "run -s pg-row --postgres redis://h",
        "run -s pg-row(wait=try)",
        "plan -s mutex(",
        "strategies mutx",
        "report nowhere",
        "judge nowhere.jsonl",
        "run --resume nowhere --history",
        "doctor --servers docker",
    ],
)
def test_a_users_mistake_is_reported_in_a_sentence_with_a_hint_and_exit_code_40(
    pybench_inside: Pybench, snapshot: SnapshotAssertion, line: str, tmp_path: Path
):
    answer = pybench_inside(*line.split())
    assert answer.code == 40
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert "\nhint: " in answer.err
    assert answer.err.replace(str(tmp_path), "<here>") == snapshot
