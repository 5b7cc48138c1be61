"""All experiments by name, in the order in which the command line and the manual list them."""

from __future__ import annotations

from pybench.lab.experiment import Experiment
from pybench.lab.experiments import oversell

EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (oversell.OVERSELL,)}
