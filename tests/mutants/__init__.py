"""Locks broken on purpose, and what finds each: `python -m tests.mutants` prints the table, `make mutants` runs it."""
