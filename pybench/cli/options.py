"""The options that several commands share: the axes of a matrix, its schedule, its servers.

This module only declares the options; `pybench.matrix` parses their values, as it parses those of a file.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pybench.errors import InputError
from pybench.matrix.cells import AXES

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.axes import Axis


def _with_default(help_: str, default: str | None) -> str:
    # Only the text names the default: the option itself has none, because a file may set the axis.
    return help_ if default is None else f"{help_}  [default: {default}]"


def _scheduled(metavar: str, help_: str, default: str) -> Any:  # noqa: ANN401 - an option's description is typer's own
    return typer.Option(metavar=metavar, rich_help_panel="Schedule", help=_with_default(help_, default))


MatrixArgument = Annotated[Path | None, typer.Argument(metavar="MATRIX", help="The matrix, a YAML file.")]
Trials = Annotated[str | None, _scheduled("N", "Trials per cell.", "5")]
Duration = Annotated[str | None, _scheduled("TIME", "Measured time of each trial.", "2s")]
Warmup = Annotated[str | None, _scheduled("TIME", "Length of the warm-up, or `steady`.", "500ms")]
Seed = Annotated[str | None, _scheduled("N", "Same seed: same keys, holds and order.", "1")]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", rich_help_panel="Schedule", help="Shorter and fewer trials: for a first look, not a proof."
    ),
]
Name = Annotated[str | None, typer.Option(metavar="TEXT", rich_help_panel="Schedule", help="Name of the run.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT", rich_help_panel="Schedule", help="Measure cells that are refused otherwise: hold-beyond-ttl."
    ),
]
Threshold = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        rich_help_panel="Schedule",
        help="Such as 'acquire.p99 < 50ms' or 'violations == 0'. A missed threshold exits 10.",
    ),
]
Redis = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        rich_help_panel="Servers",
        help="URL of a running server: redis://[USER:PASSWORD@]HOST[:PORT][/DB] or unix:///PATH. Repeat the option for "
        "multi-server locks. Replaces the file's Redis servers. If neither names one, PYBENCH_REDIS_URL is used.",
    ),
]
Postgres = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        rich_help_panel="Servers",
        help="URL of a running database: postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DB, or "
        "postgresql:///DB?host=/FOLDER. Replaces the file's databases. If neither names one, "
        "PYBENCH_POSTGRES_URL is used.",
    ),
]
Servers = Annotated[
    str,
    typer.Option(
        metavar="auto|wheel|path",
        rich_help_panel="Servers",
        help="Servers to start if none is named: those of Python wheels, those on PATH, or (auto) the first found.",
    ),
]
BreakMyServers = Annotated[
    bool,
    typer.Option(
        "--break-my-servers",
        rich_help_panel="Servers",
        help="Also cause faults of the servers that you name: client-kill, script-flush, slow and pause.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
Summary = Annotated[
    bool,
    typer.Option(
        "--summary",
        rich_help_panel="Record",
        help="Append the answer and the thresholds to the GitHub job summary, $GITHUB_STEP_SUMMARY.",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", rich_help_panel="Servers", help="Send load to another machine without asking.")
]


@dataclass(frozen=True, slots=True)
class Asked:
    """The matrix that a command line describes."""

    file: Path | None
    """The matrix file."""
    options: dict[str, Any]
    """By their names in `pybench.matrix`; options that were not given are None or empty."""
    quick: bool

    @property
    def given(self) -> list[str]:
        """The given arguments, as the command line names them; without server options, which `--resume` accepts."""
        words = {"a matrix": self.file, "--quick": self.quick} | {
            f"--{name.replace('_', '-')}": value
            for name, value in self.options.items()
            if name not in ("redis", "postgres", "servers")
        }
        return [word for word, value in words.items() if value]

    def read(self) -> tuple[Matrix, str | None]:
        """The matrix, shortened if `--quick` was given, and the text of its file. Raises InputError."""
        from pybench.matrix import read_text
        from pybench.planning.plan import quickened
        from pybench.running.job import read_matrix

        if self.file is None and not self.options["strategy"]:
            raise InputError(
                "neither a matrix file nor a strategy is given",
                hint="pybench init writes a matrix file; pybench run -s mutex --concurrency 1,64 needs none",
            )
        text = None if self.file is None else read_text(self.file)
        matrix = read_matrix(self.file, text, **self.options)
        return quickened(matrix) if self.quick else matrix, text


def takes_matrix(command: Callable[..., int]) -> Callable[..., int]:
    """Give `command` the argument and options that describe a matrix, collected into its keyword `asked`."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "asked"]
    options = [*(_parameter(axis) for axis in AXES.values() if axis.name != "backend"), *_SHARED]
    shown = [_MATRIX, *options, *own]

    @functools.wraps(command)
    def collecting(**values: Any) -> int:  # noqa: ANN401 - typer passes each option in its own type
        file, quick = values.pop("matrix"), values.pop("quick")
        given = {option.name: values.pop(option.name) for option in options if option.name != "quick"}
        return command(**values, asked=Asked(file, given, quick=quick))

    collecting.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    collecting.__annotations__ = {parameter.name: parameter.annotation for parameter in shown} | {"return": int}
    return collecting


def _parameter(axis: Axis) -> inspect.Parameter:
    flags = [axis.flag, *(name for name in (axis.also, axis.short) if name)]
    default = None if axis.default is None else axis.text(axis.default)
    shown = _with_default(f"{axis.meaning.replace('`', '')}.", default)
    option = typer.Option(*flags, metavar=axis.metavar, rich_help_panel="Axes", help=shown)
    return _keyword(axis.name, Annotated[list[str] | None, option])


def _keyword(name: str, annotation: Any, default: object = None) -> inspect.Parameter:  # noqa: ANN401 - a type as data
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_MATRIX = inspect.Parameter("matrix", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=MatrixArgument)
_SHARED = (
    _keyword("trials", Trials),
    _keyword("duration", Duration),
    _keyword("warmup", Warmup),
    _keyword("seed", Seed),
    _keyword("quick", Quick, default=False),
    _keyword("name", Name),
    _keyword("threshold", Threshold),
    _keyword("allow", Allow),
    _keyword("redis", Redis),
    _keyword("postgres", Postgres),
    _keyword("servers", Servers, default="auto"),
    _keyword("break_my_servers", BreakMyServers, default=False),
)
"""The schedule and the servers, in the order in which `--help` lists them."""
