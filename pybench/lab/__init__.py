"""The lab: experiments that show a lock right or wrong on real servers, within seconds.

    experiment (data)  +  Stage (servers, locks, names, time)  ->  Case (figures, what was seen)  ->  Findings

An experiment is a file in `pybench/lab/experiments/` and a line in `pybench/lab/catalogue.py`. It arranges what happens
and reports what it saw; `findings` alone decides what that means, `telling` and `page` alone put it into words.
This file imports nothing: a process of an experiment loads only what its role needs.
"""

from __future__ import annotations
