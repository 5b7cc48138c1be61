from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest

from pybench.report.page import build
from pybench.report.sections import fairness, throughput, timeline
from pybench.report.view import make_view
from tests.report.support import Point, make_run, many_points, the_usual_points, violation

MEGABYTE = 1_000_000
HOSTILE = """<script>alert(1)</script> "&amp; <b>%{x}</b>' \u2028</title></style>--><img src=x onerror=alert(1)>"""


class Page(HTMLParser):
    """The page as a browser would cut it up: tags with attributes, and the text of scripts apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)
        for folded in self.data("folded").values():
            self.feed(folded)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self._inside.append(tag)
            if tag == "script":
                self.scripts.append("")

    def handle_endtag(self, tag):
        if tag in {"script", "style"}:
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.words.append(data)
        elif self._inside[-1] == "script":
            self.scripts[-1] += data

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words)).replace("\u00a0", " ")

    def data(self, name: str) -> dict:
        """The data of the script element of this name; empty where there is none."""
        scripts = zip((attrs for tag, attrs in self.tags if tag == "script"), self.scripts, strict=True)
        found = [(attrs["type"], text) for attrs, text in scripts if attrs.get("id") == f"data-{name}"]
        if not found:
            return {}
        (kind, text), *_ = found
        return json.loads(gzip.decompress(base64.b64decode(text)) if kind == "application/gzip" else text)

    def figures(self) -> dict:
        return self.data("figures")


@pytest.fixture(scope="module")
def usual_html() -> str:
    return build(make_run())


@pytest.fixture(scope="module")
def usual(usual_html) -> Page:
    return Page(usual_html)


def test_sections_come_in_order_with_the_answer_first(usual):
    ids = [attrs["id"] for tag, attrs in usual.tags if tag == "section"]
    assert ids == [
        "answer", "ranking", "heatmaps", "throughput", "latency", "distribution", "handoff", "timeline", "fairness",
        "cost", "violations",
        "properties", "method",
    ]  # fmt: skip


def test_the_first_heading_is_the_answer(usual):
    heading = "Take mutex: ahead at 4 of 4 loads ("
    assert heading in usual.text
    assert usual.text.index(heading) < usual.text.index("Ranking, load by load Safe grants")


def test_what_is_not_the_locks_stands_beside_the_latencies_and_in_the_method(usual):
    sentence = "One idle call takes 18.6 µs, and the client's own work takes 409 ns per grant."
    assert f"Every p50 includes fixed overhead. {sentence}" in usual.text
    assert sentence in usual.text.partition("Servers, control and baseline")[2]


def test_a_lock_that_is_as_good_is_named_beside_the_best():
    points = [Point(name, 64, 1, cost=47.0) for name in ("naive", "mutex")]
    page = Page(build(make_run(points)))
    assert "Take mutex: tied with naive on throughput, and mutex promises more than naive." in page.text
    assert re.search("(naive; statistically tied with mutex)|(mutex; statistically tied with naive)", page.text)


def test_the_interval_is_as_sure_as_its_trials_make_it():
    assert "with its 88 % interval" in Page(build(make_run(trials=4))).text
    assert "interval of the median" not in Page(build(make_run(trials=1))).text


def test_inversions_of_queues_stand_beside_each_other_and_other_locks_have_none():
    def text(points):
        return Page(fairness.render(make_view(make_run(points))).html).text

    queues = [Point("fair", clients, 1, inversions=clients * 64) for clients in (16, 64)]
    queues.append(Point("fair-queue", 64, 1, inversions=0))
    shown = text([*queues, Point("mutex", 64, 1, inversions=0)])
    assert "Inversions per trial, in the cell with the most: fair 4,096, fair-queue 0." in shown
    assert re.search(r"mutex ✓ SAFE 64 clients [^✓]* n/a( |$)", shown), "what older records have as 0 is no figure"
    assert "inversion" not in text(the_usual_points())


def test_a_missed_threshold_is_shown_with_its_figures_in_their_unit():
    run = make_run()
    run.manifest["matrix"]["expanded"]["thresholds"] = [
        {"where": {"strategy": "mutex"}, "check": "violations == 0"},
        {"where": {"strategy": "mutex"}, "check": "acquire.p50 < 1us"},
        {"where": {"strategy": "none", "concurrency": "16", "keys": "1"}, "check": "violations == 0"},
        {"where": {"strategy": "mutex", "hold": "5ms"}, "check": "jain > 0"},
        {"where": {"strategy": "of-tomorrow"}, "check": "jain > 0"},
    ]
    text = Page(build(run)).text
    assert text.count("Threshold missed.") == 3
    assert re.search(r"acquire\.p50 < 1us where strategy is mutex: [\d.]+ µs in mutex .* and in 3 further cells", text)
    assert re.search(r"keys is 1: [\d,]+ in none concurrency=16 keys=1\.", text)
    assert "jain > 0 where strategy is mutex, hold is 5ms: this threshold matches no measured cell." in text


def test_half_a_step_at_the_end_of_a_window_is_not_drawn():
    run = make_run([Point("mutex", 4, 1)], trials=1, steps=6)
    run.trials["window_s"] = 0.55
    section = timeline.render(make_view(run))
    assert section is not None
    assert section.figures[0].data[0]["x"] == [0.05, 0.15, 0.25, 0.35, 0.45, None]
    run.trials["window_s"] = 0.05
    assert timeline.render(make_view(run)) is None


def test_latency_is_drawn_with_its_lowest_and_highest_trial():
    run = make_run([Point("mutex", 16, 1), Point("mutex", 1, 1)], trials=3)
    (trace,) = [one for one in Page(build(run)).figures()["latency-p99-0"]["data"] if one["mode"] == "markers"]
    for place, clients in enumerate((1, 16)):
        trials = run.trials.loc[run.trials["concurrency"] == clients, "acquire_p99_us"]
        reach = trace["error_y"]["array"][place], trace["error_y"]["arrayminus"][place]
        assert reach == pytest.approx((trials.max() - trials.median(), trials.median() - trials.min()), rel=1e-3)
    assert "A bar reaches from the lowest trial to the highest." in Page(build(run)).text


def test_commands_per_grant_are_split_by_what_the_server_counted():
    run = make_run([Point("mutex", 1, 1)], trials=2)
    run.trials["commandstats"] = [json.dumps({"set": 300, "delifeq": 100, "hello": 4, "info": 9}), None]
    run.trials["commands_per_grant"] = 2.0
    run.summary["commands_per_grant"] = 2.0
    text = Page(build(run)).text
    assert "command calls per grant set 300 1.50 delifeq 100 0.50" in text
    assert "hello" not in text


def test_in_an_open_loop_the_response_decides():
    run = make_run([Point("naive", 16, 1, cost=90), Point("mutex", 16, 1)], trials=5)
    for frame in (run.trials, run.summary):
        frame["rate_per_s"] = 100.0
    page = Page(build(run))
    assert re.search(r"Take mutex: p99 response [\d.]+ ms, naive's is [\d.]+ ms\.", page.text)
    assert page.text.index("1 mutex") < page.text.index("2 naive")


def test_the_page_names_no_address_but_those_inside_it(usual):
    for tag, attrs in usual.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert (attrs.get(name) or "#").startswith("#"), (tag, attrs)
    style = next(attrs for tag, attrs in usual.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert style["content"].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in style["content"].split("style-src")[0]


def test_every_figure_is_one_that_plotly_accepts_and_names_its_units(usual):
    figures = usual.figures()
    assert len(figures) > 20
    for name, figure in figures.items():
        resolved = json.loads(re.sub(r"var\(--[a-z0-9-]+\)", "#123456", json.dumps(figure)))
        go.Figure(resolved)
        assert figure["layout"]["xaxis"]["title"]["text"], name
        assert figure["layout"]["yaxis"].get("title", {}).get("text"), name


def test_every_chart_has_a_text_alternative_and_its_room(usual):
    plots = [attrs for tag, attrs in usual.tags if attrs.get("class") == "plot"]
    assert {attrs["id"] for attrs in plots} == set(usual.figures())
    for attrs in plots:
        assert attrs["role"] == "img"
        assert len(attrs["aria-label"]) > 40
        assert re.fullmatch(r"height:\d+px", attrs["style"])


def test_a_strategy_has_one_colour_in_all_charts(usual):
    colours: dict[str, set[str]] = {}
    for figure in usual.figures().values():
        for trace in figure["data"]:
            colours.setdefault(trace["meta"], set()).add((trace.get("marker") or trace["line"])["color"])
    assert {name: len(found) for name, found in colours.items()} == {"none": 1, "naive": 1, "mutex": 1}
    assert len(set.union(*colours.values())) == 3


def test_unsafe_cells_are_drawn_hollow_with_a_cross_and_dashed():
    view = make_view(make_run())
    traces = [trace for figure in throughput.render(view).figures for trace in figure.data if trace["meta"] == "naive"]
    crosses = [symbol for trace in traces for symbol in trace.get("marker", {}).get("symbol", [])]
    assert crosses.count("circle-x-open") == 2
    assert {trace["line"]["dash"] for trace in traces if "line" in trace} == {"dot", "solid"}


def test_what_cannot_be_used_does_not_flatten_what_can():
    figure = throughput.render(make_view(make_run())).figures[0]
    none = next(trace for trace in figure.data if trace["meta"] == "none" and trace["mode"] == "markers")
    assert set(none["marker"]["symbol"]) == {"triangle-up-open"}
    assert max(none["y"]) <= figure.layout["yaxis"]["range"][1] < 50_000
    assert "40" in none["customdata"][1]  # 40x k: the figure itself is not cut


def test_lines_that_end_at_one_height_are_named_by_value_and_then_as_in_the_run():
    costs = {"none": 1.6, "naive": 1.0, "mutex": 200.0, "fenced": 200.0}
    points = [
        Point(name, clients, 1000, cost=cost, broken=name in ("none", "naive") and clients > 1)
        for name, cost in costs.items()
        for clients in (1, 64)
    ]
    run = make_run(points)
    ends = run.summary["strategy"].isin(["mutex", "fenced"]) & (run.summary["concurrency"] == 64)
    run.summary.loc[ends, "grants_per_s"] = 50_000.0
    labels = Page(build(run)).figures()["throughput-rate-0"]["layout"]["annotations"]
    assert [label["name"] for label in sorted(labels, key=lambda label: -label["y"])] == [
        "naive", "none", "mutex", "fenced",
    ]  # fmt: skip


def test_every_cell_can_be_linked_to(usual):
    anchors = [attrs["id"] for tag, attrs in usual.tags if tag == "tbody" and "id" in attrs]
    assert len(anchors) == len(set(anchors)) == 18
    assert "cell-mutex-concurrency-16-keys-1" in anchors
    ids = {attrs.get("id") for _, attrs in usual.tags}
    assert {attrs["href"][1:] for tag, attrs in usual.tags if tag == "a"} <= ids


def test_text_of_a_run_is_never_markup():
    points = [Point(HOSTILE, 16, 1, args=HOSTILE, broken=True), Point("mutex", 16, 1, backend=HOSTILE)]
    run = make_run(points, name=HOSTILE, trials=2)
    run.manifest["command"] = ["pybench", HOSTILE]
    run.manifest["servers"][0] |= {"label": HOSTILE, "source": HOSTILE, "settings": {HOSTILE: HOSTILE}}
    run.manifest["machine"]["cpu"] = HOSTILE
    run.manifest["matrix"]["given"] = f"name: x\ndescription: {HOSTILE}\n"
    run.manifest["control"][0]["backend"] = HOSTILE
    run.violations["sentence"] = HOSTILE
    run.trials["commandstats"] = json.dumps({HOSTILE: 7})
    html = build(run)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "<b>%{x}" not in html
    page = Page(html)
    assert len(page.scripts) == 8
    assert {tag for tag, _ in page.tags if tag in {"img", "b", "title"}} == {"b", "title"}
    # Twelve places in the text alone, the cell's name and its conditions among them.
    assert page.text.count(re.sub(r"\s+", " ", HOSTILE)) > 12
    assert "\u2028" not in "".join(page.scripts)
    assert next(trace["meta"] for trace in page.figures()["throughput-rate-0"]["data"]) == f"{HOSTILE}({HOSTILE})"
    names = {trace["name"] for figure in page.figures().values() for trace in figure["data"]}
    # Plotly reads a little HTML: the strike of what is unsafe is ours, nothing else is.
    assert all("<" not in re.sub(r"^<s>(.*)</s>$", r"\1", name) for name in names)


def test_a_void_run_says_so_before_anything_else():
    page = Page(build(make_run(caught=False)))
    assert page.text.index("VOID. The control of this run") < page.text.index("This run proves nothing")
    assert "✓ SAFE" not in page.text


def test_an_interrupted_run_says_so():
    assert "Interrupted. The run ended early." in Page(build(make_run(status="interrupted", trials=1))).text


def test_one_trial_is_named():
    page = Page(build(make_run(trials=1)))
    assert "One trial. No cell was repeated" in page.text
    assert "A point is a single trial, so there is no interval." in page.text


@pytest.mark.parametrize("points", [[], None])
def test_a_run_without_a_complete_trial_has_no_answer_and_no_chart(points):
    page = Page(build(make_run(points, status="interrupted", trial_status="interrupted", trials=1)))
    assert "No trial was completed, so there is no answer yet." in page.text
    assert not [tag for tag, attrs in page.tags if attrs.get("class") == "plot"]
    assert "How it was measured" in page.text


def test_without_a_load_axis_strategies_are_rows():
    run = make_run([Point("mutex", 16, 1), Point("naive", 16, 1, cost=60, broken=True)], trials=3)
    figure = Page(build(run)).figures()["throughput-rate-0"]
    assert figure["layout"]["yaxis"]["ticktext"] == ["mutex", "<s>naive</s>"]


def test_a_lock_on_two_backends_is_two_series_that_are_compared():
    points = [Point("mutex", clients, 1, backend=name) for clients in (1, 16) for name in ("redis", "valkey")]
    page = Page(build(make_run(points, trials=2)))
    assert set(page.figures()) & {"throughput-rate-0", "throughput-rate-1"} == {"throughput-rate-0"}
    drawn = {trace["meta"] for trace in page.figures()["throughput-rate-0"]["data"]}
    assert drawn == {"mutex on redis", "mutex on valkey"}


def test_locks_of_different_servers_are_compared_at_the_same_load():
    on = {"mutex": "redis", "pg-row": "postgres", "layered": "redis+postgres"}
    points = [Point(lock, clients, 1, backend=backend) for lock, backend in on.items() for clients in (1, 16)]
    view = make_view(make_run(points, trials=2))
    assert view.axes == ("concurrency",)
    assert [len(load.standings) for load in view.comparison.loads] == [3, 3]
    assert [series.label for series in view.series] == list(on)


def test_what_keeps_nobody_out_has_no_place_and_says_why():
    page = Page(build(make_run([Point("mutex", 16, 1), Point("pg-optimistic", 16, 1, cost=20.0)], trials=2)))
    assert "not ranked, because the lock keeps no client out" in page.text
    assert "Not ranked (the lock keeps no client out): pg-optimistic." in page.text


def test_a_violation_is_a_sentence_and_a_drawing_with_its_overlap(usual):
    assert "client 7 was granted key 1 at 0.600 s while client 3 still held the key" in usual.text
    assert "overlap 640 µs" in usual.text
    assert "lease ends 9.4 s later" in usual.text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"overlap_ns": 0, "first_ended_ns": None}, "overlap until the trial ended"),
        ({"kind": "fifo-inversion", "overlap_ns": 0}, "served out of order"),
        ({"kind": "stale-fence", "overlap_ns": 0}, "fences out of order"),
        ({"kind": "lease-overrun", "first_until_ns": 600_100_000, "first_ended_ns": 600_700_000}, "lease ends"),
        ({"first_until_ns": None}, "no lease"),
    ],
)
def test_a_drawing_tells_what_ended_and_what_did_not(changed, said):
    run = make_run([Point("mutex", 16, 1, broken=True), Point("mutex", 1, 1)], trials=1)
    row = violation("mutex concurrency=16 keys=1", 1, at_ms=600, leased=True, **changed)
    for name in run.violations.columns:
        run.violations[name] = [row[name]] * len(run.violations)
    text = Page(build(run)).text
    assert said in text


def test_two_hundred_cells_stay_small_and_folded():
    html = build(make_run(many_points(), trials=2, steps=600))
    assert len(html.encode()) < 5 * MEGABYTE
    page = Page(html)
    assert "14 further charts" in page.text
    assert "averaged into one point" in page.text
    assert len([1 for tag, attrs in page.tags if tag == "tbody" and "id" in attrs]) == 200


def test_the_same_run_gives_the_same_page():
    points = [Point("mutex", 1, 1), Point("mutex", 16, 1)]
    assert build(make_run(points, trials=2)) == build(make_run(points, trials=2))
