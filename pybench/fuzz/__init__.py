"""Worlds on virtual time: many seeds are searched for broken promises, and any seed can be played again."""

from __future__ import annotations

from pybench.fuzz.page import page
from pybench.fuzz.search import Search, search
from pybench.fuzz.setting import Part, Worlds, parse_part, parse_seed, parse_seeds, parse_worlds, replay_command
from pybench.fuzz.shortest import Shortest, shortest_of
from pybench.fuzz.telling import time_line
from pybench.fuzz.time_line import TimeLine

__all__ = [
    "Part",
    "Search",
    "Shortest",
    "TimeLine",
    "Worlds",
    "page",
    "parse_part",
    "parse_seed",
    "parse_seeds",
    "parse_worlds",
    "replay_command",
    "search",
    "shortest_of",
    "time_line",
]
