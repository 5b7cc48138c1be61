"""What stands before the figures."""

from __future__ import annotations

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
