"""Every strategy: its commands on the wire, its promise, and when to use it.

To add a strategy, add its entry to the module of its family. Parsing, the plan, the matrix's schema and `pybench
strategies` read the entry; the core implements the lock under the same name.
"""

from __future__ import annotations

from pybench.strategies.catalogue import CATALOGUE
from pybench.strategies.entry import (
    Arguments,
    Choice,
    Count,
    Exclusion,
    Family,
    Judge,
    Lease,
    Number,
    Parameter,
    Promise,
    Scalar,
    ServerKind,
    Strategy,
)
from pybench.strategies.parse import arguments_text, parse_strategy, strategy_text

__all__ = [
    "CATALOGUE",
    "Arguments",
    "Choice",
    "Count",
    "Exclusion",
    "Family",
    "Judge",
    "Lease",
    "Number",
    "Parameter",
    "Promise",
    "Scalar",
    "ServerKind",
    "Strategy",
    "arguments_text",
    "parse_strategy",
    "strategy_text",
]
