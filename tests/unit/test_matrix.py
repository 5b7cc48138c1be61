from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.matrix import INIT_TEXT, Matrix, expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.cells import CELL_COLUMNS
from pybench.matrix.values import Distribution

EXAMPLES = sorted(Path("examples").glob("*.yaml"))


def ids(matrix: Matrix) -> list[str]:
    return [cell.id for cell in expand(matrix)]


def written(folder: Path, text: str) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_matrix_of_one_strategy_has_every_default():
    matrix = matrix_from_options(strategy="mutex")
    (cell,) = expand(matrix)
    assert (matrix.trials, matrix.duration_ns, matrix.warmup_ns, matrix.seed) == (5, 2_000_000_000, 500_000_000, 1)
    assert (cell.id, cell.concurrency, cell.keys, cell.ttl_ms, cell.threads, cell.poll) == (
        "mutex",
        1,
        1,
        10_000,
        1,
        "block",
    )
    texts = [cell.hold.text, cell.think.text, cell.retry.text, cell.connections.text, cell.key_choice.text]
    assert texts == ["0", "0", "full-jitter", "shared(4)", "uniform"]
    assert (cell.to_core()["loop"], cell.after_lease, cell.appendfsync, cell.backend) == (
        {"kind": "closed"},
        "continue",
        "off",
        "redis",
    )
    assert (matrix.backends["redis"].name, matrix.backends["redis"].url) == ("redis", None)


def test_the_axes_make_a_product_in_the_order_of_the_matrix():
    matrix = matrix_from_options(strategy="naive,mutex", concurrency="16,1", hold="1ms")
    assert ids(matrix) == [
        "naive concurrency=16 hold=1ms",
        "naive hold=1ms",
        "mutex concurrency=16 hold=1ms",
        "mutex hold=1ms",
    ]


def test_a_single_value_stands_for_a_list_of_one():
    several = matrix_from_mapping({"axes": {"strategy": ["mutex"], "hold": ["1ms"]}})
    assert matrix_from_mapping({"axes": {"strategy": "mutex", "hold": "1ms"}}) == several


def test_exclude_drops_the_cells_that_match_every_axis_of_an_entry():
    matrix = matrix_from_mapping(
        {
            "axes": {"strategy": ["none", "mutex"], "concurrency": [1, 2, 3]},
            "exclude": [{"strategy": "none", "concurrency": [2, 3]}, {"concurrency": 3}, {}],
        }
    )
    assert ids(matrix) == ["none", "mutex", "mutex concurrency=2"]


def test_include_adds_single_cells_and_repeats_none():
    matrix = matrix_from_mapping(
        {
            "axes": {"strategy": ["mutex"], "concurrency": [1, 2]},
            "fixed": {"hold": "1ms"},
            "include": [
                {"strategy": "naive", "keys": 9},
                {"strategy": "mutex"},
                {"strategy": "mutex", "hold": "1000us"},
                {"strategy": "mutex", "hold": "2ms"},
            ],
        }
    )
    assert ids(matrix) == [
        "mutex hold=1ms",
        "mutex concurrency=2 hold=1ms",
        "naive hold=1ms keys=9",
        "mutex hold=2ms",
    ]


def test_includes_alone_are_a_matrix():
    assert ids(matrix_from_mapping({"include": [{"strategy": "mutex"}, {"strategy": "none"}]})) == ["mutex", "none"]


def test_every_backend_is_measured_when_none_is_named():
    backends = {"redis": {}, "valkey": {"source": "path"}}
    mapping = {"axes": {"strategy": "mutex"}, "backends": backends, "include": [{"strategy": "none"}]}
    assert ids(matrix_from_mapping(mapping)) == ["mutex", "mutex backend=valkey", "none", "none backend=valkey"]
    assert ids(matrix_from_mapping({**mapping, "fixed": {"backend": "valkey"}})) == [
        "mutex backend=valkey",
        "none backend=valkey",
    ]


def test_a_rate_makes_the_loop_open():
    closed, opened = expand(
        matrix_from_mapping(
            {
                "axes": {"strategy": "mutex"},
                "include": [{"strategy": "mutex", "rate": "5000/s", "arrivals": "poisson", "max_in_flight": 7}],
            }
        )
    )
    assert closed.to_core()["loop"] == {"kind": "closed"}
    assert opened.to_core()["loop"] == {
        "kind": "open",
        "rate_per_s": 5000.0,
        "arrivals": "poisson",
        "max_in_flight": 7,
    }
    assert opened.id == "mutex arrivals=poisson max_in_flight=7 rate=5000/s"
    of_open_loops = ("rate_per_s", "arrival_process", "max_in_flight")
    assert [closed.columns()[name] for name in of_open_loops] == [None, None, None]
    assert [opened.columns()[name] for name in of_open_loops] == [5_000.0, "poisson", 7]


