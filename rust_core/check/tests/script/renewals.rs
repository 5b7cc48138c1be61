//! Leases that are renewed while the lock is held.

use crate::script::{A, B, C, NONE, script, script_of};
use check::{Rules, ViolationCounts};
use locks::Nanos;

#[test]
fn a_renewed_lease_is_believed_to_its_new_end() {
    let report = script()
        .takes(A, 100)
        .at(50)
        .renews(A, 150)
        .at(149)
        .takes(B, 249)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..NONE
        }
    );
    assert_eq!(report.violations[0].first.until, Some(Nanos(150)));
}

#[test]
fn past_the_new_end_it_is_a_lease_overrun() {
    let story = script().takes(A, 100).at(50).renews(A, 150).at(150).takes(B, 250);
    assert_eq!(
        story.ends().counts,
        ViolationCounts {
            lease_overruns: 1,
            ..NONE
        }
    );
}

#[test]
fn who_releases_before_the_new_end_has_not_outlived_its_lease() {
    let story = script()
        .takes(A, 100)
        .at(99)
        .renews(A, 199)
        .at(150)
        .releases(A)
        .takes(B, 250);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn who_releases_past_the_new_end_has() {
    let story = script().takes(A, 100).at(99).renews(A, 120).at(121).releases(A);
    assert_eq!(story.ends().counts, ViolationCounts { outlived: 1, ..NONE });
}

#[test]
fn a_lease_renewed_to_end_earlier_ends_earlier() {
    let story = script().takes(A, 100).at(10).renews(A, 20).at(20).takes(B, 120);
    assert_eq!(story.ends().counts.lease_overruns, 1);
}

#[test]
fn a_renewed_reader_is_in_a_writers_way() {
    let story = script()
        .shares(A, 100)
        .shares(B, 10)
        .at(99)
        .renews(A, 300)
        .at(200)
        .takes(C, 299);
    assert_eq!(story.ends().counts.double_grants, 1);
}

#[test]
fn a_renewed_permit_is_held() {
    let two = script_of(Rules {
        permits: 2,
        ..Rules::default()
    });
    let story = two.takes(A, 100).takes(B, 100).at(99).renews(A, 300).renews(B, 300);
    assert_eq!(story.at(200).takes(C, 300).ends().counts.double_grants, 1);
}

#[test]
fn a_lease_that_has_passed_cannot_be_renewed() {
    script()
        .takes(A, 100)
        .at(100)
        .renews(A, 200)
        .finds("cannot renew a lease that has ended at 0.000100ms");
}

#[test]
fn a_lease_that_was_lost_cannot_be_renewed() {
    script()
        .takes(A, 100)
        .at(50)
        .loses_lease(A)
        .renews(A, 200)
        .finds("cannot renew a lease that has ended at 0.000050ms");
}

#[test]
fn who_only_waits_has_nothing_to_renew() {
    script()
        .waits(A)
        .renews(A, 200)
        .finds("client 0 cannot renew a lease at");
}

#[test]
fn who_stopped_has_nothing_to_renew() {
    script()
        .takes(A, 100)
        .at(10)
        .stops(A)
        .renews(A, 200)
        .finds("client 0 cannot renew a lease at");
}
