"""Every strategy: what it does on the wire, what it promises, when it is the right one.

To add a strategy, add its entry to the module of its family. Parsing, the plan, the matrix's schema and `pybench
strategies` read it from there; the lock itself is in the core under the same name.
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
