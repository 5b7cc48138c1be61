//! The order of service: overtakes and streaks.

use crate::script::{A, B, C, OTHER_KEY, Script, script};

fn overtakes(story: Script) -> u64 {
    story.ends().figures.overtakes
}

fn longest_streak(story: Script) -> u64 {
    story.ends().figures.longest_streak
}

#[test]
fn grants_in_the_order_of_sending_overtake_nobody() {
    let story = script()
        .waits(A)
        .at(1)
        .waits(B)
        .at(2)
        .granted(A, 100)
        .at(3)
        .releases(A)
        .granted(B, 103);
    assert_eq!(overtakes(story), 0);
}

#[test]
fn a_grant_past_an_earlier_waiter_is_an_overtake() {
    assert_eq!(overtakes(script().waits(A).at(1).waits(B).at(2).granted(B, 100)), 1);
}

#[test]
fn a_grant_past_two_earlier_waiters_counts_once() {
    assert_eq!(
        overtakes(script().waits(A).at(1).waits(B).at(2).waits(C).at(3).granted(C, 100)),
        1
    );
}

fn longest_overtake(story: Script) -> u64 {
    story.ends().figures.longest_overtake
}

/// B waits, is granted and releases, one after another.
fn passes(mut story: Script, from: u64, times: u64) -> Script {
    for turn in from..from + times {
        story = story
            .at(turn * 10)
            .waits(B)
            .at(turn * 10 + 1)
            .granted(B, turn * 10 + 100);
        story = story.at(turn * 10 + 2).releases(B);
    }
    story
}

#[test]
fn the_longest_overtake_is_of_one_wait() {
    let story = passes(script().waits(A), 1, 3)
        .at(50)
        .granted(A, 150)
        .at(51)
        .releases(A);
    assert_eq!(longest_overtake(passes(story.at(60).waits(A), 7, 2)), 3);
}

#[test]
fn who_gave_up_in_the_end_was_overtaken_too() {
    let story = passes(script().waits(A), 1, 3).at(50).gives_up(A);
    assert_eq!(longest_overtake(passes(story.at(60).waits(A), 7, 1)), 3);
}

#[test]
fn who_moves_up_to_the_head_keeps_only_what_passed_it_too() {
    // Two overtake A alone; then C waits, and one overtakes both; A leaves; two more overtake C.
    let story = passes(passes(script().waits(A), 1, 2).at(35).waits(C), 4, 1);
    let story = story.at(50).gives_up(A);
    assert_eq!(
        longest_overtake(passes(story, 6, 1)),
        3,
        "A was passed three times, C twice"
    );
    let story = passes(passes(script().waits(A), 1, 1).at(25).waits(C), 3, 2);
    assert_eq!(
        longest_overtake(passes(story.at(50).gives_up(A), 6, 2)),
        4,
        "C was passed four times"
    );
}

#[test]
fn overtakes_of_the_warm_up_do_not_make_the_longest() {
    let story = passes(script().waits(A), 1, 3).at(40).window_begins();
    assert_eq!(longest_overtake(passes(story, 5, 2)), 2);
}

#[test]
fn those_who_were_sent_in_the_same_instant_do_not_overtake_each_other() {
    assert_eq!(overtakes(script().waits(A).waits(B).at(2).granted(B, 100)), 0);
}

#[test]
fn who_gave_up_is_not_overtaken() {
    assert_eq!(
        overtakes(script().waits(A).at(1).waits(B).at(2).gives_up(A).at(3).granted(B, 100)),
        0
    );
}

#[test]
fn who_waits_in_the_middle_can_leave_the_queue() {
    let story = script()
        .waits(A)
        .at(1)
        .waits(B)
        .at(2)
        .waits(C)
        .at(3)
        .gives_up(B)
        .at(4)
        .granted(C, 100);
    assert_eq!(overtakes(story.at(5).releases(C).granted(A, 105)), 1);
}

#[test]
fn a_waiter_for_another_key_is_not_overtaken() {
    assert_eq!(
        overtakes(script().waits_for(A, OTHER_KEY).at(1).waits(B).at(2).granted(B, 100)),
        0
    );
}

/// A is granted and releases `times` times in a row.
fn wins(mut story: Script, from: u64, times: u64) -> Script {
    for turn in from..from + times {
        story = story
            .at(turn * 10)
            .takes(A, turn * 10 + 100)
            .at(turn * 10 + 5)
            .releases(A);
    }
    story
}

#[test]
fn wins_in_a_row_while_another_waits_are_a_streak() {
    assert_eq!(longest_streak(wins(script().waits(B), 1, 4)), 4);
}

#[test]
fn wins_that_nobody_else_wanted_are_no_streak() {
    assert_eq!(longest_streak(wins(script(), 1, 4)), 0);
}

#[test]
fn a_win_that_nobody_else_wanted_breaks_the_streak() {
    let story = wins(script().waits(B), 1, 3).at(100).gives_up(B);
    let story = wins(story, 11, 1).at(200).waits(B);
    assert_eq!(longest_streak(wins(story, 21, 2)), 3);
}

#[test]
fn a_win_of_another_breaks_the_streak() {
    let story = wins(script().waits(B).waits(C), 1, 3)
        .at(100)
        .granted(B, 200)
        .at(101)
        .releases(B);
    assert_eq!(longest_streak(wins(story, 11, 2)), 3);
}

#[test]
fn a_win_on_another_key_leaves_the_streak_alone() {
    let story = wins(script().waits(B), 1, 3)
        .at(100)
        .waits_for(C, OTHER_KEY)
        .granted(C, 200);
    assert_eq!(longest_streak(wins(story, 11, 2)), 5);
}
