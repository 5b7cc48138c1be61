"""The core that users get has no trace of the mistakes that its tests can put in, and the table has all of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pybench import _core
from tests.mutants.build import CHOOSER, ROOT, names
from tests.mutants.document import PAGE
from tests.mutants.table import CASES

CRATES = ("locks", "python")


@pytest.fixture(scope="module")
def core() -> bytes:
    assert _core.__file__ is not None
    return Path(_core.__file__).read_bytes()


def test_the_built_core_knows_no_mutant(core: bytes):
    # `mutants` stands in the name of each symbol, and in the path of each source file, that only that feature has.
    for text in (CHOOSER, "mutants", "Mutated", *names()):
        assert text.encode() not in core, text
    assert b"another client" in core, "texts of the core are not found this way"


def test_the_feature_is_off_by_default():
    for crate in CRATES:
        features = tomllib.loads((ROOT / "rust_core" / crate / "Cargo.toml").read_text(encoding="utf-8"))["features"]
        assert "mutants" in features
        assert "default" not in features


def test_each_mutant_is_looked_for():
    assert len(names()) >= 24
    assert {case.mutant for case in CASES} == set(names())
    assert len({(case.mutant, case.strategy) for case in CASES}) == len(CASES)


def test_the_page_has_each_search_and_nothing_that_escaped():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ")[:2] for line in lines if line.startswith("| ") and not line.startswith("| mistake")]
    assert [(mutant.removeprefix("| "), strategy.strip("`")) for mutant, strategy in rows] == [
        (case.mutant, case.strategy) for case in CASES
    ]
    assert "ESCAPED" not in "\n".join(lines)
