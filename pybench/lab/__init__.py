"""The lab: experiments that show a lock right or wrong on real servers, within seconds.

    experiment (data)  +  Stage (servers, locks, names, time)  ->  Case (figures, what was seen)  ->  Findings

An experiment is a file in `pybench/lab/experiments/` and a line in `pybench/lab/catalogue.py`. It arranges what happens
and reports what it saw; `findings` alone decides what that means, `telling` and `page` alone put it into words.
"""

from __future__ import annotations

from pybench.lab.carrying_out import carry_out
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.experiment import Experiment, Parameter, Time
from pybench.lab.findings import Case, ClientRow, Expected, Figure, Findings, Seen
from pybench.lab.locks import ChosenLock
from pybench.lab.stage import Given, Stage

__all__ = [
    "EXPERIMENTS",
    "Case",
    "ChosenLock",
    "ClientRow",
    "Expected",
    "Experiment",
    "Figure",
    "Findings",
    "Given",
    "Parameter",
    "Seen",
    "Stage",
    "Time",
    "carry_out",
]
