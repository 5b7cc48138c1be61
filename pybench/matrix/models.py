"""The matrix, parsed and checked: varied and fixed axes, servers, and thresholds.

Promises: every `Matrix` can be expanded: its parts do not contradict each other, and it has at least one strategy and
at most `MOST_CELLS` cells. The plan refuses valid cells that cannot be measured.
"""

from __future__ import annotations

import re
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pybench.matrix.backends import Backend, at_address, named
from pybench.matrix.cells import AXES
from pybench.matrix.checks import backends_named, given, guard_backends_named, places_of, problems_of, strategies_of
from pybench.matrix.durations import MS, S, format_duration, parse_duration
from pybench.matrix.fault_kinds import BREAK_MY_SERVERS
from pybench.matrix.notations import BACKEND_NAME
from pybench.matrix.places import parts_of_place
from pybench.matrix.problems import Problem
from pybench.matrix.thresholds import Threshold, parse_threshold, threshold_schema
from pybench.matrix.validators import AS_WRITTEN, ERROR_TYPE, annotation, reads
from pybench.matrix.warmups import Warmup
from pybench.notation import BadValue, shown
from pybench.strategies import CATALOGUE, ServerKind

SCHEMA_NUMBER: Final = 1
MOST_TRIALS = 1_000
HIGHEST_SEED = 2**63 - 1

_STRICT = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


