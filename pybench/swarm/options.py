"""The options that a native swarm adds to Locust's command line and to the form of its web page."""

from __future__ import annotations

from typing import Any

from pybench.swarm.addresses import Address
from pybench.swarm.settings import AXES

_SERVER = "Address of your own {} server; without one pybench starts a server on this machine"


def add_options(parser: Any, **_: object) -> None:  # noqa: ANN401 - a parser of Locust, which adds keywords of its own
    """Add the options to `parser`; a listener of Locust's `init_command_line_parser`."""
    for name, (default, meaning) in AXES.items():
        parser.add_argument(f"--{name}", metavar="<value>", default=default, help=meaning)
    parser.add_argument(
        "--clients-per-user",
        metavar="<number>",
        default="16",
        help="How many native clients of locks each user stands for",
    )
    parser.add_argument(
        "--redis",
        metavar="<url>",
        default="",
        type=Address,
        is_secret=True,
        help=_SERVER.format("Redis or Valkey") + "; several addresses, separated by commas, for locks that need them",
    )
    parser.add_argument(
        "--postgres", metavar="<url>", default="", type=Address, is_secret=True, help=_SERVER.format("Postgres")
    )
    parser.add_argument(
        "--shared-keys",
        action="store_true",
        default=False,
        help="All workers use the same keys. Only locks that are judged by their writes get a verdict then",
    )
    parser.add_argument(
        "--out", metavar="<folder>", default="", help="The run folder; by default a new one under results/"
    )
