"""What a native swarm does: the lock, its load and its servers, from the options of Locust.

Promises: values are read by the parsers of a matrix, so they have the same forms and the same errors. Passwords are in
no `repr`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pybench.errors import InputError
from pybench.swarm.addresses import urls_of

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

MOST_CLIENTS_PER_USER = 10_000

AXES = {
    "strategy": ("mutex", "The lock: a name, or NAME(ARGUMENT=VALUE); `pybench strategies` lists all"),
    "keys": ("1000", "Keys (locks) of each worker that its clients choose from"),
    "hold": ("0", "The time between grant and release, such as 2ms or exp(2ms)"),
    "ttl": ("10s", "The length of the lease"),
    "think": ("0", "The pause of a client after its release; same forms as hold"),
}
"""The options that are axes of a matrix: default and meaning."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a native swarm, checked."""

    axes: Mapping[str, str]
    """The axes by name, each with one value as text."""
    clients_per_user: int
    shared_keys: bool
    out: str
    """The run folder; empty for a new one under `results/`."""
    redis: tuple[str, ...] = field(default=(), repr=False)
    postgres: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The settings in the options of Locust. Raises InputError."""
        text = str(options.get("clients_per_user") or "").strip()
        if not text.isdecimal() or not 1 <= int(text) <= MOST_CLIENTS_PER_USER:
            raise InputError(
                f"--clients-per-user: {text!r} is not a whole number from 1 to {MOST_CLIENTS_PER_USER:,}",
                hint="each user of Locust stands for so many clients; 16 is the default",
            )
        settings = cls(
            axes={name: str(options.get(name) or "").strip() or default for name, (default, _) in AXES.items()},
            clients_per_user=int(text),
            shared_keys=bool(options.get("shared_keys")),
            out=str(options.get("out") or "").strip(),
            redis=urls_of(options.get("redis")),
            postgres=urls_of(options.get("postgres")),
        )
        settings.cell(settings.matrix(1))
        return settings

    def matrix(self, clients: int, *, window_s: float = 1.0) -> Matrix:
        """The matrix with one cell of so many clients and one trial of that length. Raises InputError."""
        from pybench.matrix import matrix_from_options
        from pybench.matrix.loading import OPTIONS_HINT

        options = {
            **self.axes,
            "concurrency": max(clients, 1),
            "name": "locust",
            "trials": 1,
            "warmup": "0",
            "duration": f"{max(round(window_s * 1e3), 10)}ms",
            # One lock and one load: a hold beyond the lease is what the user asked for, and the verdict tells it.
            "allow": "hold-beyond-ttl",
            "redis": list(self.redis) or None,
            "postgres": list(self.postgres) or None,
        }
        try:
            return matrix_from_options(os.environ, **options)
        except InputError as error:
            if error.hint != OPTIONS_HINT:
                raise
            raise InputError(error.message, hint="docs/locust.md lists the options, with examples") from None

    def cell(self, matrix: Matrix) -> Cell:
        """The one cell of `matrix`. Raises InputError where an option has several values."""
        from pybench.matrix import expand

        cells = expand(matrix)
        if len(cells) > 1:
            several = [f"--{name} {value}" for name, value in self.axes.items() if "," in value]
            raise InputError(
                f"a swarm drives one lock with one load, and {' and '.join(several) or 'the options'} name "
                f"{len(cells)}",
                hint="give one value for each option; `pybench run` compares several",
            )
        return cells[0]
