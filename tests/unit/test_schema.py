from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pybench.matrix import INIT_TEXT, json_schema, read_text
from pybench.matrix.cells import AXES
from pybench.matrix.fault_kinds import KINDS, PAUSED_CLIENT, Lasting
from pybench.matrix.faults import Faults
from pybench.matrix.models import Matrix
from pybench.matrix.reader import Document
from pybench.matrix.template import SCHEMA_FILE
from pybench.strategies import CATALOGUE

EXAMPLES = sorted(Path("examples").glob("*.yaml"))
SCHEMA = json_schema()
FAULT = SCHEMA["$defs"]["Fixed"]["properties"]["faults"]["anyOf"][1]


def accepts(node: dict[str, Any], value: object) -> bool:
    """A validator of just the words that our schema uses: the independent one is not among our dependencies."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]]
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": int | float, "null": type(None)}
    named = node.get("type", [])
    if named and not any(isinstance(value, types[name]) for name in ([named] if isinstance(named, str) else named)):
        return False
    if "anyOf" in node and not any(accepts(part, value) for part in node["anyOf"]):
        return False
    if ("enum" in node and value not in node["enum"]) or ("const" in node and value != node["const"]):
        return False
    if isinstance(value, str) and "pattern" in node and not re.search(node["pattern"], value):
        return False
    if isinstance(value, int) and not node.get("minimum", value) <= value <= node.get("maximum", value):
        return False
    if isinstance(value, list):
        return len(value) >= node.get("minItems", 0) and all(accepts(node.get("items", {}), one) for one in value)
    if isinstance(value, dict):
        return _accepts_mapping(node, value)
    return True


def _accepts_mapping(node: dict[str, Any], value: dict[str, object]) -> bool:
    properties, others = node.get("properties", {}), node.get("additionalProperties", True)
    if not node.get("minProperties", 0) <= len(value) <= node.get("maxProperties", len(value)):
        return False
    if any(name not in value for name in node.get("required", [])):
        return False
    for name, part in value.items():
        if name in properties:
            if not accepts(properties[name], part):
                return False
        elif others is False or (isinstance(others, dict) and not accepts(others, part)):
            return False
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_fits_the_schema_and_points_at_it(path):
    assert accepts(SCHEMA, Document.parse(str(path), read_text(path)).values)
    assert path.read_text().startswith(f"# yaml-language-server: $schema=./{SCHEMA_FILE}\n")


def test_what_init_writes_fits_the_schema(tmp_path):
    path = tmp_path / "init.yaml"
    path.write_text(INIT_TEXT)
    assert accepts(SCHEMA, Document.parse(str(path), read_text(path)).values)


def test_the_schema_beside_the_examples_is_the_present_one():
    committed = json.loads((Path("examples") / SCHEMA_FILE).read_text())
    assert committed == SCHEMA, f"renew it: pybench schema > examples/{SCHEMA_FILE}"


@pytest.mark.parametrize(
    "mapping",
    [
        {"axes": {"strategy": "redlok"}},
        {"axes": {"hodl": "1ms"}},
        {"axes": {"strategy": []}},
        {"trials": 0},
        {"nam": "x"},
        {"schema": 2},
        {"fixed": {"poll": "spinning"}},
        {"fixed": {"rate": "5000"}},
        {"fixed": {"retry": {"bas": "1ms"}}},
        {"backends": {"a": {"url": "rediss://x"}}},
        {"thresholds": ["acquire.p98 < 50ms"]},
        {"thresholds": [{"where": {"strategy": "mutex"}}]},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(mapping):
    assert not accepts(SCHEMA, mapping)


@pytest.mark.parametrize(("do", "kind"), [*KINDS.items(), ("pause", PAUSED_CLIENT)])
def test_a_fault_as_a_mapping_fits_the_schema_with_all_its_arguments(do, kind):
    values = {"by": "20ms", "lag": "50ms", "bytes_per_s": 10_000, "nth": 3, "data": "lose"}
    length = {} if kind.lasting is Lasting.MOMENT else {"for": "1s"}
    arguments = {name: values[name] for name in kind.parameters}
    fault = {"at": 0, "do": do, "target": f"{kind.targets[0].value}[0]", **length, **arguments}
    assert Faults.parse([fault])
    assert accepts(SCHEMA, {"fixed": {"strategy": "mutex", "faults": [fault]}})
    assert not accepts(SCHEMA, {"fixed": {"strategy": "mutex", "faults": [fault | {"fro": "1s"}]}})
    assert kind.meaning in FAULT["properties"]["do"]["description"]


def test_every_key_says_what_it_means():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(SCHEMA["properties"]) == {field.alias or name for name, field in Matrix.model_fields.items()}
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        for name, node in part["properties"].items():
            assert node["description"].endswith("."), name


def test_editors_can_complete_axes_and_strategies():
    axes = SCHEMA["$defs"]["Axes"]["properties"]
    assert list(axes) == list(AXES) == list(SCHEMA["$defs"]["Fixed"]["properties"])
    assert {"enum": list(CATALOGUE)} in SCHEMA["$defs"]["Fixed"]["properties"]["strategy"]["anyOf"]


def test_defaults_are_told_as_a_file_would_say_them():
    defaults = {name: node.get("default") for name, node in SCHEMA["properties"].items()}
    assert (defaults["duration"], defaults["warmup"], defaults["trials"]) == ("2s", "500ms", 5)
    assert SCHEMA["$defs"]["Axes"]["properties"]["ttl"]["description"].endswith("Default: 10s.")
