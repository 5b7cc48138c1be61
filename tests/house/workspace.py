"""The Rust workspace as cargo resolves it: which crate leans on which."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PURE = ("locks", "wire", "check", "history")


@dataclass(frozen=True)
class Workspace:
    """`cargo metadata`, asked for what a shipped core is made of: development and build dependencies stay out."""

    packages: dict[str, dict[str, Any]]
    nodes: dict[str, dict[str, Any]]
    member_ids: list[str]

    @classmethod
    def read(cls) -> Workspace:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
        said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        told = json.loads(said.stdout)
        return cls(
            packages={package["id"]: package for package in told["packages"]},
            nodes={node["id"]: node for node in told["resolve"]["nodes"]},
            member_ids=told["workspace_members"],
        )

    def members(self) -> set[str]:
        return {self.packages[member]["name"] for member in self.member_ids}

    def direct(self, crate: str) -> set[str]:
        """The names of what `crate` itself asks for."""
        return {self.packages[found]["name"] for found in self._direct_ids(self._id(crate))}

    def behind(self, crate: str) -> set[str]:
        """The names of all that is linked with `crate`, however far away. A macro runs in the compiler: it is not."""
        seen: set[str] = set()
        waiting = [self._id(crate)]
        while waiting:
            for found in self._direct_ids(waiting.pop()):
                if found not in seen and not self._is_macro(found):
                    seen.add(found)
                    waiting.append(found)
        return {self.packages[found]["name"] for found in seen}

    def features(self, crate: str) -> set[str]:
        """The features of `crate` that anything in the workspace switches on."""
        return set(self.nodes[self._id(crate)]["features"])

    def _id(self, crate: str) -> str:
        (found,) = (key for key, package in self.packages.items() if package["name"] == crate)
        return found

    def _direct_ids(self, package: str) -> list[str]:
        return [
            dependency["pkg"]
            for dependency in self.nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]

    def _is_macro(self, package: str) -> bool:
        return any("proc-macro" in target["kind"] for target in self.packages[package]["targets"])
