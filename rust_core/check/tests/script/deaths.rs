//! Clients that die while they wait or hold.

use crate::script::{A, B, NONE, script, script_of};
use check::Rules;
use locks::Nanos;

#[test]
fn belief_and_work_of_a_holder_end_with_its_death() {
    let report = script().takes(A, 100).at(40).dies(A).at(60).takes(B, 160).ends();
    assert_eq!(report.counts, NONE);
    assert_eq!((report.orphans, report.time_to_free), (1, vec![Nanos(20)]));
}

#[test]
fn a_lock_whose_lease_was_over_or_that_ends_with_a_session_is_no_orphan() {
    assert_eq!(script().takes(A, 100).at(100).dies(A).ends().orphans, 0);
    let sessions = Rules {
        sessions: true,
        ..Rules::default()
    };
    let report = script_of(sessions)
        .takes(A, 100)
        .at(40)
        .dies(A)
        .at(50)
        .takes(B, 90)
        .ends();
    assert_eq!((report.orphans, report.time_to_free), (0, vec![Nanos(10)]));
    assert_eq!(report.counts, NONE);
}

#[test]
fn a_client_that_dies_while_it_waits_waits_no_more_and_one_at_rest_does_nothing() {
    let report = script()
        .dies(B)
        .takes(A, 100)
        .waits(B)
        .at(10)
        .dies(B)
        .at(20)
        .dies(B)
        .takes(B, 120)
        .ends();
    assert_eq!(report.counts.double_grants, 1, "the dead client has begun anew");
    assert_eq!(report.counts.findings, 0);
    assert!(report.time_to_free.is_empty());
}
