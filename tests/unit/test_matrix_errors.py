"""What a user reads when a matrix cannot be used: file, line and column, what is wrong, what to say instead."""

from __future__ import annotations

import os
import resource
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.matrix import load_matrix, matrix_from_options

MEMORY_BYTES = 256 * 1024 * 1024


@contextmanager
def at_most(more: int) -> Iterator[None]:
    """Inside, this process gets no more memory than it has and `more` bytes beyond: MemoryError instead."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def errors(folder: Path, text: str | bytes) -> list[str]:
    """The lines of the error that `text` raises, the file called m.yaml."""
    path = folder / "m.yaml"
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    began = time.process_time()
    with at_most(MEMORY_BYTES), pytest.raises(InputError) as caught:
        load_matrix(path)
    # Its own CPU time, whatever else the machine does: a file that is refused must not keep its author waiting.
    assert time.process_time() - began < 1
    assert caught.value.hint
    return caught.value.message.replace(str(path), "m.yaml").splitlines()


def test_every_error_is_told_at_once_with_its_place(tmp_path):
    text = """\
    schema: 2
    nam: x
    trials: 0
    duration: 2
    hold: 1ms
    axes:
      strategy: [mutx, mutex, 7]
      concurrency: [1, many]
      hodl: 1ms
      retry:
        - {kind: fixed, bas: 1ms}
        - kind: fixed
          base: 2
    fixed:
      trials: 3
      poll: spinning
      ttl: 1500us
    exclude:
      - strategi: none
    include: {strategy: mutex}
    backends:
      a: {url: rediss://me:secret@db.example, sorce: path}
    thresholds:
      - acquire.p98 < 50ms
      - acquire.p99 < 50
      - {where: {strategy: mutx}, check: violations == 0}
    allow: [everything]
    """
    assert errors(tmp_path, text) == [
        "m.yaml:1:9: schema: 2 is not supported; use 1",
        'm.yaml:2:1: there is no key "nam" here; did you mean name?',
        "m.yaml:3:9: trials: 0 is out of range; at least 1",
        "m.yaml:4:11: duration: 2 has no unit; use 2s or 2ms",
        "m.yaml:5:1: hold is an axis; put hold under axes or under fixed",
        'm.yaml:7:14: axes.strategy: there is no strategy "mutx"; did you mean mutex?',
        "m.yaml:7:27: axes.strategy: 7 is not a strategy; write a name such as mutex",
        'm.yaml:8:20: axes.concurrency: "many" is not a whole number; write digits, as in 16',
        'm.yaml:9:3: there is no key "hodl" in axes; did you mean hold?',
        "m.yaml:11:26: axes.retry.bas: the retry policy fixed has no field bas; did you mean base?",
        "m.yaml:13:13: axes.retry.base: 2 has no unit; use 2s or 2ms",
        "m.yaml:15:3: trials is not an axis; put trials at the top level, outside of fixed",
        'm.yaml:16:9: fixed.poll: "spinning" is not one of block, spin; did you mean spin?',
        'm.yaml:17:8: fixed.ttl: "1500us" is not in whole milliseconds; use 2ms',
        'm.yaml:19:5: there is no key "strategi" in exclude; did you mean strategy?',
        "m.yaml:20:10: include: a mapping is not a list; begin each entry with -",
        "m.yaml:22:12: backends.a.url: rediss://me:***@db.example: TLS comes in a later step; for now give "
        "redis://[user:password@]host[:port][/db] or unix:///path[?db=N]",
        'm.yaml:22:43: there is no key "sorce" in backends; did you mean source?',
        'm.yaml:24:5: thresholds: there is no metric "acquire.p98"; did you mean acquire.p99?',
        'm.yaml:25:5: thresholds: acquire.p99: "50" has no unit; use 50s or 50ms',
        'm.yaml:26:24: thresholds.where.strategy: there is no strategy "mutx"; did you mean mutex?',
        'm.yaml:27:9: allow: "everything" is not supported; use hold-beyond-ttl',
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "m.yaml:1:1: the file is empty"),
        ("# nothing but talk\n", "m.yaml:1:1: the file is empty"),
        ("- mutex\n", "m.yaml:1:1: a matrix is a mapping with keys such as axes and trials, and this file is a list"),
        ("mutex", 'm.yaml:1:1: a matrix is a mapping with keys such as axes and trials, and this file is "mutex"'),
        ("axes:\n\tstrategy: mutex\n", "m.yaml:2:1: a tab cannot indent YAML; use spaces"),
        ("seed: 1\ntrials: 2\nseed: 3\n", "m.yaml:3:1: the key seed is given twice, first in line 1; keep one of them"),
        ("axes: &a\n  strategy: *a\n", "m.yaml:1:7: axes.strategy: an alias refers to a value that contains the alias"),
        ("axes: *b\n", "m.yaml:1:7: undefined alias 'b'; an anchor must come before its aliases"),
        ("axes: {<<: 3}\n", "m.yaml:1:8: << merges mappings only"),
        ("seed: 1\n---\nseed: 2\n", "m.yaml:2:1: a second document begins here; a file may hold one matrix only"),
        ("? [a]\n: 1\n", "m.yaml:1:3: a key must be one word, not a list or a mapping"),
        ("seed: !!python/name:os.system\n", "m.yaml:1:7: seed: the tag tag:yaml.org,2002:python/name:os.system is not"),
        ("seed: !!python/object/apply:os.system [ls]\n", "m.yaml:1:7: seed: the tag tag:yaml.org,2002:python/object/a"),
        ("!!set {seed}\n", "m.yaml:1:1: the tag tag:yaml.org,2002:set is not supported; delete the tag"),
        ("axes: hold: 1ms\n", "m.yaml:1:11: a colon is not allowed here; quote the value"),
        ("axes: {strategy: [mutex\n", "m.yaml:2:1: an opening bracket above is never closed; close it with ]"),
        ("axes: {strategy: [a b: 1, c}\n", "m.yaml:1:28: a comma is missing here, or a ]"),
        ("axes:\n  strategy: mutex\n keys: 1\n", "m.yaml:3:2: the indentation matches no line above; align this line"),
        ("axes:\n  - a\n  b: c\n", "m.yaml:3:3: a key stands among the items of a list; indent the key"),
        ("axes: {strategy: mutex}}\n", "m.yaml:1:24: this } closes no bracket; delete it"),
        ("name: @shop\n", "m.yaml:1:7: a value cannot begin with @; put the value in quotes"),
        (
            "axes:\n  strategy mutex\n  keys: 1\n",
            "m.yaml:3:7: a colon is not allowed here; quote the value, or add a colon that is missing above",
        ),
        ("axes: {strategy: ]\n", "m.yaml:1:18: a value is missing here"),
        ('name: "\\q"\n', "m.yaml:1:9: \\q is no escape in double quotes; use single quotes"),
        ("axes:\n  strategy:\tmutex\n", "m.yaml:2:12: a tab is not allowed here; use spaces"),
        ('seed: 1\nname: "x\n' + "y\n" * 9_000, "m.yaml:2:7: a quote opens here and is never closed"),
        ("seed: 1\nname: é\n".encode("latin-1"), "m.yaml:2:7: the file is not UTF-8 (byte 0xe9)"),
        ("seed: 1".encode("utf-16"), "m.yaml:1:1: the file is not UTF-8 (byte 0xff)"),
        ('name: "\\ud800"\n', 'm.yaml:1:7: name: "\\ud800" is not UTF-8'),
        ('"a\\ud800": 1\n', 'm.yaml:1:1: the key "a\\ud800" is not UTF-8'),
        (b"seed: 1\nname: \x07\n", "m.yaml:2:7: the file contains the control character U+0007"),
        (b"seed: 1\nname: a\0b\n", "m.yaml:2:8: the file contains the control character U+0000"),
        ('name: "\\e[31m\\u202e"\n', 'm.yaml:1:7: name: "\\x1b[31m\\u202e" cannot be the name of a run'),
        (b"#" * 10_000_000, "m.yaml is larger than 256 KiB"),
        (b"m" * 250_000 + b": 1\n", "m.yaml:1:250001: a colon is not allowed here; quote the"),
        (
            "strategies: [mutex]\n",
            'm.yaml:1:1: there is no key "strategies" here; did you mean strategy? put it under axes or under fixed',
        ),
        (f"? {'k' * 100_000}\n: 1\n", f'm.yaml:1:3: there is no key "{"k" * 60}..." here'),
        (f"? {'k' * 100_000}\n: 1\n" * 2, f"m.yaml:3:3: the key {'k' * 60}... is given twice, first in line 1"),
        ("seed: " + "9" * 100_000, f'm.yaml:1:7: seed: "{"9" * 60}..." cannot be read as a number'),
        ("a: " + "[" * 100_000, "m.yaml:1:54: the file is nested too deeply"),
        ("a: [" + "1, " * 80_000 + "1]", "m.yaml:1:14996: the file has more than 5,000 values"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)),
            "m.yaml:1:24: the file has more than 5,000 values, counting each use of an alias",
        ),
    ],
    ids=[
        "empty",
        "comments",
        "a list",
        "a word",
        "a tab",
        "a key twice",
        "recursion",
        "an unknown alias",
        "a merged number",
        "two documents",
        "a key that is a list",
        "a tag",
        "a tag of a list",
        "a tag of all",
        "a mapping in a line",
        "a list without end",
        "a list that a brace ends",
        "an indentation of its own",
        "a name in a list",
        "a brace too many",
        "a word that begins with @",
        "a line without a colon",
        "no value",
        "an unknown escape",
        "a tab within a line",
        "a quote without end",
        "latin-1",
        "utf-16",
        "half a character",
        "half a character in a key",
        "a control character",
        "a null byte",
        "what a terminal would obey",
        "ten megabytes",
        "a line without end",
        "an axis in the plural",
        "a key without end",
        "such a key twice",
        "a number of 100,000 digits",
        "nesting",
        "too many values",
        "a blow-up of aliases",
    ],
)
def test_what_is_not_one_plain_mapping_is_refused_with_its_line(tmp_path, text, told):
    (line,) = errors(tmp_path, text)
    assert line.startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("trials: 2\n", "m.yaml:1:1: there is no strategy; name one or more, for example naive and mutex"),
        ("axes:\n  keys: 2\n", "m.yaml:1:1: there is no strategy; name one or more, for example naive and mutex"),
        (
            "include:\n- {keys: 2}\n",
            "m.yaml:2:3: include: this cell has no strategy; name one or more, for example naive and mutex",
        ),
        (
            "axes: {strategy: []}\n",
            "m.yaml:1:18: axes.strategy: the list is empty; add a value, or leave the key out",
        ),
        ("axes: mutex\n", 'm.yaml:1:7: axes: "mutex" is not a mapping; use for example {concurrency: [1, 16]}'),
        ("axes: {strategy: }\n", "m.yaml:1:17: axes.strategy: nothing is not a strategy; write a name such as mutex"),
        (
            "axes: {strategy: mutex, hold: [1ms, 1000us]}\n",
            "m.yaml:1:37: axes.hold: 1ms is given twice; keep one of them",
        ),
        (
            "axes: {strategy: mutex, hold: 1ms}\nfixed: {hold: 2ms}\n",
            "m.yaml:2:9: hold is in axes too; keep one of them",
        ),
        (
            "axes: {strategy: mutex}\nfixed:\n  hold: [1ms, 2ms]\n",
            "m.yaml:3:9: fixed.hold: a list is given, and one value is needed; put lists under axes",
        ),
        (
            "axes: {strategy: mutex, arrivals: poisson}\n",
            "m.yaml:1:25: arrivals has an effect in an open loop only, which needs a rate; add for example rate: "
            "5000/s",
        ),
        (
            "axes: {strategy: mutex}\nfixed: {backend: b}\nbackends: {a: {}, bb: {}}\n",
            'm.yaml:2:18: fixed.backend: there is no backend "b"; did you mean bb?',
        ),
        (
            "axes: {strategy: mutex}\nbackends: {a: {url: 'redis://h', source: path}}\n",
            "m.yaml:2:34: source is for servers that pybench starts, and this backend has an address; leave one of "
            "them out",
        ),
        (
            "axes: {strategy: mutex}\nbackends: {a: {kind: sentinel}}\n",
            "m.yaml:2:22: backends.a.kind: Sentinel is not supported yet; use redis or postgres",
        ),
        (
            "axes: {strategy: mutex}\nbackends: {A: {}}\n",
            'm.yaml:2:11: backends: "A" cannot name a backend; use lower-case letters, digits, - and _',
        ),
        (
            "axes: {strategy: mutex}\nthresholds: [{where: {strategy: mutex}}]\n",
            'm.yaml:2:14: thresholds: this threshold has no check; use check: "violations == 0"',
        ),
        (
            "axes: {strategy: mutex}\nthresholds: [violations = 0]\n",
            'm.yaml:2:14: thresholds: "violations = 0" is not a threshold; '
            'use for example "acquire.p99 < 50ms" or "violations == 0"',
        ),
        (
            "axes: {strategy: mutex}\nname: a/b\n",
            'm.yaml:2:7: name: "a/b" cannot be the name of a run; '
            "use up to 64 letters, digits, dots, dashes and underscores, as for the run's folder",
        ),
        (
            "axes:\n  strategy: mutex\n"
            + "".join(
                f"  {name}: [{', '.join(f'{value}{unit}' for value in range(1, 11))}]\n"
                for name, unit in zip(
                    ("concurrency", "keys", "hold", "think", "ttl", "threads", "rate"),
                    ("", "", "ms", "ms", "ms", "", "/s"),
                    strict=True,
                )
            ),
            "m.yaml:1:1: the axes make 10,000,000 cells; at most 10,000: give an axis fewer values",
        ),
    ],
)
def test_parts_that_do_not_agree_are_refused_with_their_line(tmp_path, text, told):
    assert errors(tmp_path, text) == [told]


def test_a_file_with_hundreds_of_errors_tells_the_first_fifty(tmp_path):
    lines = errors(tmp_path, "axes:\n  concurrency: [" + ", ".join("x" for _ in range(120)) + "]\n")
    assert len(lines) == 51
    assert lines[-1] == "... and 70 more"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*absent\.yaml"):
        load_matrix(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="is a folder, not a matrix"):
        load_matrix(tmp_path)


def test_what_is_no_plain_file_is_read_once_and_never_waited_for(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"pipe\.yaml:1:1: the file is empty"):
        load_matrix(pipe)
    with pytest.raises(InputError, match="/dev/zero is larger than 256 KiB"):
        load_matrix("/dev/zero")
    with pytest.raises(InputError, match="cannot be read: embedded null byte"):
        load_matrix(tmp_path / "n\0")
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: os.write(write, b"axes: {strategy: mutex}\n") and os.close(write))
    writer.start()
    assert load_matrix(f"/dev/fd/{read}").axes.strategy == (("mutex", ()),)
    writer.join()
    os.close(read)


@pytest.mark.parametrize("option", ["strategy", "keys", "hold", "trials", "name", "redis", "threshold", "allow"])
def test_an_option_that_is_not_utf_8_is_named_with_its_bytes(option):
    with pytest.raises(InputError, match=rf'^--{option}: "x\\xff" is not UTF-8'):
        matrix_from_options(**{"strategy": "mutex", option: "x\udcff"})


def test_exclude_that_leaves_nothing_is_refused(tmp_path):
    from pybench.planning.plan import make_plan

    path = tmp_path / "m.yaml"
    path.write_text("axes: {strategy: mutex}\nexclude: [{strategy: mutex}]\n")
    with pytest.raises(InputError, match="exclude leaves no cell"):
        make_plan(load_matrix(path))


def test_options_are_named_in_place_of_lines():
    with pytest.raises(InputError) as caught:
        matrix_from_options(
            strategy=["mutex", "naiv"],
            hold=["1ms", "2"],
            max_in_flight="0",
            rate="5000",
            trials=0,
            duration="soon",
            redis="http://h",
            threshold=["violations == 0", "jain"],
            allow=["all"],
        )
    assert caught.value.message.splitlines() == [
        "--trials: 0 is out of range; at least 1",
        '--duration: "soon" is not a duration; use for example 2s or 2ms',
        '--strategy: there is no strategy "naiv"; did you mean naive?',
        '--hold: "2" has no unit; use 2s or 2ms',
        '--rate: "5000" is not a rate; use 5000/s',
        "--max-in-flight: 0 is out of range; at least 1",
        '--redis: "http://h" is not an address; use redis://HOST:PORT or postgresql://HOST/DATABASE',
        '--threshold: "jain" is not a threshold; use for example "acquire.p99 < 50ms" or "violations == 0"',
        '--allow: "all" is not supported; use hold-beyond-ttl',
    ]


def test_options_without_a_strategy_ask_for_one():
    with pytest.raises(InputError) as caught:
        matrix_from_options(keys="3")
    assert caught.value.message == ("--strategy: there is no strategy; name one or more, for example naive and mutex")


def test_an_option_over_a_file_is_blamed_and_not_the_file(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("trials: x\naxes: {strategy: mutex, hold: 1ms}\n")
    with pytest.raises(InputError) as caught:
        load_matrix(path, hold=["2"], threshold=["violations"])
    assert caught.value.message.replace(str(path), "m.yaml").splitlines() == [
        'm.yaml:1:9: trials: "x" is not a whole number; write digits, as in 16',
        '--hold: "2" has no unit; use 2s or 2ms',
        '--threshold: "violations" is not a threshold; use for example "acquire.p99 < 50ms" or "violations == 0"',
    ]


def test_parentheses_that_do_not_match_are_told_of_their_option():
    with pytest.raises(InputError, match=r'--strategy: the parentheses of "redlock\(nodes=5" do not match'):
        matrix_from_options(strategy="redlock(nodes=5")
