"""The notebooks in notebooks/: their rendered copies are what their sources give now, on any run and from anywhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import pybench
from pybench.errors import PybenchError
from tools import notebooks

README = notebooks.FOLDER / "README.md"
RESULTS = notebooks.ROOT / "results"
MOST_BYTES = 3_000_000
AGAIN = "python -m tools.notebooks writes notebooks/*.ipynb anew"

each_notebook = pytest.mark.parametrize("source", notebooks.SOURCES, ids=lambda source: source.stem)


def source(name: str) -> Path:
    return notebooks.FOLDER / f"{name}.py"


def values_of(notebook: nbformat.NotebookNode) -> list[Any]:
    """The value of the last line of each code cell, executed here: a kernel takes seconds to start."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            *lines, last = ast.parse(cell.source).body
            shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
            exec(compile(ast.Module([*lines, *([] if shown else [last])], []), "cell", "exec"), namespace)
            values.append(eval(compile(shown, "cell", "eval"), namespace) if shown else None)
    return values


def text_of(value: object) -> str:
    """What a page shows of a value: Markdown and tables as their sources, pictures as their text alternative."""
    # A figure of matplotlib has the method for HTML, and returns nothing.
    texts = (getattr(value, method, lambda: None)() for method in ("_repr_markdown_", "_repr_html_"))
    return next((str(text) for text in texts if text is not None), repr(value))


def rendered_texts(notebook: nbformat.NotebookNode) -> list[str]:
    """The same of a rendered copy; `None` for a cell that shows nothing."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(output.output_type == "execute_result" for cell in cells for output in cell.outputs)
    data = [cell.outputs[0].data if cell.outputs else {"text/plain": "None"} for cell in cells]
    kinds = ("text/markdown", "text/html", "text/plain")
    return [next(one[kind] for kind in kinds if kind in one) for one in data]


@pytest.fixture(scope="module")
def own_run(tmp_path_factory) -> pybench.Run:
    """A run as a user might have: short, two locks, with fewer trials than a comparison needs."""
    return pybench.run(
        strategy=["mutex", "pg-advisory"],
        retry=["fixed", "full-jitter"],
        concurrency=[1, 8],
        keys=4,
        trials=2,
        duration="200ms",
        warmup="50ms",
        out=tmp_path_factory.mktemp("own") / "run",
    )


def test_there_are_five():
    assert {one.stem for one in notebooks.SOURCES} == set(notebooks.SHOWN)
    assert len(notebooks.SOURCES) == 5


@each_notebook
def test_a_rendered_copy_has_the_cells_of_its_source(source):
    copy = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(copy)
    cells = [(cell.cell_type, cell.source) for cell in copy.cells]
    assert cells == [(cell.cell_type, cell.source) for cell in notebooks.read(source).cells], AGAIN


@each_notebook
def test_a_rendered_copy_shows_what_its_source_gives(source, monkeypatch):
    monkeypatch.chdir(notebooks.FOLDER)
    copy = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert rendered_texts(copy) == [text_of(value) for value in values_of(notebooks.read(source))], AGAIN


@each_notebook
def test_a_notebook_reads_the_run_of_its_user(source, own_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = str(own_run.path)
    given = {"OLD": folder, "NEW": folder, "AGAIN": None} if "comparing" in source.stem else {"RUN": folder}
    values = values_of(notebooks.with_parameters(notebooks.read(source), given))
    assert "mutex" in "".join(text_of(value) for value in values)


@pytest.mark.usefixtures("no_running_loop")
def test_a_kernel_gives_the_same_in_a_folder_of_its_own(tmp_path):
    """The rendered copies come from a kernel, as a user's do; here without the folders of the repository."""
    given = {name: str(RESULTS / "persistence" / name) for name in ("before", "after", "again")}
    given = {"OLD": given["before"], "NEW": given["after"], "AGAIN": given["again"]}
    plain = notebooks.read(source("comparing-two-runs"))
    executed = notebooks.execute(notebooks.with_parameters(plain, given), tmp_path)
    copy = nbformat.read(source("comparing-two-runs").with_suffix(".ipynb"), as_version=4)
    assert rendered_texts(executed) == rendered_texts(copy)
    pictures = [
        output.data for cell in executed.cells for output in cell.get("outputs", ()) if "image/png" in output.data
    ]
    assert len(pictures) == 4


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("choosing-a-strategy", {"RUN": "results/nowhere"}, "no run folder results/nowhere"),
        ("retry-and-fairness", {"RUN": str(RESULTS / "reference")}, "only one value of retry"),
        ("redis-against-postgres", {"RUN": str(RESULTS / "waiting")}, "no lock on Postgres"),
        ("comparing-two-runs", {"NEW": str(RESULTS / "waiting")}, "nothing to compare"),
    ],
)
def test_a_notebook_says_what_a_run_lacks(name, given, message, monkeypatch):
    monkeypatch.chdir(notebooks.FOLDER)
    with pytest.raises(PybenchError, match=message) as raised:
        values_of(notebooks.with_parameters(notebooks.read(source(name)), given))
    assert raised.value.hint


def test_histograms_need_samples(tmp_path):
    run = pybench.run(strategy="mutex", duration="20ms", warmup="10ms", trials=1, out=tmp_path / "run")
    given = {"RUN": str(run.path)}
    with pytest.raises(PybenchError, match="this notebook needs one"):
        values_of(notebooks.with_parameters(notebooks.read(source("reading-histograms")), given))


@each_notebook
def test_readme_shows_a_picture_of_each_notebook(source):
    copy = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    picture = notebooks.PICTURES / f"{source.stem}.png"
    assert picture.read_bytes() == notebooks.shown_picture(copy, notebooks.SHOWN[source.stem]), AGAIN
    for link in (f"({source.stem}.ipynb)", f"(images/{picture.name})", f"{source.stem}.py"):
        assert link in README.read_text(encoding="utf-8")


def test_the_copies_are_small_and_name_no_machine():
    copies = [one.with_suffix(".ipynb") for one in notebooks.SOURCES]
    assert sum(one.stat().st_size for one in copies) < MOST_BYTES
    for copy in copies:
        assert not re.search(r"/(?:home|root|tmp|work|Users)/", copy.read_text(encoding="utf-8")), copy.name
