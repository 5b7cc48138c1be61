//! The time from a release to the next grant, if a client waited for it.

use crate::script::{A, B, C, OTHER_KEY, script};

#[test]
fn a_waiter_that_is_granted_after_a_release_gives_the_hand_off() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A)
        .at(57)
        .granted(B, 157);
    story.expect_handoff(Some(7));
}

#[test]
fn a_key_that_nobody_waited_for_gives_none() {
    let story = script()
        .takes(A, 100)
        .at(50)
        .releases(A)
        .at(52)
        .waits(B)
        .at(57)
        .granted(B, 157);
    story.expect_handoff(None);
}

#[test]
fn the_hand_off_may_go_to_somebody_who_came_later() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A)
        .at(51)
        .waits(C)
        .at(57)
        .granted(C, 157);
    story.expect_handoff(Some(7));
}

#[test]
fn when_all_who_waited_gave_up_there_is_none() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A)
        .at(60)
        .gives_up(B);
    story.at(900).takes(C, 1000).expect_handoff(None);
}

#[test]
fn a_release_hands_the_key_to_one_grant_only() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .waits(C)
        .at(50)
        .releases(A)
        .at(57)
        .granted(B, 157);
    story
        .expect_handoff(Some(7))
        .at(200)
        .granted(C, 300)
        .expect_handoff(None);
}

#[test]
fn the_release_of_another_key_hands_nothing_over() {
    let story = script()
        .waits_for(A, OTHER_KEY)
        .granted(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A);
    story.at(57).granted(B, 157).expect_handoff(None);
}

#[test]
fn only_grants_give_a_hand_off() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A)
        .expect_handoff(None);
    story
        .at(51)
        .waits(C)
        .expect_handoff(None)
        .at(52)
        .gives_up(C)
        .expect_handoff(None);
}
