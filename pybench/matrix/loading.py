"""A `Matrix` from a file, from options, or from both: an option replaces the value of the file.

All problems are reported at once, one on each line: `file:line:column: problem; correction`, or with the name of the
option in place of the position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from shlex import quote
from typing import Any

from pydantic import ValidationError

from pybench.errors import InputError
from pybench.matrix.backends import Backend, named, require_kind
from pybench.matrix.cells import AXES
from pybench.matrix.fault_kinds import BREAK_MY_SERVERS
from pybench.matrix.faults import merged_texts
from pybench.matrix.file import HINT, Position, read_text
from pybench.matrix.models import Matrix
from pybench.matrix.problems import Path, Problem, raise_all
from pybench.matrix.reader import Document
from pybench.matrix.validators import ERROR_TYPE, meaning
from pybench.notation import BadValue, is_text, nearest, shown, split_list, suggestion
from pybench.strategies import ServerKind

OPTIONS_HINT = "`pybench run --help` lists every option"

_ONE_VALUE = ("name", "seed", "trials", "duration", "warmup")
_BLOCKS = ("axes", "fixed", "exclude", "include", "backends", "thresholds", "allow")
_PARTS_OF_AXES = ("axes", "fixed", "exclude", "include")
_KINDS = tuple(kind.value for kind in ServerKind)
OPTIONS = (*AXES, *_ONE_VALUE, "threshold", "allow", *_KINDS, "servers", "break_my_servers")
"""The options of `matrix_from_options`, and of `load_matrix` besides the file."""
_OTHER_NAMES = {"clients": "concurrency"}
_TOP = tuple(field.alias or name for name, field in Matrix.model_fields.items())
_BACKEND = tuple(field.alias or name for name, field in Backend.model_fields.items())

Flags = dict[Path, str]
"""The option that a path of the matrix came from."""
Spare = dict[str, str | None]
"""The backends that the matrix does not name, each with its address from the environment: kept if strategies need them.
"""
Line = Callable[[Problem], str]
SortKey = tuple[bool, Position]
"""Whether the problem is in an option, and its line and column: problems are sorted in the order of the file."""


def load_matrix(
    path: str | FilePath, text: str | None = None, environment: Mapping[str, str] | None = None, /, **options: object
) -> Matrix:
    """The matrix in the file at `path`; without a `name` in it, the name is that of the file.

    `text` is the content of the file, if it has been read already. `environment` and `options` are those of
    `matrix_from_options`. An axis among the options replaces the axis of the file, thresholds are added, and a server
    replaces all backends of its kind. Raises InputError with every problem and its position.
    """
    document = Document.parse(str(path), read_text(FilePath(path)) if text is None else text)
    raw: dict[str, Any] = {"name": _name_from(FilePath(path)), **document.values}
    _require_no_harm(raw, path)
    flags, spare = _overlay(raw, options, environment or {})

    def line(problem: Problem) -> str:
        flag = _flag(problem.path, flags)
        return f"{flag}: {problem.advice}" if flag else document.line(problem)

    def sort_key(problem: Problem) -> SortKey:
        of_option = _flag(problem.path, flags) is not None
        return of_option, (1, 1) if of_option else document.position(problem)

    # Each line has its own correction, so the hint only names the command that checks the file again.
    hint = f"`pybench plan {quote(str(path))}` checks the file again without measuring"
    return _checked(raw, line, hint, sort_key, spare=spare)


def matrix_from_options(environment: Mapping[str, str] | None = None, /, **options: object) -> Matrix:
    """The matrix described by options alone. None and empty lists count as not given.

    Every axis takes a text, which may hold several values separated by commas, a number, or a list of these. Further
    options: `name`, `seed`, `trials`, `duration`, `warmup` (one value), `threshold` and `allow` (lists), `redis` (a
    URL, or a list of URLs of different servers), `postgres` (a URL), `servers` (`wheel` or `path`; `auto` changes
    nothing), `break_my_servers` (True allows faults of given servers). An address in `environment` is used where
    strategies need its kind of server and no other address of the kind is given. Raises InputError with the
    option of every problem, and TypeError for an unknown option.
    """
    raw: dict[str, Any] = {}
    overlaid, spare = _overlay(raw, options, environment or {})
    flags = {("axes", "strategy"): "--strategy", **overlaid}

    def line(problem: Problem) -> str:
        flag = _flag(problem.path, flags)
        return f"{flag}: {problem.advice}" if flag else problem.advice

    return _checked(raw, line, OPTIONS_HINT, spare=spare)


def matrix_from_mapping(values: Mapping[str, object]) -> Matrix:
    """The matrix in plain values, such as `Matrix.to_dict` gives. Raises InputError with the path of every problem."""
    return _checked(dict(values), lambda problem: problem.sentence, HINT)


def _checked(
    raw: dict[str, Any],
    line: Line,
    hint: str,
    sort_key: Callable[[Problem], SortKey] = lambda _: (True, (1, 1)),
    *,
    spare: Spare | None = None,
) -> Matrix:
    # A block with all its lines commented out is read as None, and counts as not given.
    values = {name: value for name, value in raw.items() if not (value in (None, {}) and name in _BLOCKS)}
    try:
        return Matrix.model_validate(values, context={"spare": spare or {}})
    except ValidationError as error:
        problems = sorted(_problems(error), key=sort_key)
        # Problems of the file come first: without one, the file needs no check.
        raise_all(problems, line, hint=OPTIONS_HINT if sort_key(problems[0])[0] else hint)
        raise AssertionError("a validation error holds at least one problem") from error


def _require_no_harm(raw: Mapping[str, Any], path: str | FilePath) -> None:
    """Raise InputError for a file that allows faults of given servers."""
    allowed = raw.get("allow")
    if isinstance(allowed, list) and BREAK_MY_SERVERS in allowed:
        raise InputError(
            f"{path}: allow: no file may allow {BREAK_MY_SERVERS}",
            hint=f"remove it, and run: pybench run {quote(str(path))} --{BREAK_MY_SERVERS}",
        )


def _name_from(path: FilePath) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:64] or "run"


def _overlay(raw: dict[str, Any], options: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[Flags, Spare]:
    """Put `options` over `raw`, and addresses of `environment` where neither has an address of the kind."""
    flags: Flags = {}
    spare: Spare = {} if raw.get("backends") else dict.fromkeys(_KINDS)
    for name, value in options.items():
        if value is None or value is False or value in ([], ()):
            continue
        flag = f"--{name.replace('_', '-')}"
        _require_text(flag, value)
        if name in AXES:
            _overlay_axis(raw, name, value, flag)
            flags["axes", name] = flag
        elif name in _ONE_VALUE:
            raw[name] = value
            flags[(name,)] = flag
        elif name in ("threshold", "allow", "break_my_servers"):
            block = "thresholds" if name == "threshold" else "allow"
            before = raw.get(block) or []
            added = [BREAK_MY_SERVERS] if name == "break_my_servers" else _listed(value)
            if isinstance(before, list):
                raw[block] = [*before, *added]
                flags |= {(block, len(before) + index): flag for index in range(len(added))}
        elif name in _KINDS:
            _overlay_addresses(raw, ServerKind(name), _listed(value))
            flags[("backends", name)] = flag
            spare.pop(name, None)
        elif name != "servers":
            raise TypeError(f"a matrix has no option {name}: {suggestion(_OTHER_NAMES.get(name, name), OPTIONS)}")
    # After the addresses: a source applies only to servers without an address.
    source = str(options.get("servers") or "auto")
    if source == "auto":
        _offer_addresses(raw, environment, flags, spare)
    else:
        _overlay_source(raw, source, flags)
    return flags, spare


def _overlay_addresses(raw: dict[str, Any], kind: ServerKind, urls: list[Any]) -> None:
    """Replace all backends of `kind` by the servers at `urls`, named after the kind. Raises InputError."""
    try:
        for url in urls:
            require_kind(str(url), kind)
    except BadValue as problem:
        raise InputError(f"--{kind}: {problem.message}", hint=problem.hint) from None
    others = _backends_in(raw)
    if others is not None:
        kept = {name: backend for name, backend in others.items() if _kind_of(name, backend) != kind}
        if kind.value in kept:
            message = f"the backend {kind} of this matrix is not a {kind.label} server"
            raise InputError(f"--{kind}: {message}", hint="rename this backend in the matrix")
        _add_backend(raw, kept, kind, {"url": urls[0]} if len(urls) == 1 else {"urls": urls})


def _offer_addresses(raw: dict[str, Any], environment: Mapping[str, str], flags: Flags, spare: Spare) -> None:
    """Note the addresses of `environment` for spare backends; a backend of a missing kind is added.

    The addresses are parsed only when a strategy needs their backend.
    """
    for kind in ServerKind:
        address, others = environment.get(kind.variable), _backends_in(raw)
        if not address or others is None:
            continue
        if kind.value not in others and kind not in {_kind_of(name, backend) for name, backend in others.items()}:
            _add_backend(raw, others, kind, {})
        elif kind.value not in spare:
            continue
        spare[kind.value] = address
        flags["backends", kind.value] = kind.variable


def _backends_in(raw: dict[str, Any]) -> Mapping[str, Any] | None:
    """The backends named so far, else one of each kind; None where `backends` is not a mapping."""
    backends = raw.get("backends") or {kind: {} for kind in _KINDS}
    return backends if isinstance(backends, Mapping) else None


def _add_backend(raw: dict[str, Any], others: Mapping[str, Any], kind: ServerKind, fields: dict[str, Any]) -> None:
    """Add a backend of `kind`, named after the kind, to `others`: Redis first."""
    added = {kind.value: {"kind": kind.value, **fields}}
    raw["backends"] = {**added, **others} if kind is ServerKind.REDIS else {**others, **added}


def _kind_of(name: str, backend: object) -> ServerKind | None:
    """The kind of a backend that is not checked yet; None where it is not valid."""
    try:
        return named(name, Backend.model_validate(backend or {})).kind
    except ValidationError:
        return None


def _require_text(flag: str, value: object) -> None:
    for one in _listed(value):
        if isinstance(one, str) and not is_text(one):
            raise InputError(f"{flag}: {shown(one)} is not UTF-8", hint=OPTIONS_HINT)


def _listed(value: object) -> list[Any]:
    """`value` as a list; a single value becomes a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _overlay_axis(raw: dict[str, Any], name: str, value: object, flag: str) -> None:
    try:
        texts = [str(one) for one in _listed(value)]
        if name == "faults":
            texts = merged_texts(texts)
        values = texts if AXES[name].has_commas else [one for text in texts for one in split_list(text)]
    except BadValue as problem:
        raise InputError(f"{flag}: {problem.message}", hint=problem.hint or OPTIONS_HINT) from None
    axes, fixed = raw.get("axes") or {}, raw.get("fixed") or {}
    # Otherwise the check of the types reports the problem.
    if isinstance(axes, Mapping) and isinstance(fixed, Mapping):
        raw["axes"] = {**axes, name: values}
        raw["fixed"] = {other: kept for other, kept in fixed.items() if other != name}