def _as_list(value: object) -> object:
    """`value` as a list; a single value becomes a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _one_or_more(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


def _model(name: str, doc: str, *, of_lists: bool) -> type[BaseModel]:
    """A model with one optional field for each axis; `model_fields_set` has the axes that were given."""
    fields: dict[str, Any] = {}
    for axis in AXES.values():
        one = annotation(axis)
        shape = one
        if of_lists:
            schema = _one_or_more(TypeAdapter(one).json_schema())
            several = GenericAlias(tuple, (one, ...))
            shape = Annotated[several, BeforeValidator(_as_list), Field(min_length=1), WithJsonSchema(schema)]
        fields[axis.name] = (shape, Field(default=None, description=axis.sentence))
    return create_model(name, __config__=_STRICT, __doc__=doc, **fields)


if TYPE_CHECKING:

    class Axes(BaseModel):
        """Axis -> its values."""

    class Fixed(BaseModel):
        """Axis -> its one value."""
else:
    Axes = _model("Axes", "Axis -> its values: a list, or a single value.", of_lists=True)
    Fixed = _model("Fixed", "Axis -> its one value.", of_lists=False)


def _positive_duration(value: object) -> int:
    ns = parse_duration(value)
    if ns == 0:
        raise BadValue(f"{shown(value)} is out of range", hint="use a duration above 0, for example 2s")
    return ns


def _allowed(value: object) -> str:
    """A word of `allow`. `BREAK_MY_SERVERS` comes with its own option, and is offered to nobody who writes a file."""
    if value not in ("hold-beyond-ttl", BREAK_MY_SERVERS):
        raise BadValue(f"{shown(value)} is not supported", hint="use hold-beyond-ttl")
    return str(value)


def _backends(value: object) -> object:
    if not isinstance(value, dict):
        return value
    for name in value:
        if not re.fullmatch(BACKEND_NAME, str(name)):
            raise BadValue(f"{shown(name)} cannot name a backend", hint="use lower-case letters, digits, - and _")
    return {name: {} if backend is None else backend for name, backend in value.items()}


def _with_names(backends: dict[str, Backend]) -> dict[str, Backend]:
    return {name: named(name, backend) for name, backend in backends.items()}


def _one_of_each_kind() -> dict[str, Backend]:
    return _with_names({kind.value: Backend() for kind in ServerKind})


_DURATION_SCHEMA = {"anyOf": [{"const": 0}, {"type": "string"}], "examples": ["2s", "500ms"]}
_WARMUP_SCHEMA = {**_DURATION_SCHEMA, "examples": ["500ms", "steady", "steady(at_most=5s)"]}


class Matrix(BaseModel):
    """The cells to measure: the product of `axes` without `exclude` and with `include`, on all suitable backends."""

    model_config = _STRICT

    schema_number: Literal[1] = Field(
        default=SCHEMA_NUMBER, alias="schema", description="The version of the schema of this file."
    )
    name: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = (
        Field(default="run", description="The name of the run and of its folder.", examples=["quickstart"])
    )
    seed: Annotated[int, Field(ge=0, le=HIGHEST_SEED), AS_WRITTEN] = Field(
        default=1, description="The same seed gives the same keys, holds, backoffs, arrivals and order of cells."
    )
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS), AS_WRITTEN] = Field(
        default=5, description="How often each cell is measured; confidence intervals are computed over trials."
    )
    duration_ns: Annotated[int, PlainValidator(reads(_positive_duration)), WithJsonSchema(_DURATION_SCHEMA)] = Field(
        default=2 * S,
        alias="duration",
        description="The length of the measured window of one trial.",
        json_schema_extra={"default": format_duration(2 * S)},
    )
    warmup: Annotated[
        Warmup,
        PlainValidator(reads(Warmup.parse)),
        PlainSerializer(attrgetter("text"), return_type=str),
        WithJsonSchema(_WARMUP_SCHEMA),
    ] = Field(
        default_factory=lambda: Warmup(500 * MS),
        description="The length of the warm-up before the window, or `steady`: until the figures are steady. "
        "Violations in the warm-up count.",
        json_schema_extra={"default": format_duration(500 * MS)},
    )
    axes: Axes = Field(
        default_factory=Axes,
        description="Axis -> its values; every combination is a cell.",
        examples=[{"strategy": ["naive", "mutex"], "concurrency": [1, 16]}],
    )
    fixed: Fixed = Field(
        default_factory=Fixed,
        description="Axis -> the value of all cells.",
        examples=[{"hold": "1ms", "ttl": "10s"}],
    )
    exclude: tuple[Axes, ...] = Field(
        default=(),
        description="Cells to leave out: an entry excludes the cells that match all its axes.",
        examples=[[{"strategy": "none", "keys": 1000}]],
    )
    include: tuple[Fixed, ...] = Field(
        default=(),
        description="Additional cells, one for each entry. Other axes take their fixed or default values.",
        examples=[[{"strategy": "mutex", "retry": "none"}]],
    )
    backends: Annotated[dict[str, Backend], BeforeValidator(reads(_backends)), AfterValidator(_with_names)] = Field(
        default_factory=_one_of_each_kind,
        description="Name -> server. Without backends, pybench starts the Redis and Postgres that the strategies need.",
        examples=[{"mine": {"url": "redis://:${REDIS_PASSWORD}@localhost:6379/0"}, "postgres": {}}],
    )
    thresholds: tuple[
        Annotated[Threshold, PlainValidator(reads(parse_threshold)), WithJsonSchema(threshold_schema())], ...
    ] = Field(
        default=(),
        description="Conditions on every cell; where one fails, the exit code is 10.",
        examples=[["violations == 0"]],
    )
    allow: tuple[
        Annotated[str, PlainValidator(reads(_allowed)), WithJsonSchema({"const": "hold-beyond-ttl", "type": "string"})],
        ...,
    ] = Field(
        default=(),
        description="Kinds of cells that the plan measures although it usually refuses them.",
        examples=[["hold-beyond-ttl"]],
    )

    @model_validator(mode="after")
    def _names_agree(self, info: ValidationInfo) -> Matrix:
        problems = [*self._settle_spare_backends(info.context or {}), *problems_of(self)]
        if problems:
            raise PydanticCustomError(
                ERROR_TYPE, "the parts of the matrix contradict each other", {"problems": problems}
            )
        return self

    def _settle_spare_backends(self, context: dict[str, Any]) -> list[Problem]:
        """Drop the default and `spare` backends that no strategy needs, and set the addresses of the others.

        Returns the problems with the addresses.
        """
        by_default = () if "backends" in self.model_fields_set else self.backends
        spare: dict[str, str | None] = {**dict.fromkeys(by_default), **context.get("spare", {})}
        places = [place for _, _, found in places_of(self) for place in found]
        requested = [place for _, place in (*backends_named(self), *guard_backends_named(self))]
        wanted = {name for place in (*places, *requested) for name in parts_of_place(place)}
        kinds = {kind for strategy in strategies_of(self) for kind in CATALOGUE[strategy].server_kinds}
        kept = {
            name: backend
            for name, backend in self.backends.items()
            if name not in spare or name in wanted or backend.kind in kinds
        }
        problems = []
        for name, backend in list(kept.items()):
            try:
                kept[name] = at_address(backend, spare.get(name))
            except BadValue as problem:
                problems.append(Problem(("backends", name, "url"), problem.message, problem.hint))
        # The model is frozen, so the field is set here directly. Without strategies, other checks report the problem.
        self.__dict__["backends"] = kept or self.backends
        return problems

    @property
    def warmup_ns(self) -> int:
        """The longest that the warm-up of a trial may take, in nanoseconds."""
        return self.warmup.longest_ns

    @property
    def secrets(self) -> frozenset[str]:
        """The passwords of its addresses, in every form in which other text may contain them."""
        return frozenset().union(*(backend.secrets for backend in self.backends.values()))

    def to_dict(self) -> dict[str, Any]:
        """The matrix in canonical text, passwords masked; `matrix_from_mapping` reads it back to an equal matrix."""

        def texts(part: Axes | Fixed) -> dict[str, Any]:
            return {name: _texts(name, value) for name, value in given(part).items()}

        return {
            "schema": self.schema_number,
            "name": self.name,
            "seed": self.seed,
            "trials": self.trials,
            "duration": format_duration(self.duration_ns),
            "warmup": self.warmup.text,
            "axes": texts(self.axes),
            "fixed": texts(self.fixed),
            "exclude": [texts(part) for part in self.exclude],
            "include": [texts(part) for part in self.include],
            "backends": {name: backend.to_dict() for name, backend in self.backends.items()},
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "allow": list(self.allow),
        }


def _texts(name: str, value: Any) -> Any:  # noqa: ANN401 - one parsed value of any axis, or a list of them
    """The text of a value, or a list of texts for a list. A strategy is a pair, and not a list of two values."""
    text = AXES[name].text
    several = isinstance(value, tuple) and not (name == "strategy" and isinstance(value[0], str))
    return [text(one) for one in value] if several else text(value)
