//! Events in an impossible order are findings: the trial goes on, and proves nothing.

use crate::script::{A, B, NONE, script};
use check::ViolationCounts;

#[test]
fn a_grant_without_waiting() {
    script().granted(A, 100).finds("client 0 cannot be granted a lock at");
}

#[test]
fn a_second_grant() {
    script()
        .takes(A, 100)
        .granted(A, 100)
        .finds("client 0 cannot be granted a lock at");
}

#[test]
fn waiting_twice() {
    script().waits(A).waits(A).finds("client 0 cannot begin to wait at");
}

#[test]
fn waiting_while_holding() {
    script()
        .takes(A, 100)
        .waits(A)
        .finds("client 0 cannot begin to wait at");
}

#[test]
fn a_release_without_a_grant() {
    script().releases(A).finds("client 0 cannot release at");
}

#[test]
fn a_second_release() {
    script()
        .takes(A, 100)
        .releases(A)
        .releases(A)
        .finds("client 0 cannot release at");
}

#[test]
fn giving_up_what_is_held() {
    script()
        .takes(A, 100)
        .gives_up(A)
        .finds("client 0 cannot give up waiting at");
}

#[test]
fn losing_a_lease_before_the_grant() {
    script()
        .waits(A)
        .loses_lease(A)
        .finds("client 0 cannot lose a lease at");
}

#[test]
fn stopping_twice() {
    script()
        .takes(A, 100)
        .stops(A)
        .stops(A)
        .finds("client 0 cannot stop working at");
}

#[test]
fn learning_of_the_loss_after_stopping_is_harmless() {
    let report = script()
        .takes(A, 100)
        .at(50)
        .stops(A)
        .at(60)
        .loses_lease(A)
        .at(70)
        .releases(A)
        .ends();
    assert_eq!(report.counts.outlived, 0);
}

#[test]
fn a_stamp_that_goes_back() {
    script()
        .at(5)
        .waits(A)
        .at(4)
        .gives_up(A)
        .at(6)
        .finds("is stamped 0.000004ms, but it is 0.000005ms already");
}

#[test]
fn an_end_before_the_last_event() {
    script()
        .at(5)
        .waits(A)
        .at(4)
        .finds("the trial ends at 0.000004ms, but it is 0.000005ms already");
}

#[test]
fn what_goes_on_after_a_finding_is_judged_as_ever() {
    let report = script()
        .takes(A, 100)
        .at(10)
        .waits(A)
        .granted(A, 110)
        .at(20)
        .takes(B, 120)
        .ends();
    let expected = ViolationCounts {
        double_grants: 1,
        findings: 1,
        ..NONE
    };
    assert_eq!(report.counts, expected);
    assert!(report.first_finding.unwrap().contains("it is Holding"));
}
