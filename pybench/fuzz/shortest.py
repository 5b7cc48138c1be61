"""The shortest world found that goes wrong as the one of a seed does, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.analysis.violation_sentences import sentence
from pybench.fuzz.setting import Part, Worlds, replay_command
from pybench.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybench.core_results import FoundWorld, Violation


TRIED = 3
"""How many worlds that go wrong are made shorter."""


@dataclass(frozen=True, slots=True)
class Shortest:
    """A world that goes wrong, and how it is played again."""

    seed: int
    broken: bool
    """Whether the lock broke its promise."""
    sentence: str
    command: str
    clients: int
    faults: tuple[str, ...]
    """The kinds of its faults."""
    violation: Violation | None

    @property
    def size(self) -> str:
        """What the world has, such as `2 clients, 1 fault (clock)`."""
        kinds = f" ({', '.join(self.faults)})" if self.faults else ""
        return f"{plural(self.clients, 'client')}, {plural(len(self.faults), 'fault')}{kinds}"

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "seed": self.seed,
            "broken": self.broken,
            "sentence": self.sentence,
            "replay": self.command,
            "clients": self.clients,
            "faults": list(self.faults),
            "violation": self.violation,
        }


def shortest_of(worlds: Worlds, seeds: Sequence[int]) -> Shortest:
    """The shortest world found for the first few of `seeds`, all of which go wrong."""
    return min((_shortest(worlds, seed) for seed in seeds[:TRIED]), key=lambda one: (len(one.faults), one.clients))


def _shortest(worlds: Worlds, seed: int) -> Shortest:
    """The world of `seed`, which goes wrong, with all taken away that is not needed for that."""
    found = worlds.core.shrink(seed)
    assert found is not None, "the search has found it"
    part = part_of(found)
    left = worlds.core.replay(seed, part.spec())
    return Shortest(
        seed=seed,
        broken=found["broken"],
        sentence=sentence_of(found),
        command=replay_command(worlds, seed, part),
        clients=len(left["clients"]),
        faults=tuple(fault[2] for fault in left["faults"]),
        violation=found["violation"],
    )


def part_of(found: FoundWorld) -> Part:
    """What is left of a world that was found."""
    clients, faults = found["clients"], found["faults"]
    return Part(
        clients=None if clients is None else tuple(clients),
        faults=None if faults is None else tuple(faults),
        requests=found["requests"],
        earlier_ns=found["earlier_ns"],
    )


def sentence_of(found: FoundWorld) -> str:
    """What went wrong, in one sentence."""
    violation = found["violation"]
    return sentence(violation) if violation is not None else str(found["other"])