def _overlay_source(raw: dict[str, Any], source: str, flags: Flags) -> None:
    """Set `source` for all backends that pybench starts."""
    backends = _backends_in(raw)
    if backends is None:
        return
    raw["backends"] = dict(backends)
    for name, backend in backends.items():
        if backend is None or (isinstance(backend, Mapping) and not {"url", "urls"} & set(backend)):
            raw["backends"][name] = {**(backend or {}), "source": source}
            flags["backends", name, "source"] = "--servers"


def _flag(path: Path, flags: Flags) -> str | None:
    for length in range(len(path), 0, -1):
        if path[:length] in flags:
            return flags[path[:length]]
    return None


def _problems(error: ValidationError) -> Iterator[Problem]:
    for found in error.errors(include_url=False):
        path, context = found["loc"], found.get("ctx", {})
        if found["type"] == ERROR_TYPE and "problems" in context:
            yield from context["problems"]
        elif isinstance(found["input"], list) and path[0] in ("fixed", "include") and path[-1] != "faults":
            yield Problem(path, "a list is given, and one value is needed", "put lists under axes")
        elif found["type"] == "extra_forbidden":
            yield _unknown_key(path)
        elif found["type"] in ("model_type", "model_attributes_type", "dict_type"):
            yield Problem(path, f"{shown(found['input'])} is not a mapping", _example(path))
        elif found["type"] in ("tuple_type", "list_type"):
            yield Problem(path, f"{shown(found['input'])} is not a list", "begin each entry with -")
        elif found["type"] == "too_short":
            yield Problem(path, "the list is empty", "add a value, or leave the key out")
        elif path == ("name",):
            hint = "use up to 64 letters, digits, dots, dashes and underscores, as for the run's folder"
            yield Problem(path, f"{shown(found['input'])} cannot be the name of a run", hint)
        else:
            problem = meaning(found)
            # The path already ends with the name of the part.
            message = problem.message.removeprefix(f"{problem.at[-1]}: ") if problem.at else problem.message
            yield Problem((*path, *problem.at), message, problem.hint)


def _unknown_key(path: Path) -> Problem:
    *parent, key = path
    word = str(key)
    block = str(parent[0]) if parent else None
    if block is None and word in AXES:
        return Problem(path, f"{word} is an axis", f"put {word} under axes or under fixed", of_key=True)
    if block in _PARTS_OF_AXES and word in _TOP:
        return Problem(path, f"{word} is not an axis", f"put {word} at the top level, outside of {block}", of_key=True)
    known = _TOP if block is None else tuple(AXES) if block in _PARTS_OF_AXES else _BACKEND
    message = f"there is no key {shown(word)} {'here' if block is None else f'in {block}'}"
    if block is None and (axis := nearest(word, [*_TOP, *AXES])) in AXES:
        return Problem(path, message, f"did you mean {axis}? put it under axes or under fixed", of_key=True)
    return Problem(path, message, suggestion(word, known), of_key=True)


def _example(path: Path) -> str:
    match path[0]:
        case "backends":
            return "use for example redis: {url: redis://localhost}"
        case "fixed" | "include":
            return "use for example {strategy: mutex, hold: 1ms}"
        case _:
            return "use for example {concurrency: [1, 16]}"
