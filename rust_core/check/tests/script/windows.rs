//! What counts in the window, and what in the whole trial.

use crate::script::{A, B, script};
use check::Figures;

#[test]
fn the_figures_of_the_warm_up_are_thrown_away_and_its_violations_count() {
    let story = script()
        .waits(A)
        .waits(B)
        .at(1)
        .granted(B, 100)
        .at(2)
        .granted(A, 100)
        .at(3)
        .releases(A)
        .releases(B);
    let report = story.window_begins().ends();
    assert_eq!(report.figures, Figures::default());
    assert_eq!(report.counts.double_grants, 1);
}

#[test]
fn figures_stop_at_the_end_of_the_window_and_violations_go_on() {
    let story = script().takes(A, 100).at(5).window_ends().at(10).takes(B, 110);
    let report = story.ends();
    assert_eq!(
        report.figures,
        Figures {
            grants: 1,
            contended_grants: 1,
            ..Figures::default()
        }
    );
    assert_eq!(report.counts.double_grants, 1);
}

#[test]
fn who_waited_before_the_window_still_waits_in_it() {
    let figures = script()
        .waits(A)
        .at(5)
        .window_begins()
        .at(6)
        .takes(B, 106)
        .ends()
        .figures;
    let expected = Figures {
        grants: 1,
        contended_grants: 1,
        overtakes: 1,
        longest_streak: 1,
        longest_overtake: 1,
        lease_freed_grants: 0,
    };
    assert_eq!(figures, expected);
}

#[test]
fn a_grant_of_the_warm_up_that_becomes_contended_in_the_window_does_not_count() {
    let report = script().takes(A, 100).at(5).window_begins().at(6).waits(B).ends();
    assert_eq!(report.figures.contended_grants, 0);
}

#[test]
fn a_grant_of_the_window_that_becomes_contended_after_it_counts() {
    let report = script().takes(A, 100).at(5).window_ends().at(6).waits(B).ends();
    assert_eq!(
        report.figures,
        Figures {
            grants: 1,
            contended_grants: 1,
            ..Figures::default()
        }
    );
}

#[test]
fn a_streak_counts_from_the_beginning_of_the_window() {
    let mut story = script().waits(B);
    for turn in 1..=5 {
        story = if turn == 4 { story.window_begins() } else { story };
        story = story
            .at(turn * 10)
            .takes(A, turn * 10 + 100)
            .at(turn * 10 + 5)
            .releases(A);
    }
    assert_eq!(story.ends().figures.longest_streak, 2);
}

#[test]
fn a_release_before_the_window_hands_over_in_it() {
    let story = script()
        .takes(A, 100)
        .at(10)
        .waits(B)
        .at(50)
        .releases(A)
        .window_begins()
        .at(57)
        .granted(B, 157);
    story.expect_handoff(Some(7));
}
