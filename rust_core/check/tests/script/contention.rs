//! Which grants a broken lock could have shown itself on.

use crate::script::{A, B, C, OTHER_KEY, Script, script};

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