def test_every_axis_is_a_column_of_its_cells_whether_the_matrix_names_it_or_not():
    (cell,) = expand(matrix_from_mapping({"fixed": {"strategy": "mutex", "ttl": "50ms", "read_share": 0}}))
    columns = cell.columns()
    assert {"cell", "server", *columns} == set(CELL_COLUMNS)
    assert (columns["ttl_ms"], columns["read_share"], columns["hold"]) == (50, 0.0, "0")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_matrix_reads_back_from_its_own_text(path):
    matrix = load_matrix(path)
    again = matrix_from_mapping(matrix.to_dict())
    assert again == matrix
    assert expand(again) == expand(matrix)
    assert again.to_dict() == matrix.to_dict()


def test_what_init_writes_is_a_matrix(tmp_path):
    matrix = load_matrix(written(tmp_path, INIT_TEXT))
    assert matrix.name == "my-locks"
    assert len(expand(matrix)) == 16


def test_a_matrix_without_a_name_is_called_as_its_file(tmp_path):
    assert load_matrix(written(tmp_path, "axes: {strategy: mutex}\n")).name == "matrix"
    spaced = written(tmp_path, "axes: {strategy: mutex}\n").rename(tmp_path / "-my old matrix (2).yaml")
    assert load_matrix(spaced).name == "my-old-matrix-2"


def test_anchors_and_merges_are_followed(tmp_path):
    includes = "- {<<: *base, strategy: mutex}\n- {<<: *base, strategy: none, keys: 9}\n"
    text = "fixed: &base {hold: 1ms, keys: 5}\ninclude:\n" + includes
    assert ids(load_matrix(written(tmp_path, text))) == ["mutex hold=1ms keys=5", "none hold=1ms keys=9"]


def test_blocks_with_every_line_commented_out_count_as_absent(tmp_path):
    text = "axes: {strategy: mutex}\nfixed:\nexclude:\nthresholds:\nbackends:\nallow:\n"
    assert ids(load_matrix(written(tmp_path, text))) == ["mutex"]


def test_words_that_older_yaml_reads_as_false_are_text(tmp_path):
    (cell,) = expand(load_matrix(written(tmp_path, "fixed: {strategy: none, appendfsync: off}\n")))
    assert (cell.strategy, cell.appendfsync) == ("none", "off")


def test_options_take_the_place_of_what_the_file_says(tmp_path):
    path = written(
        tmp_path,
        "trials: 9\naxes: {strategy: [none, mutex]}\nfixed: {hold: 1ms, keys: 5}\nthresholds: [violations == 0]\n",
    )
    matrix = load_matrix(
        path,
        strategy=["naive"],
        hold=["2ms", "exp(3ms)"],
        trials=2,
        threshold=["jain > 0.5"],
        redis="unix:///tmp/x.sock",
        seed=None,
        concurrency=[],
    )
    assert ids(matrix) == ["naive hold=2ms keys=5", "naive hold=exp(3ms) keys=5"]
    assert (matrix.trials, [threshold.check for threshold in matrix.thresholds]) == (
        2,
        ["violations == 0", "jain > 0.5"],
    )
    assert matrix.backends["redis"].is_given


def test_an_option_may_hold_several_values(tmp_path):
    matrix = matrix_from_options(strategy="mutex", hold=["0,uniform(1ms, 3ms)", "2ms"])
    assert matrix.axes.hold == tuple(Distribution.parse(text) for text in ("0", "uniform(1ms, 3ms)", "2ms"))


def test_the_source_option_is_of_servers_that_pybench_starts(tmp_path):
    path = written(
        tmp_path, "fixed: {strategy: mutex}\nbackends: {a: {url: 'redis://localhost'}, b: , c: {source: wheel}}\n"
    )
    backends = load_matrix(path, servers="path").backends
    assert [(backend.name, backend.source) for backend in backends.values()] == [
        ("a", "auto"),
        ("b", "path"),
        ("c", "path"),
    ]
    assert load_matrix(path, servers="auto").backends["c"].source == "wheel"
    assert matrix_from_options(strategy="mutex", servers="path").backends["redis"].source == "path"


def test_a_password_is_nowhere_in_a_matrix_but_in_its_address():
    matrix = matrix_from_options(strategy="mutex", redis="redis://me:hunter2@localhost:6379/1")
    backend = matrix.backends["redis"]
    assert backend.url is not None
    assert backend.url.get_secret_value() == "redis://me:hunter2@localhost:6379/1"
    assert "hunter2" not in f"{matrix!r} {matrix.to_dict()} {matrix.model_dump()}"
    assert backend.shown_urls == ("redis://me:***@localhost:6379/1",)
    with pytest.raises(InputError, match="the password of this address is masked"):
        matrix_from_mapping(matrix.to_dict())


