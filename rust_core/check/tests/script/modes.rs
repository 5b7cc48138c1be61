//! Locks with shared and exclusive holders.

use crate::script::{A, B, C, D, NEVER, NONE, OTHER_KEY, Script, script};
use check::{ViolationCounts, ViolationKind};

const DOUBLE: ViolationCounts = ViolationCounts {
    double_grants: 1,
    ..NONE
};
const OVERRUN: ViolationCounts = ViolationCounts {
    lease_overruns: 1,
    ..NONE
};

fn contended(story: Script) -> u64 {
    story.ends().figures.contended_grants
}

#[test]
fn those_who_share_may_believe_beside_each_other() {
    let story = script().shares(A, 100).at(1).shares(B, 101).at(2).shares(C, 102);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn a_writer_beside_a_reader_is_a_double_grant() {
    let report = script().shares(A, 100).at(1).takes(B, 101).ends();
    assert_eq!(report.counts, DOUBLE);
    assert_eq!(
        (
            report.violations[0].first.client,
            report.violations[0].second.unwrap().client
        ),
        (A, B)
    );
}

#[test]
fn a_reader_beside_a_writer_is_a_double_grant() {
    let report = script().takes(A, 100).at(1).shares(B, 101).ends();
    assert_eq!(report.counts, DOUBLE);
    assert_eq!(
        (
            report.violations[0].first.client,
            report.violations[0].second.unwrap().client
        ),
        (A, B)
    );
}

#[test]
fn a_writer_beside_a_writer_is_a_double_grant_where_others_share_too() {
    let story = script()
        .shares(A, 100)
        .at(1)
        .releases(A)
        .takes(B, 101)
        .at(2)
        .takes(C, 102);
    assert_eq!(story.ends().counts, DOUBLE);
}

#[test]
fn a_writer_that_held_before_the_first_reader_came_is_known_to_it() {
    let story = script()
        .takes(A, 100)
        .waits(B)
        .at(1)
        .shares(C, 101)
        .at(2)
        .releases(A)
        .releases(C);
    let report = story.at(3).granted(B, 103).at(4).shares(D, 104).ends();
    assert_eq!(report.counts.double_grants, 2);
    let clients = report
        .violations
        .iter()
        .map(|v| (v.first.client, v.second.unwrap().client));
    assert_eq!(clients.collect::<Vec<_>>(), [(A, C), (B, D)]);
}

#[test]
fn a_writer_after_all_readers_released_is_no_violation() {
    let story = script()
        .shares(A, 100)
        .shares(B, 100)
        .at(5)
        .releases(A)
        .at(6)
        .releases(B)
        .takes(C, 106);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn a_writer_beside_one_reader_of_several_that_is_left_is_a_double_grant() {
    let story = script().shares(A, 100).shares(B, 100).at(5).releases(B).takes(C, 105);
    assert_eq!(story.ends().counts, DOUBLE);
}

#[test]
fn a_writer_beside_readers_that_outlived_their_leases_is_a_lease_overrun() {
    let report = script().shares(A, 10).shares(B, 10).at(10).takes(C, 110).ends();
    assert_eq!(report.counts, OVERRUN);
    assert_eq!(report.violations[0].kind, ViolationKind::LeaseOverrun);
}

#[test]
fn a_reader_beside_a_writer_that_outlived_its_lease_is_a_lease_overrun() {
    assert_eq!(script().takes(A, 10).at(10).shares(B, 110).ends().counts, OVERRUN);
}

#[test]
fn a_reader_beside_a_reader_that_outlived_its_lease_is_nothing() {
    assert_eq!(script().shares(A, 10).at(10).shares(B, 110).ends().counts, NONE);
}

#[test]
fn the_reader_that_still_believes_is_found_among_those_that_do_not() {
    let report = script()
        .shares(A, NEVER)
        .shares(B, 10)
        .shares(C, 10)
        .at(20)
        .takes(D, 120)
        .ends();
    assert_eq!(report.counts, DOUBLE);
    assert_eq!(report.violations[0].first.client, A);
}

#[test]
fn readers_are_no_rivals_of_readers() {
    assert_eq!(
        contended(script().shares(A, 100).waits_to_share(B).at(1).granted(B, 101)),
        0
    );
}

#[test]
fn a_writer_that_waits_makes_all_readers_that_hold_contended() {
    let story = script().shares(A, 100).shares(B, 100).at(1).releases(B).shares(C, 101);
    assert_eq!(contended(story.at(2).waits(D).at(3).gives_up(D).at(4).waits(D)), 2);
}

#[test]
fn a_reader_granted_while_a_writer_waits_is_contended() {
    assert_eq!(contended(script().waits(A).shares(B, 100)), 1);
}

#[test]
fn a_reader_granted_when_the_writer_gave_up_is_not_contended() {
    assert_eq!(
        contended(script().waits(A).shares(B, 100).at(1).gives_up(A).shares(C, 101)),
        1
    );
}

#[test]
fn a_reader_that_waits_makes_a_writer_contended() {
    assert_eq!(contended(script().takes(A, 100).at(1).waits_to_share(B)), 1);
}

#[test]
fn readers_within_one_hold_of_a_reader_are_not_contended() {
    assert_eq!(
        contended(script().shares(A, 100).at(1).releases(A).at(2).shares(B, 102)),
        0
    );
}

#[test]
fn a_writer_within_one_hold_of_a_reader_makes_both_contended() {
    assert_eq!(
        contended(script().shares(A, 100).at(1).releases(A).at(2).takes(B, 102)),
        2
    );
}

#[test]
fn a_reader_of_the_warm_up_that_becomes_contended_in_the_window_does_not_count() {
    let story = script().shares(A, 100).at(1).window_begins().shares(B, 101);
    assert_eq!(contended(story.at(2).waits(C)), 1);
}

#[test]
fn a_writer_of_another_key_is_nobodys_rival() {
    let story = script().shares(A, 100).waits_for(B, OTHER_KEY).at(1).granted(B, 101);
    let report = story.ends();
    assert_eq!((report.counts, report.figures.contended_grants), (NONE, 0));
}
