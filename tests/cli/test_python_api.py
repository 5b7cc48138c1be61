"""`pybench.run` and `pybench.load`: the same as the command, without its messages."""

from __future__ import annotations

import resource
import signal
import threading
from html import escape
from pathlib import Path

import pytest

import pybench
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.matrix.loading import OPTIONS
from pybench.matrix.options import Options

QUICK = {"trials": 1, "warmup": "20ms", "duration": "200ms"}


def test_a_file_is_measured_and_its_record_returned(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "shop.yaml").write_text("axes: {strategy: [none, mutex], concurrency: [8]}\nfixed: {hold: 200us}")
    before = signal.getsignal(signal.SIGINT)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 1, hard))
    run = pybench.run(tmp_path / "shop.yaml", out=tmp_path / "folder", **QUICK)
    assert dict(zip(run.summary["strategy"], run.summary["verdict"], strict=True)) == {
        "none": "UNSAFE",
        "mutex": "SAFE",
    }
    assert run.manifest["name"] == "shop"
    assert run.manifest["matrix"]["given"].startswith("axes:")
    assert (tmp_path / "folder" / "report.html").exists()
    assert pybench.load(tmp_path / "folder").summary.equals(run.summary)
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard - 1, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_options_alone_or_a_parsed_matrix_do_as_well(tmp_path: Path):
    by_options = pybench.run(strategy="mutex", concurrency=["2"], out=tmp_path / "a", **QUICK)
    by_matrix = pybench.run(matrix_from_options(strategy="mutex", concurrency="2", **QUICK), out=tmp_path / "b")
    assert by_options.manifest["command"] == [
        *("pybench", "run", "--strategy", "mutex", "--concurrency", "2"),
        *("--trials", "1", "--warmup", "20ms", "--duration", "200ms"),
    ]
    assert by_matrix.manifest["command"] == []
    assert list(by_options.trials["cell"]) == list(by_matrix.trials["cell"]) == ["mutex concurrency=2"]


def test_it_runs_in_a_thread_that_gets_no_signals(tmp_path: Path):
    runs: list[pybench.Run] = []
    thread = threading.Thread(target=lambda: runs.append(pybench.run(strategy="mutex", out=tmp_path / "f", **QUICK)))
    thread.start()
    thread.join()
    assert len(runs[0].trials) == 1


def test_options_over_a_parsed_matrix_are_a_mistake_of_the_program(tmp_path: Path):
    with pytest.raises(TypeError):
        pybench.run(matrix_from_options(strategy="mutex"), keys="5", out=tmp_path)


def test_invalid_input_is_raised_with_its_hint_and_exit_code(tmp_path: Path):
    with pytest.raises(pybench.PybenchError) as caught:
        pybench.run(tmp_path / "missing.yaml")
    assert caught.value.exit is Exit.BAD_INPUT
    assert caught.value.hint


def test_the_package_names_what_it_offers():
    assert {"run", "load", "Run", "PybenchError", "__version__"} <= set(dir(pybench))
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = pybench.walk  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("concurency", "concurrency"), ("clients", "concurrency"), ("tll", "ttl")]
)
def test_a_misspelt_option_is_refused_with_the_nearest(wrong: str, meant: str):
    with pytest.raises(TypeError, match=rf"has no option {wrong}: did you mean {meant}\?"):
        pybench.run(strategy="mutex", **{wrong: 4})


def test_the_typed_options_are_those_that_a_matrix_takes():
    assert set(Options.__annotations__) == set(OPTIONS)


def test_a_run_in_python_has_the_answer_of_the_command(reference: pybench.Run):
    assert repr(reference).startswith("<Run quickstart: 24 cells, 96 trials; Take ")
    assert "\n" not in repr(reference)
    assert reference.answer.headline in repr(reference)
    assert reference.comparison.choice.locks[0] in reference.answer.headline
    assert reference.exit_code is Exit.OK
    assert len(reference.thresholds) == 12
    assert all(result.passed for result in reference.thresholds)
    html = reference._repr_html_()
    assert "<table" in html
    assert escape(reference.answer.headline) in html


def test_a_quantile_is_that_of_all_samples_of_a_cell(reference: pybench.Run):
    hot = "mutex concurrency=64 hold=200us"
    p50, p99 = (reference.quantile(hot, q) for q in (0.5, 0.99))
    assert p50 is not None
    row = reference.summary.set_index("cell").loc[hot]
    assert p50 == pytest.approx(row["acquire_p50_us"], rel=0.5)
    assert p99 is None or p99 > p50
    assert reference.quantile(hot, 0.5, "hold") == pytest.approx(200, rel=0.5)
    with pytest.raises(KeyError):
        reference.quantile("no such cell", 0.5)


@pytest.fixture(scope="module")
def reference() -> pybench.Run:
    return pybench.load(Path(__file__).parents[2] / "results" / "reference")
