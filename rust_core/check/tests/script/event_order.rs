//! Events that cannot follow each other are the driver's fault, and stop the trial with a reason.

use crate::script::{A, script};

#[test]
#[should_panic(expected = "client 0 cannot be granted a lock: it is Idle")]
fn a_grant_without_waiting() {
    let _ = script().granted(A, 100);
}

#[test]
#[should_panic(expected = "client 0 cannot be granted a lock: it is Holding")]
fn a_second_grant() {
    let _ = script().takes(A, 100).granted(A, 100);
}

#[test]
#[should_panic(expected = "client 0 cannot begin to wait: it is Waiting")]
fn waiting_twice() {
    let _ = script().waits(A).waits(A);
}

#[test]
#[should_panic(expected = "client 0 cannot begin to wait: it is Holding")]
fn waiting_while_holding() {
    let _ = script().takes(A, 100).waits(A);
}

#[test]
#[should_panic(expected = "client 0 cannot release: it is Idle")]
fn a_release_without_a_grant() {
    let _ = script().releases(A);
}

#[test]
#[should_panic(expected = "client 0 cannot release: it is Idle")]
fn a_second_release() {
    let _ = script().takes(A, 100).releases(A).releases(A);
}

#[test]
#[should_panic(expected = "client 0 cannot give up waiting: it is Holding")]
fn giving_up_what_is_held() {
    let _ = script().takes(A, 100).gives_up(A);
}

#[test]
#[should_panic(expected = "client 0 cannot lose a lease: it is Waiting")]
fn losing_a_lease_before_the_grant() {
    let _ = script().waits(A).loses_lease(A);
}

#[test]
#[should_panic(expected = "client 0 cannot stop working: it is Stopped")]
fn stopping_twice() {
    let _ = script().takes(A, 100).stops(A).stops(A);
}

#[test]
fn being_told_of_the_loss_after_stopping_is_harmless() {
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
#[should_panic(expected = "is stamped 0.000004ms, but it is 0.000005ms already")]
fn a_stamp_that_goes_back() {
    let _ = script().at(5).waits(A).at(4).gives_up(A);
}

#[test]
#[should_panic(expected = "the trial ends at 0.000004ms, but it is 0.000005ms already")]
fn an_end_before_the_last_event() {
    let _ = script().at(5).waits(A).at(4).ends();
}
