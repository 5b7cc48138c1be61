"""What is told of a database: waits as shares of the whole, and counters for a grant."""

from __future__ import annotations

import json

import pytest

from pybench.report.database_use import IN_TRANSACTION, database_use, kind_of
from pybench.report.page import build
from pybench.report.sections import database
from pybench.report.view import make_view
from tests.report.browsing import needs_chromium
from tests.report.support import Point, make_run

WAITS = {"Lock:advisory": 0.5, "IO:WalSync": 0.125, "LWLock:WALWrite": 0.125, "Client:ClientRead": 0.25}


def figures(**changed: object) -> str:
    looks = {"taken": 8, "most_sessions": 16}
    counted = {"grants": 1_000, "commits": 2_000, "rollbacks": 3, "deadlocks": 1, "wal_bytes": 512_000}
    return json.dumps({**counted, "cpu_us": 70_000, "waits": WAITS, "looks": looks, **changed})


def run_of(**changed: object):
    lock = Point("pg-row", 16, 1, backend="postgres", database=figures(**changed))
    return make_run([Point("mutex", 16, 1, backend="redis"), lock], trials=2)


def use_of(run):
    (use,) = database_use(run.trials).values()
    return use


def test_counters_are_for_a_grant_of_the_same_time():
    use = use_of(run_of())
    assert (use.commits, use.wal_bytes, use.cpu_us) == (2.0, 512.0, 70.0)
    assert (use.rollbacks, use.deadlocks, use.sessions, use.samples) == (6, 2, 16, 16)


def test_waits_are_shares_of_a_whole_by_what_they_are_for():
    waits = use_of(run_of()).waits
    assert waits == {"waiting for a lock": 0.5, "waiting for the disk": 0.25, "waiting for the client": 0.25}


def test_a_trial_that_was_looked_at_more_often_counts_for_more():
    run = run_of()
    first = run.trials.index[run.trials["strategy"] == "pg-row"][0]
    run.trials.loc[first, "database_figures"] = figures(waits={"working": 1.0}, looks={"taken": 24, "most_sessions": 1})
    assert use_of(run).waits["at work"] == 0.75


def test_a_trial_in_which_no_session_was_seen_takes_no_share():
    use = use_of(run_of(waits={}, looks={"taken": 0, "most_sessions": 0}))
    assert use.waits == {}


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("working", "at work"),
        ("Client:ClientRead", "waiting for the client"),
        ("Client:ClientRead (in transaction)", IN_TRANSACTION),
        ("LWLock:LockManager", "waiting inside the server"),
        ("LWLock:WALWrite (in transaction)", "waiting for the disk"),
        ("Timeout:SpinDelay", "other"),
    ],
)
def test_an_event_is_of_one_kind(event, kind):
    assert kind_of(event) == kind


def test_what_is_not_known_is_na():
    run = run_of(cpu_us=None, grants=None)
    use = use_of(run)
    assert (use.cpu_us, use.wal_bytes) == (None, None)
    assert ">n/a<" in database.render(make_view(run)).html


def test_a_run_without_a_database_has_no_such_section():
    assert database.render(make_view(make_run(trials=1))) is None


@needs_chromium
def test_its_table_keeps_to_a_narrow_page_and_its_bars_are_whole(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(run_of()), encoding="utf-8")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    bar, parts = page.evaluate(
        "(() => { const bar = document.querySelector('#database .bar');"
        " return [bar.clientWidth, [...bar.children].map(part => part.getBoundingClientRect().width)]; })()"
    )
    assert len(parts) == 3
    assert abs(sum(parts) - bar) < 1
    page.close()