def test_a_password_of_the_environment_stays_there(monkeypatch):
    monkeypatch.setenv("LOCK_PASSWORD", "hunter2")
    matrix = matrix_from_options(strategy="mutex", redis="redis://:${LOCK_PASSWORD}@localhost")
    backend = matrix.backends["redis"]
    assert backend.url is not None
    assert backend.url.get_secret_value() == "redis://:hunter2@localhost"
    assert backend.shown_urls == ("redis://:${LOCK_PASSWORD}@localhost",)
    assert "hunter2" not in f"{matrix!r} {matrix.to_dict()}"
    assert matrix_from_mapping(matrix.to_dict()) == matrix
    monkeypatch.delenv("LOCK_PASSWORD")
    with pytest.raises(InputError, match="the environment has no variable LOCK_PASSWORD"):
        matrix_from_mapping(matrix.to_dict())


def test_thresholds_are_parsed_into_the_unit_of_their_column():
    mapping = {
        "axes": {"strategy": "mutex", "hold": ["1ms", "2ms"]},
        "thresholds": [
            "acquire.p99 < 50ms",
            "grants_per_s>=1000",
            {"where": {"strategy": "mutex", "hold": ["1000us", "2ms"]}, "check": "violations == 0"},
        ],
    }
    latency, rate, selected = matrix_from_mapping(mapping).thresholds
    assert (latency.metric, latency.column, latency.op, latency.value) == ("acquire.p99", "acquire_p99_us", "<", 50_000)
    assert (rate.column, rate.op, rate.value, rate.text) == ("grants_per_s", ">=", 1000, "grants_per_s >= 1000")
    assert selected.where == (("strategy", ("mutex",)), ("hold", ("1ms", "2ms")))
    assert selected.text == "violations == 0 where strategy is mutex, hold is 1ms or 2ms"


def test_an_option_that_no_matrix_has_is_our_own_fault():
    with pytest.raises(TypeError, match="a matrix has no option colour"):
        matrix_from_options(strategy="mutex", colour="red")


def test_an_option_takes_a_number_as_it_takes_its_text():
    by_text = matrix_from_options(strategy="mutex", concurrency="16", read_share="0.5", keys="1,2", trials="3")
    assert matrix_from_options(strategy="mutex", concurrency=16, read_share=0.5, keys=[1, 2], trials=3) == by_text


@pytest.mark.parametrize("option", ["strategy", "concurrency", "hold", "redis", "postgres", "threshold", "allow"])
def test_an_option_of_another_type_is_told_as_what_it_is_not(option):
    with pytest.raises(InputError, match=f"^--{option}: "):
        matrix_from_options(**{"strategy": "mutex", option: 5.5})


def test_a_backend_may_name_several_servers_by_their_addresses():
    urls = ["redis://me:hunter2@a.example", "redis://b.example", "unix:///run/c.sock"]
    matrix = matrix_from_mapping({"axes": {"strategy": "redlock(nodes=3)"}, "backends": {"redis": {"urls": urls}}})
    backend = matrix.backends["redis"]
    assert [url.get_secret_value() for url in backend.urls] == urls
    assert backend.url == backend.urls[0]
    assert backend.to_dict() == {"kind": "redis", "urls": ["redis://me:***@a.example", *urls[1:]]}
    assert "hunter2" not in repr(backend)
    assert matrix_from_options(strategy="mutex", redis=urls).backends["redis"].urls == backend.urls
    assert matrix_from_options(strategy="mutex", redis=urls[1:2]).backends["redis"].to_dict()["url"] == urls[1]


@pytest.mark.parametrize(
    ("backend", "told"),
    [
        ({"urls": []}, "the list is empty"),
        ({"urls": ["redis://a", "redis://:pw@b", "redis://:pw@b"]}, '"redis://:***@b" is given twice'),
        ({"urls": ["redis://a", "rediss://b"]}, "TLS comes in a later step"),
        ({"url": "redis://a", "urls": ["redis://b"]}, "both url and urls are given"),
        ({"urls": ["redis://a"], "source": "path"}, "source is for servers that pybench starts"),
        ({"urls": [f"redis://h{n}" for n in range(33)]}, "33 addresses"),
    ],
)
def test_addresses_that_cannot_be_used_together_are_refused(backend, told):
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        matrix_from_mapping({"axes": {"strategy": "mutex"}, "backends": {"redis": backend}})
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("axis", "value", "told"),
    [
        ("read_share", "1.5", "at most 1"),
        ("read_share", "-0.1", "at least 0"),
        ("nesting", "17", "at most 16"),
        ("nesting", "0", "at least 1"),
        ("keys_per_grant", "9", "at most 8"),
        ("key_order", "reversed", "is not one of random, sorted"),
    ],
)
def test_what_only_some_locks_know_has_its_range(axis, value, told):
    with pytest.raises(InputError, match=told):
        matrix_from_options(**{"strategy": "mutex", axis: value})
