//! Which grants are contended, so that a broken lock could have shown itself on them.

use crate::script::{A, B, C, OTHER_KEY, Script, script, script_of};
use check::Rules;
use locks::Nanos;

fn contended(story: Script) -> u64 {
    story.ends().figures.contended_grants
}

#[test]
fn a_grant_with_no_rival_near_is_not_contended() {
    assert_eq!(
        contended(script().takes(A, 100).at(10).releases(A).at(500).takes(B, 600)),
        0
    );
}

#[test]
fn a_rival_that_waits_at_the_grant_makes_it_contended() {
    assert_eq!(contended(script().waits(A).waits(B).at(5).granted(A, 100)), 1);
}

#[test]
fn a_rival_that_begins_to_wait_while_it_is_held_makes_it_contended() {
    assert_eq!(contended(script().takes(A, 100).at(5).waits(B)), 1);
}

#[test]
fn a_rival_that_begins_to_wait_at_its_release_does_not() {
    assert_eq!(contended(script().takes(A, 100).at(50).releases(A).waits(B)), 0);
}

#[test]
fn a_rival_that_gave_up_before_the_grant_does_not() {
    assert_eq!(
        contended(script().waits(A).waits(B).at(1).gives_up(B).at(2).granted(A, 100)),
        0
    );
}

#[test]
fn a_rival_that_waits_for_another_key_does_not() {
    assert_eq!(contended(script().waits_for(B, OTHER_KEY).takes(A, 100)), 0);
}

#[test]
fn several_rivals_count_once_for_each_grant() {
    assert_eq!(
        contended(
            script()
                .takes(A, 100)
                .at(1)
                .waits(B)
                .at(2)
                .waits(C)
                .at(3)
                .gives_up(C)
                .at(4)
                .waits(C)
        ),
        1
    );
}

#[test]
fn two_holders_beside_each_other_are_both_contended() {
    assert_eq!(contended(script().takes(A, 100).at(1).takes(B, 101)), 2);
}

#[test]
fn a_grant_beside_a_holder_that_took_longer_than_it_meant_to_is_contended() {
    assert_eq!(
        contended(script().waits(A).granted_to_hold(A, 100, 5).at(60).takes(B, 160)),
        2
    );
}

#[test]
fn two_grants_less_than_one_hold_of_the_earlier_apart_are_both_contended() {
    assert_eq!(
        contended(
            script()
                .waits(A)
                .granted_to_hold(A, 20, 50)
                .at(20)
                .stops(A)
                .at(49)
                .takes(B, 149)
        ),
        2
    );
}

#[test]
fn two_grants_one_whole_hold_apart_are_not() {
    assert_eq!(
        contended(
            script()
                .waits(A)
                .granted_to_hold(A, 20, 50)
                .at(20)
                .stops(A)
                .at(50)
                .takes(B, 150)
        ),
        0
    );
}

#[test]
fn the_hold_of_the_later_grant_does_not_count() {
    let story = script().waits(A).granted_to_hold(A, 20, 5).at(5).releases(A);
    assert_eq!(contended(story.at(20).waits(B).granted_to_hold(B, 500, 400)), 0);
}

#[test]
fn the_grants_of_one_client_are_no_rivals() {
    assert_eq!(
        contended(
            script()
                .waits(A)
                .granted_to_hold(A, 20, 50)
                .at(20)
                .stops(A)
                .at(30)
                .takes(A, 130)
        ),
        0
    );
}

fn believed_for(least: u64) -> Script {
    script_of(Rules {
        least_belief: Nanos(least),
        ..Rules::default()
    })
}

#[test]
fn a_belief_that_is_too_short_for_a_rivals_grant_does_not_count() {
    let held_for = |ns: u64| {
        let story = believed_for(5).waits(A).waits(B).at(10).granted(A, 100);
        contended(story.at(10 + ns).releases(A))
    };
    assert_eq!((held_for(0), held_for(4), held_for(5)), (0, 0, 1));
}

#[test]
fn a_belief_ends_with_the_lease_or_the_loss_however_long_the_work_goes_on() {
    let leased = believed_for(5).waits(A).waits(B).at(10).granted(A, 13);
    assert_eq!(contended(leased.at(50).releases(A)), 0);
    let told = believed_for(5).waits(A).waits(B).at(10).granted(A, 100);
    assert_eq!(contended(told.at(12).loses_lease(A).at(50).releases(A)), 0);
}

#[test]
fn a_grant_that_is_over_counts_when_a_rivals_comes_less_than_its_hold_later() {
    let then = |ns: u64| {
        let story = believed_for(5).takes(A, 100).at(ns).releases(A);
        contended(story.at(9).takes(B, 109).at(10).releases(B))
    };
    assert_eq!((then(4), then(6)), (0, 1));
}

#[test]
fn a_belief_that_goes_on_when_the_trial_ends_is_as_long_as_it_has_been() {
    let until = |ns: u64| contended(believed_for(5).waits(A).waits(B).at(10).granted(A, 100).at(ns));
    assert_eq!((until(14), until(15)), (0, 1));
}

#[test]
fn readers_and_holders_of_permits_count_by_the_length_of_their_belief() {
    let readers = believed_for(5).shares(A, 100).shares(B, 100).at(1).waits(C);
    assert_eq!(contended(readers.at(3).releases(A).at(7).releases(B)), 1);
    let permits = script_of(Rules {
        permits: 2,
        least_belief: Nanos(5),
        ..Rules::default()
    });
    let held = permits.takes(A, 100).takes(B, 100).at(1).waits(C);
    assert_eq!(contended(held.at(3).releases(A).at(7).releases(B)), 1);
}
