"""Locks that people publish and that are wrong, as small programs with redis-py; each shows how it goes wrong.

A recipe is a file: the program, `wrong` with the interleaving that breaks it, and `right` with the same interleaving
and a lock of pybench. Nothing is left to chance: each step waits for the one before.
"""
