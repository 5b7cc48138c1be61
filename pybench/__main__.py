"""`python -m pybench` is the `pybench` command."""

from __future__ import annotations

from pybench.cli import main

if __name__ == "__main__":
    main()
