"""What stands before the figures."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pybench.analysis import error_replies
from pybench.report import markdown, page
from pybench.report.cautions.of_run import cautions
from pybench.report.view import make_view
from pybench.servers.rights import redis_rights
from tests.report.support import Point, make_run
from tests.report.test_page import Page


def disturbed_run(**counts: int):
    """Two cells of three, in one trial each: `counts` of it."""
    run = make_run([Point("mutex", clients, 1) for clients in (1, 4, 16)])
    for name, count in counts.items():
        run.trials.loc[(run.trials["trial"] == 2) & (run.trials["concurrency"] > 1), name] = count
    return run


def told(run) -> list[str]:
    return [caution.text for caution in cautions(make_view(run)) if caution.title == "Disturbed"]


def test_connections_that_broke_and_what_was_lost_with_them_give_a_caution():
    assert told(disturbed_run(reconnects=2, lost_calls=600, unknown=1)) == [
        "In 2 of 3 cells clients lost contact with a server: 4 connections broke, 1,200 calls were lost, "
        "2 acquires got no reply. The figures include these disturbances."
    ]


def test_a_connection_that_broke_without_a_call_on_it_gives_a_caution():
    assert "server: 2 connections broke. The" in told(disturbed_run(reconnects=1))[0]


def test_an_undisturbed_run_says_nothing_of_it():
    assert told(disturbed_run()) == []


def test_both_forms_of_the_report_tell_it():
    run = disturbed_run(lost_calls=3)
    sentence = "In 2 of 3 cells clients lost contact with a server: 6 calls were lost."
    assert sentence in page.build(run)
    assert f"> **Disturbed.** {sentence}" in markdown.build(run)


def test_the_details_of_a_cell_tell_how_much_of_it_was_its_own():
    html = "".join(Page(page.build(disturbed_run(reconnects=2, lost_calls=3))).data("folded").values())
    assert html.count("<dt>broken connections</dt><dd>2</dd>") == html.count("<dt>lost calls</dt><dd>3</dd>") == 2


def test_a_record_without_the_counts_says_nothing_of_them():
    run = disturbed_run()
    del run.trials["lost_calls"]
    assert told(run) == []


def test_refused_releases_of_a_user_without_rights_are_listed_with_the_rules_that_grant_them():
    run = disturbed_run()
    reply = {
        "phase": "release",
        "code": "NOPERM",
        "server": 0,
        "count": 3,
        "warmup": 0,
        "first": "NOPERM no permissions",
    }
    run.trials["error_replies"] = error_replies.encode([reply], ["redis 7.0.15"])
    [text] = [caution.text for caution in cautions(make_view(run)) if caution.title == "Error replies"]
    assert text.endswith(f" Missing rights: ACL SETUSER NAME {redis_rights('mutex')}.")


def test_of_several_controls_the_caution_names_the_one_that_was_missed():
    run = make_run(caught=False)
    [missed] = run.manifest["control"]
    run.manifest["control"] = [{**missed, "caught": True}, {**missed, "processes": 2}]
    [void] = [caution.text for caution in cautions(make_view(run)) if caution.title == "VOID"]
    assert void.startswith("The control on default in 2 worker processes, clients without a lock, was not caught.")
    page_of_run = Page(page.build(run)).text
    assert "Control on default in 2 worker processes: clients without a lock on one key had" in page_of_run
    assert "control on default in 2 worker processes NOT caught" in markdown.build(run)


def harmed_run(*plans: str):
    """A cell for each of `plans`."""
    run = make_run([Point("mutex", clients, 1) for clients in range(1, len(plans) + 1)])
    for frame in (run.trials, run.summary):
        frame["faults"] = [plans[clients - 1] for clients in frame["concurrency"]]
    return run


def cautions_of(run, title: str):
    return [caution for caution in cautions(make_view(run)) if caution.title == title]


def test_further_plans_of_faults_are_no_cells():
    run = harmed_run(*(f"kill redis[{server}] at 1s for 500ms" for server in range(5)))
    [faults] = cautions_of(run, "Faults")
    assert "kill redis[2]; and 2 further plans. Broken" in faults.text


def test_a_fault_that_lasted_longer_than_planned_is_told_since_figures_go_by_the_plan():
    run = harmed_run("slow redis[0] at 500ms for 300ms")
    cell = run.summary["cell"].iloc[0]
    planned = {"planned_from_ns": 500_000_000, "planned_until_ns": 800_000_000, "from_ns": 500_100_000, "error": None}
    rows = [
        {"cell": cell, "trial": trial, "fault": 1, "name": "slow redis[0]", **planned, "until_ns": until_ms * 1_000_000}
        for trial, until_ms in enumerate((850, 1072), start=1)
    ]
    [overdue] = cautions_of(replace(run, faults=pd.DataFrame(rows)), "Faults lasted longer")
    assert overdue.text.startswith(
        "Some faults lasted longer than planned: slow redis[0] 572 ms instead of 300ms. Figures"
    )
    assert not cautions_of(replace(run, faults=pd.DataFrame(rows[:1])), "Faults lasted longer")


def test_error_replies_are_an_alarm_only_beside_those_that_planned_faults_cause():
    reply = {"phase": "other", "code": "57P03", "server": 0, "count": 3, "warmup": 0, "first": "shutting down"}
    told = error_replies.encode([reply], ["postgres 18.6"])
    run = harmed_run("restart redis[0] at 1s", "none")
    run.trials["error_replies"] = [None if faults == "none" else told for faults in run.trials["faults"]]
    [expected] = cautions_of(run, "Error replies")
    assert not expected.grave
    assert expected.text.endswith("All of them came in cells with planned faults.")
    run.trials["error_replies"] = told
    assert cautions_of(run, "Error replies")[0].grave
