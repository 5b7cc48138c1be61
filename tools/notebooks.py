"""Executes the notebooks in notebooks/, and writes their rendered copies and the pictures of their README.

    python -m tools.notebooks

rewrites `notebooks/*.ipynb` from `notebooks/*.py` after a source, a run in results/ or a picture of `pybench.plots` was
changed. A test compares; no output is edited by hand.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
PICTURES = FOLDER / "images"
SHOWN = {
    "choosing-a-strategy": "plots.standings(run)",
    "retry-and-fairness": 'plots.scatter(run, "commands_per_grant", "longest_wait_us", crowd)',
    "redis-against-postgres": "plots.sessions(run, crowd)",
    "reading-histograms": 'plots.percentiles(run, f"cell in {rivals}")',
    "comparing-two-runs": 'plots.ratios(changes, "grants_per_s")',
}
"""The picture of each notebook in notebooks/README.md: the output of the cell that ends with this line."""
PARAMETERS = "parameters"
"""The tag of the cell with the paths of the runs."""


def read(source: Path) -> NotebookNode:
    """The notebook of a source, without outputs."""
    return jupytext.read(source)


def with_parameters(notebook: NotebookNode, given: Mapping[str, object]) -> NotebookNode:
    """`notebook` with these values in its cell of parameters; it keeps the others."""
    (cell,) = (one for one in notebook.cells if PARAMETERS in one.metadata.get("tags", ()))
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in given.items())
    return notebook


def execute(notebook: NotebookNode, folder: Path = FOLDER) -> NotebookNode:
    """`notebook`, executed by a kernel in `folder`. Raises `CellExecutionError` where a cell fails."""
    where = {"metadata": {"path": str(folder)}}
    with _quiet_jupyter() as private:
        # Over sockets in a folder of this user alone, not over TCP.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{private}/kernel"}})
        NotebookClient(notebook, timeout=100, kernel_name="python3", resources=where, config=config).execute()
    return notebook


def clean(notebook: NotebookNode) -> NotebookNode:
    """`notebook` without what changes each time it is executed."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {name: value for name, value in cell.metadata.items() if name == "tags"}
    kept = {name: notebook.metadata[name] for name in ("jupytext", "kernelspec") if name in notebook.metadata}
    notebook.metadata = NotebookNode({**kept, "language_info": {"name": "python"}})
    return notebook


def shown_picture(notebook: NotebookNode, line: str) -> bytes:
    """The picture that the cell with this last line has drawn."""
    (cell,) = (one for one in notebook.cells if one.cell_type == "code" and one.source.endswith(line))
    (data,) = (output.data for output in cell.outputs)
    return base64.b64decode(data["image/png"])


@contextmanager
def _quiet_jupyter() -> Iterator[str]:
    """A folder for what Jupyter would write into the home directory. Keeps its messages at the start off."""
    with tempfile.TemporaryDirectory(prefix="nb-") as folder:
        ours = {"IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder, "JUPYTER_PLATFORM_DIRS": "1"}
        ours |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield folder
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def main() -> None:
    """Rewrite every rendered copy, and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for source in SOURCES:
        notebook = clean(execute(read(source)))
        nbformat.write(notebook, source.with_suffix(".ipynb"))
        (PICTURES / f"{source.stem}.png").write_bytes(shown_picture(notebook, SHOWN[source.stem]))
        print(f"{source.stem}: {source.with_suffix('.ipynb').stat().st_size // 1000} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
