//! Semaphores: at most as many holders at once as permits.

use crate::script::{A, B, C, D, NONE, Script, script_of};
use check::{Rules, ViolationCounts};

fn two_permits() -> Script {
    script_of(Rules {
        permits: 2,
        ..Rules::default()
    })
}

fn contended(story: Script) -> u64 {
    story.ends().figures.contended_grants
}

#[test]
fn as_many_holders_as_permits_are_no_violation() {
    assert_eq!(two_permits().takes(A, 100).at(1).takes(B, 101).ends().counts, NONE);
}

#[test]
fn one_believer_more_is_a_double_grant_beside_the_earliest() {
    let report = two_permits()
        .takes(A, 100)
        .at(1)
        .takes(B, 101)
        .at(2)
        .takes(C, 102)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..NONE
        }
    );
    assert_eq!(
        (
            report.violations[0].first.client,
            report.violations[0].second.unwrap().client
        ),
        (A, C)
    );
}

#[test]
fn a_permit_that_was_released_may_be_granted_again() {
    let story = two_permits()
        .takes(A, 100)
        .at(1)
        .takes(B, 101)
        .at(2)
        .releases(A)
        .takes(C, 102);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn one_holder_more_beside_one_that_outlived_its_lease_is_a_lease_overrun() {
    let story = two_permits().takes(A, 10).at(1).takes(B, 101).at(10).takes(C, 110);
    assert_eq!(
        story.ends().counts,
        ViolationCounts {
            lease_overruns: 1,
            ..NONE
        }
    );
}

#[test]
fn believers_are_counted_past_those_that_outlived_their_leases() {
    let story = two_permits()
        .takes(A, 100)
        .at(1)
        .takes(B, 5)
        .at(10)
        .takes(C, 110)
        .at(11)
        .takes(D, 111);
    assert_eq!(
        story.ends().counts,
        ViolationCounts {
            double_grants: 1,
            lease_overruns: 1,
            ..NONE
        }
    );
}

#[test]
fn a_grant_that_leaves_a_permit_is_not_contended() {
    assert_eq!(contended(two_permits().waits(A).waits(B).at(1).granted(A, 100)), 0);
}

#[test]
fn a_rival_that_waits_while_all_permits_are_held_makes_all_holders_contended() {
    assert_eq!(contended(two_permits().takes(A, 100).takes(B, 100).at(1).waits(C)), 2);
}

#[test]
fn the_grant_of_the_last_permit_while_a_rival_waits_makes_all_holders_contended() {
    let story = two_permits().takes(A, 100).waits(B).waits(C);
    assert_eq!(contended(story.at(1).granted(B, 101)), 2);
}

#[test]
fn a_holder_that_released_before_the_rival_came_is_not_contended() {
    let story = two_permits()
        .takes(A, 100)
        .takes(B, 100)
        .at(1)
        .releases(A)
        .takes(C, 101);
    assert_eq!(contended(story.at(2).waits(D)), 2);
}

#[test]
fn a_grant_when_all_permits_are_held_is_contended() {
    assert_eq!(contended(two_permits().takes(A, 100).takes(B, 100).takes(C, 100)), 3);
}

#[test]
fn nobody_shares_a_permit() {
    two_permits()
        .waits_to_share(A)
        .finds("client 0 cannot share a lock of several permits");
}

#[test]
#[should_panic(expected = "a lock without permits can be granted to nobody")]
fn there_is_a_permit() {
    let _ = script_of(Rules {
        permits: 0,
        ..Rules::default()
    });
}
