"""Matrices of 1,000 cells: what planning, summing up and gathering cost grows with the cells, not with their square."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from support.trials import record

from pybench.analysis.summary import summarise
from pybench.cli.plan import lines_of
from pybench.matrix import matrix_from_mapping
from pybench.planning.plan import make_plan
