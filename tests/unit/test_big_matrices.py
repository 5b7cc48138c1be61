"""Matrices of 1,000 cells: what planning, summing up and gathering cost grows with the cells, not with their square."""

from __future__ import annotations


