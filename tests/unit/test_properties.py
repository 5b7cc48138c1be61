"""The property table: computed for every lock, and every proof that it names exists."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from pybench.analysis.properties import PROPERTIES, properties_of
from pybench.cli.matrix_table import matrix_json, matrix_text
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.locks import parsed
from pybench.strategies import CATALOGUE, parse_strategy

ROOT = Path(__file__).parents[2]
PROOFS = sorted({held.proof for entry in CATALOGUE.values() for held in properties_of(entry).values()})


@pytest.mark.parametrize("proof", PROOFS)
def test_every_proof_can_be_found(proof: str):
    if "::" in proof:
        file, _, name = proof.partition("::")
        define = "fn" if file.endswith(".rs") else "def"
        assert f"{define} {name}(" in (ROOT / file).read_text(encoding="utf-8")
        return
    program, command, *words = shlex.split(proof)
    assert program == "pybench"
    assert command == "lab"
    assert set(words) <= set(EXPERIMENTS)


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_experiment_that_is_named_as_a_proof_takes_the_lock(name: str):
    for key, held in properties_of(CATALOGUE[name]).items():
        if "::" in held.proof:
            continue
        experiment = EXPERIMENTS[shlex.split(held.proof)[2]]
        # docs/strategies.md says that the semaphore is shown with one permit.
        lock = parsed("semaphore(permits=1)" if name == "semaphore" else name, experiment)
        assert lock.is_beside or not experiment.unfit(lock), key


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_lock_has_every_property_in_a_few_words(name: str):
    held = properties_of(CATALOGUE[name])
    assert list(held) == [one.key for one in PROPERTIES]
    assert all(0 < len(one.value) <= 24 for one in held.values())


@pytest.mark.parametrize(
    ("lock", "key", "value"),
    [
        ("none", "mutual_exclusion", "no"),
        ("atomic", "mutual_exclusion", "one atomic step"),
        ("naive", "atomic_ttl", "no"),
        ("naive", "safe_release", "no"),
        ("naive", "crash_recovery", "may stay for ever"),
        ("mutex", "mutual_exclusion", "within the lease"),
        ("mutex", "survives_failover", "no"),
        ("watchdog", "mutual_exclusion", "yes"),
        ("watchdog(max_hold_ms=500)", "mutual_exclusion", "within the lease"),
        ("semaphore(permits=2)", "mutual_exclusion", "2 holders"),
        ("fenced", "fence", "yes"),
        ("fair", "fair", "no"),
        ("fair-queue", "fair", "in order"),
        ("replicated", "survives_failover", "if a replica has it"),
        ("redlock", "survives_failover", "if a majority has it"),
        ("redisson-redlock", "mutual_exclusion", "not promised"),
        ("multilock", "deadlock_safe", "all keys or none"),
        ("redisson-multilock", "deadlock_safe", "starts again"),
        ("pg-advisory", "crash_recovery", "with the session"),
        ("pg-advisory(session=shared)", "mutual_exclusion", "not promised"),
        ("pg-optimistic", "ownership", "no holder"),
        ("layered", "mutual_exclusion", "late writes are refused"),
    ],
)
def test_a_property_follows_from_the_catalogue_and_the_arguments(lock: str, key: str, value: str):
    name, arguments = parse_strategy(lock)
    assert properties_of(CATALOGUE[name], arguments)[key].value == value


def test_the_locks_for_programs_are_those_that_the_client_offers():
    from pybench.lock_client.servers import OFFERED

    fit = [name for name, entry in CATALOGUE.items() if properties_of(entry)["fit_for_production"].value == "yes"]
    assert sorted(fit) == sorted(OFFERED)


def test_the_table_has_a_row_for_each_lock_and_json_has_the_same_cells(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = matrix_text(list(CATALOGUE.values()))
    told = json.loads(json.dumps(matrix_json(list(CATALOGUE.values()))))
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    for row in told:
        for one in PROPERTIES:
            assert row[one.key]["value"] in lines[row["strategy"]]
            assert row[one.key]["proof"]
    assert "\n  pybench lab failover\n" in text
