"""The files of `deploy/` agree with each other and with what the code offers. No container is started."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML
from typer.main import get_command

from pybench.cli.app import app
from tests.load.commands import ROOT, environment

DEPLOY = ROOT / "deploy"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMAGE = f"pybench:{PROJECT['version']}"
SERVE = get_command(app).commands["serve"]
KUBERNETES = "1.36"
SPEC_OF_OPERATOR = {
    "annotations", "args", "env", "image", "imagePullPolicy", "imagePullSecrets", "labels", "locustfile", "master",
    "worker", "workers",
}  # fmt: skip
"""The fields of a LocustTest, by the documentation of Locust."""


def documents(name: str) -> list[Any]:
    return list(YAML(typ="safe").load_all((DEPLOY / name).read_text(encoding="utf-8")))


COMPOSE = documents("compose.yaml")[0]["services"]
OBJECTS = {
    f"{one['kind']}/{one['metadata']['name']}": one
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for one in documents(f"kubernetes/{path.name}")
}
SWARM = OBJECTS["LocustTest/pybench-swarm"]["spec"]


def container(name: str) -> dict[str, Any]:
    """The one container of a Deployment."""
    containers: list[dict[str, Any]] = OBJECTS[f"Deployment/{name}"]["spec"]["template"]["spec"]["containers"]
    (found,) = containers
    return found


def locust_commands() -> dict[str, list[str]]:
    """Every command line of Locust in these files, without its program."""
    found = {name: COMPOSE[name]["command"] for name in ("master", "worker", "load")}
    swarm = shlex.split(SWARM["args"])
    found["swarm master"] = ["--master", *swarm]
    found["swarm worker"] = ["--worker", "--master-host", "pybench-swarm-master", *swarm]
    lines = re.findall(r"^(locust .*|docker compose .* load -f .*)$", README, re.MULTILINE)
    for line in lines:
        found[line] = shlex.split(line.partition(" load ")[2] or line.removeprefix("locust "))
    return found


PARSER_OF = """
import json, sys
from locust.argument_parser import get_parser
from locust.util.load_locustfile import load_locustfile
load_locustfile(sys.argv[1])
parser = get_parser()
ports = {name: parser.get_default(name) for name in ("web_port", "master_port", "master_bind_port")}
print(json.dumps([[option for action in parser._actions for option in action.option_strings], ports]))
"""


@cache
def parser_of(locustfile: str) -> tuple[list[str], dict[str, int]]:
    """The options of Locust and of this locustfile, and the ports that Locust uses by default."""
    script = [sys.executable, "-c", PARSER_OF, str(ROOT / "locustfiles" / locustfile)]
    done = subprocess.run(script, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    options, ports = json.loads(done.stdout.splitlines()[-1])
    return options, ports


def test_every_command_of_locust_names_a_locustfile_and_options_that_exist():
    commands = locust_commands()
    assert len(commands) >= 8
    for name, words in commands.items():
        path = words[words.index("-f") + 1]
        file = "native_locks.py" if path == "/home/locust/locustfile.py" else Path(path).name
        assert (ROOT / "locustfiles" / file).is_file(), name
        given = {word for word in words if word.startswith("-")}
        assert given <= set(parser_of(file)[0]), name


@pytest.mark.parametrize(
    "words",
    [COMPOSE["service"]["command"], container("pybench-service")["args"]]
    + [shlex.split(line)[1:] for line in re.findall(r"^pybench serve.*$", README, re.MULTILINE)],
    ids=["compose", "kubernetes", "readme"],
)
def test_the_service_is_started_with_options_that_exist(words: list[str]):
    assert words[0] == "serve"
    known = {option for parameter in SERVE.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_one_image_is_used_everywhere_and_has_the_version_of_the_project():
    ours = [one["image"] for one in COMPOSE.values() if "build" in one]
    ours += [SWARM["image"], container("pybench-service")["image"]]
    assert len(ours) == 6
    assert set(ours) == {IMAGE}
    assert set(re.findall(r"\bpybench:\d[\w.]*", DOCKERFILE + README)) == {IMAGE}
    valkeys = {COMPOSE["valkey"]["image"], container("valkey")["image"]}
    assert len(valkeys) == 1
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    for image in [*valkeys, *bases, IMAGE]:
        assert re.fullmatch(r"[\w./-]+:\d[\w.-]*", image), image


def test_names_and_ports_lead_to_each_other():
    for words in [COMPOSE["master"]["command"], COMPOSE["service"]["command"], container("pybench-service")["args"]]:
        assert words[words.index("--redis") + 1] == "redis://valkey:6379"
    assert "--redis redis://valkey:6379" in SWARM["args"]
    assert "valkey" in COMPOSE
    worker = COMPOSE["worker"]["command"]
    assert worker[worker.index("--master-host") + 1] in COMPOSE
    load = COMPOSE["load"]["command"]
    assert load[load.index("--host") + 1] == "http://service:8080"
    assert COMPOSE["master"]["ports"] == ["127.0.0.1:8089:8089"]
    assert COMPOSE["service"]["ports"] == ["127.0.0.1:8080:8080"]
    for words in (COMPOSE["service"]["command"], container("pybench-service")["args"]):
        assert words[words.index("--port") + 1] == "8080"
    assert re.search(r"^EXPOSE 8089 5557 8080$", DOCKERFILE, re.MULTILINE)
    rows = re.findall(r"^\| (\d+) \|", README, re.MULTILINE)
    assert rows == ["8089", "5557", "8080", "6379"]


def test_the_ports_of_locust_are_its_defaults():
    assert parser_of("native_locks.py")[1] == {"web_port": 8089, "master_port": 5557, "master_bind_port": 5557}


@pytest.mark.parametrize("name", ["valkey", "pybench-service"])
def test_a_service_selects_the_pods_of_its_deployment(name: str):
    deployment, service = OBJECTS[f"Deployment/{name}"]["spec"], OBJECTS[f"Service/{name}"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    (port,) = container(name)["ports"]
    (offered,) = service["ports"]
    assert (offered["targetPort"], offered["port"]) == (port["name"], port["containerPort"])


@pytest.mark.parametrize("name", [name for name in OBJECTS if not name.startswith("LocustTest/")])
def test_an_object_of_kubernetes_has_the_fields_of_its_schema(name: str):
    kubernetes_validate.validate(OBJECTS[name], KUBERNETES, strict=True)


def test_the_swarm_has_the_fields_of_the_operator_and_the_locustfile_of_the_repository():
    swarm = OBJECTS["LocustTest/pybench-swarm"]
    assert (swarm["apiVersion"], set(swarm)) == ("locust.io/v1", {"apiVersion", "kind", "metadata", "spec"})
    assert set(SWARM) <= SPEC_OF_OPERATOR
    assert SWARM["workers"] == 4
    for role in ("master", "worker"):
        assert set(SWARM[role]) <= {"labels", "annotations", "resources"}
    ours = ast.parse((ROOT / "locustfiles/native_locks.py").read_text(encoding="utf-8")).body
    code = [ast.dump(node) for node in ours if not (isinstance(node, ast.Expr) or "__future__" in ast.dump(node))]
    assert [ast.dump(node) for node in ast.parse(SWARM["locustfile"]["content"]).body] == code


def test_no_container_runs_as_root_or_listens_beyond_this_machine_unasked():
    user = re.search(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    assert int(user[1]) > 0
    for name in ("valkey", "pybench-service"):
        assert container(name)["securityContext"]["runAsNonRoot"] is True
    published = [port for one in COMPOSE.values() for port in one.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not [one for one in OBJECTS.values() if one["kind"] == "Service" and "type" in one["spec"]]


def test_the_image_installs_extras_that_exist():
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", DOCKERFILE)
    assert set(extras.split(",")) == {"embedded", "service", "locust"}
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert 'ENTRYPOINT ["locust"]' in DOCKERFILE
    assert all(one.get("entrypoint", ["locust"])[0] in ("locust", "pybench") for one in COMPOSE.values())
    assert "pybench" in PROJECT["scripts"]


def is_sent(path: str) -> bool:
    """Whether the rules of the ignore file let this path of the checkout into the build: the last one that fits."""
    sent = True
    for rule in IGNORED:
        pattern = rule.removeprefix("!")
        if rule.startswith("#") or not rule:
            continue
        if pattern.startswith("**/"):
            fits = any(fnmatch(part, pattern[3:]) for part in Path(path).parts)
        else:
            fits = fnmatch(Path(path).parts[0], pattern)
        if fits:
            sent = rule.startswith("!")
    return sent


def test_the_build_gets_all_that_it_copies_and_no_output_of_builds(tmp_path: Path):
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    assert {"Cargo.toml", "rust_core", "pybench", "locustfiles"} <= set(copied)
    assert all((ROOT / path).exists() and is_sent(path) for path in copied)
    assert not any(
        map(is_sent, ["target/release/x", "pybench/_core.abi3.so", ".venv/bin/python", "rust_core/wire/fuzz/target/x"])
    )
    # Cargo reads a workspace only if every member is there.
    shutil.copytree(ROOT / "rust_core", tmp_path / "rust_core", ignore=shutil.ignore_patterns("target", "corpus"))
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, tmp_path)
    asked = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    subprocess.run(asked, cwd=tmp_path, check=True, capture_output=True)
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    rust = re.search(r"^FROM rust:(\d+)\.(\d+)", DOCKERFILE, re.MULTILINE)
    assert rust is not None
    assert (int(rust[1]), int(rust[2])) >= tuple(map(int, cargo["rust-version"].split(".")))


def test_every_file_is_explained():
    named = set(re.findall(r"^\| `([\w./-]+)` \|", README, re.MULTILINE))
    files = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*") if path.is_file()}
    assert files - {"README.md", "Dockerfile.dockerignore"} == named
    paths = re.findall(r"deploy/[\w/]+\.yaml", README)
    assert paths
    assert all((ROOT / path).is_file() for path in paths)
