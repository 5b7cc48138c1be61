from __future__ import annotations

import pandas as pd
import pytest
from support.trials import FakeResult, cell, record, totals

from pybench.analysis import verdicts
from pybench.analysis.evidence import LEAST_CONTENDED, too_little
from pybench.analysis.summary import summarise
from pybench.analysis.verdicts import Verdict

FEW = (
    f"no violation, but fewer than {LEAST_CONTENDED} contended grants, and SAFE needs {LEAST_CONTENDED}: "
    "add trials, or lengthen duration"
)
IN_NO_TRIAL = "no violation, but at least one trial had no contended grant: lengthen duration, or add clients"


def trials(*contended: int, clients: int = 8, **fields: object) -> pd.DataFrame:
    of = cell(concurrency=clients)
    rows = [
        record(of, trial=trial, result=FakeResult(totals=totals(grants=200, contended_grants=count))).row | fields
        for trial, count in enumerate(contended, start=1)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("contended", "reason"),
    [
        ((30,), None),
        ((10, 10, 10), None),
        ((29,), FEW),
        ((1, 1, 1), FEW),
        ((100, 0, 100), IN_NO_TRIAL),
        # Of before there were probes: its words say that nothing was contended.
        ((0, 0), None),
    ],
)
def test_safe_needs_contended_grants_in_every_trial_and_not_too_few(contended, reason):
    rows = trials(*contended)
    assert too_little(rows) == reason
    assert verdicts.cell_verdict(rows) is (Verdict.UNDECIDED if reason else Verdict.SAFE)


def test_a_cell_that_its_probe_judged_needs_no_contended_grants_of_its_own():
    assert too_little(trials(1, 0, judged_by_probe=True)) is None
    assert too_little(trials(1, 1, judged_by_probe=False)) == FEW


def test_nothing_contended_among_several_clients_is_undecided_where_the_probe_says_nothing():
    assert "had too few contended grants to judge it" in too_little(trials(0, 0, judged_by_probe=False))
    assert too_little(trials(0, 0, clients=1, judged_by_probe=False)) is None
    assert too_little(trials(0, 0, judged_by_probe=None)) is None


def test_a_trial_without_a_grant_asks_for_no_evidence():
    rows = trials(50, 0)
    rows.loc[1, ["grants", "verdict"]] = [0, "UNDECIDED"]
    assert too_little(rows) is None
    assert verdicts.cell_verdict(rows) is Verdict.SAFE


def test_too_little_evidence_takes_nothing_from_a_violation():
    broken = trials(2, 1)
    broken["double_grants"] = 1
    broken["verdict"] = "UNSAFE"
    assert verdicts.cell_verdict(broken) is Verdict.UNSAFE
    assert verdicts.judge_cell(broken, control_caught=True).verdict is Verdict.UNSAFE


def test_a_cell_breaks_its_promise_if_one_of_its_trials_did_and_not_otherwise():
    """A denied release is no fault of `naive` where a holder had outlived its lease, which the sums do not show."""
    rows = trials(300, 300, strategy="naive", denied_releases=1, lease_overruns=1, outlived=3)
    rows["verdict"] = "UNSAFE"
    assert not verdicts.judge_cell(rows, control_caught=True).promise_broken
    rows.loc[1, "promise_broken"] = True
    assert verdicts.judge_cell(rows, control_caught=True).promise_broken


def test_the_judgement_of_a_cell_has_the_reason_for_its_verdict():
    judgement = verdicts.judge_cell(trials(3), control_caught=True)
    assert (judgement.verdict, judgement.reason, judgement.bound_per_million) == (Verdict.UNDECIDED, FEW, None)
    assert verdicts.judge_cell(trials(300), control_caught=True).verdict is Verdict.SAFE


def test_the_summary_ranks_no_cell_with_too_little_evidence():
    row = summarise(trials(3, 2)).iloc[0]
    assert row["verdict"] == "UNDECIDED"
    assert pd.isna(row["safe_grants_per_s"])
    assert pd.isna(row["bound_per_million"])


@pytest.mark.parametrize(
    ("contended", "by_probe"), [((10, 10, 10), False), ((10, 10, 9), True), ((100, 0), True), ((), None)]
)
def test_trials_that_are_evidence_enough_together_need_no_probe(contended, by_probe):
    rows = trials(*contended, judged_by_probe=True) if contended else trials(40, judged_by_probe=None)
    (row,) = summarise(rows).to_dict("records")
    assert row["judged_by_probe"] is by_probe
