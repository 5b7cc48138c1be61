//! What is recorded of each violation.

use crate::script::{A, B, C, KEY, NEVER, script};
use check::{GrantSpan, Violation, ViolationKind};
use locks::Nanos;

#[test]
fn a_violation_names_both_grants_and_how_long_both_went_on() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .takes(B, 140)
        .at(70)
        .releases(A)
        .at(90)
        .releases(B)
        .ends();
    let first = GrantSpan {
        client: A,
        granted: Some(Nanos(0)),
        until: Some(Nanos(100)),
        fence: None,
        ended: Some(Nanos(70)),
    };
    let second = GrantSpan {
        client: B,
        granted: Some(Nanos(40)),
        until: Some(Nanos(140)),
        fence: None,
        ended: Some(Nanos(90)),
    };
    let (kind, at, overlap) = (ViolationKind::DoubleGrant, Nanos(40), Nanos(30));
    assert_eq!(
        report.violations,
        [Violation {
            kind,
            key: KEY,
            at,
            overlap,
            first,
            second: Some(second),
        }]
    );
}

#[test]
fn the_overlap_ends_with_whoever_ends_first() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .takes(B, 140)
        .at(45)
        .releases(B)
        .at(90)
        .releases(A)
        .ends();
    assert_eq!(report.violations[0].overlap, Nanos(5));
    assert_eq!(report.violations[0].first.ended, Some(Nanos(90)));
}

#[test]
fn an_overlap_that_nobody_ended_lasts_to_the_end_of_the_trial() {
    let report = script().takes(A, 100).at(40).takes(B, 140).at(60).ends();
    let violation = report.violations[0];
    assert_eq!(
        (
            violation.overlap,
            violation.first.ended,
            violation.second.unwrap().ended
        ),
        (Nanos(20), None, None)
    );
}

#[test]
fn an_overlap_that_one_ended_keeps_its_length_at_the_end_of_the_trial() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .takes(B, 140)
        .at(45)
        .releases(B)
        .at(60)
        .ends();
    let violation = report.violations[0];
    assert_eq!((violation.overlap, violation.first.ended), (Nanos(5), None));
}

#[test]
fn stopping_ends_an_overlap_and_a_later_release_does_not_move_it() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .takes(B, 140)
        .at(50)
        .stops(A)
        .at(60)
        .releases(A)
        .ends();
    let violation = report.violations[0];
    assert_eq!((violation.overlap, violation.first.ended), (Nanos(10), Some(Nanos(50))));
}

#[test]
fn a_later_grant_of_the_same_client_leaves_the_record_alone() {
    let overlap = script().takes(A, 100).at(40).takes(B, 140).at(50).releases(A);
    let report = overlap.takes(A, 150).at(70).releases(A).at(80).releases(B).ends();
    let ends: Vec<_> = report
        .violations
        .iter()
        .map(|v| (v.first.client, v.overlap, v.first.ended))
        .collect();
    assert_eq!(ends, [(A, Nanos(10), Some(Nanos(50))), (B, Nanos(20), Some(Nanos(80)))]);
}

#[test]
fn a_lock_without_a_lease_has_no_end_in_the_record() {
    let report = script().takes(A, NEVER).at(1).takes(B, NEVER).ends();
    assert_eq!(
        (
            report.violations[0].first.until,
            report.violations[0].second.unwrap().until
        ),
        (None, None)
    );
}

#[test]
fn of_several_believers_the_latest_granted_is_named() {
    let report = script().takes(A, 100).at(1).takes(B, 101).at(2).takes(C, 102).ends();
    assert_eq!(
        (
            report.violations[1].first.client,
            report.violations[1].second.unwrap().client
        ),
        (B, C)
    );
}

#[test]
fn a_believer_is_named_before_a_later_holder_whose_lease_is_over() {
    let report = script().takes(A, 100).at(1).takes(B, 10).at(20).takes(C, 120).ends();
    assert_eq!(report.violations[1].first.client, A);
}

#[test]
fn the_first_100_are_recorded_and_all_are_counted() {
    let mut story = script().takes(A, NEVER);
    for turn in 1..=150 {
        story = story.at(turn * 10).takes(B, NEVER).at(turn * 10 + 5).releases(B);
    }
    let report = story.ends();
    assert_eq!(report.counts.double_grants, 150);
    assert_eq!(report.violations.len(), 100);
    assert!(report.violations.iter().all(|violation| violation.overlap == Nanos(5)));
    assert_eq!(report.violations[99].at, Nanos(1000));
}
