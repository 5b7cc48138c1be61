//! Fences that grow, and fences that do not.

use crate::script::{A, B, C, NONE, OTHER_KEY, Script, fence, script, script_of};
use check::{Rules, ViolationCounts, ViolationKind};
use locks::Nanos;

fn fenced() -> Script {
    script_of(Rules {
        fences: true,
        ..Rules::default()
    })
}

/// Takes the lock with this fence and releases it.
fn turn(story: Script, at: u64, client: u32, number: u64) -> Script {
    let story = story.at(at).waits(client).granted_with_fence(client, at + 100, number);
    story.at(at + 5).releases(client)
}

fn stale(number: u64) -> ViolationCounts {
    ViolationCounts {
        stale_fences: number,
        ..NONE
    }
}

#[test]
fn fences_that_grow_are_no_violation() {
    let story = turn(turn(turn(fenced(), 0, A, 1), 10, B, 2), 20, A, 9);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn the_same_fence_again_is_stale() {
    let report = turn(turn(fenced(), 0, A, 7), 10, B, 7).ends();
    assert_eq!(report.counts, stale(1));
    let violation = report.violations[0];
    assert_eq!((violation.kind, violation.at), (ViolationKind::StaleFence, Nanos(10)));
    assert_eq!((violation.first.client, violation.first.fence), (A, fence(7)));
    assert_eq!(
        (violation.first.ended, violation.second.unwrap().ended),
        (Some(Nanos(5)), Some(Nanos(15)))
    );
    assert_eq!(violation.overlap, Nanos::ZERO);
}

#[test]
fn a_counter_that_restarts_is_stale_until_it_has_caught_up() {
    let mut story = turn(fenced(), 0, A, 3);
    for number in 1..=4 {
        story = turn(story, number * 10, B, number);
    }
    assert_eq!(story.ends().counts, stale(3));
}

#[test]
fn a_client_can_be_given_a_stale_fence_after_itself() {
    let report = turn(turn(fenced(), 0, A, 7), 10, A, 6).ends();
    assert_eq!(report.counts, stale(1));
    assert_eq!(
        (
            report.violations[0].first.ended,
            report.violations[0].second.unwrap().ended
        ),
        (Some(Nanos(5)), Some(Nanos(15)))
    );
}

#[test]
fn fences_of_different_keys_are_not_compared() {
    let story = turn(fenced(), 0, A, 7).waits_for(B, OTHER_KEY);
    assert_eq!(story.granted_with_fence(B, 100, 1).ends().counts, NONE);
}

#[test]
fn a_stale_fence_beside_its_holder_is_also_a_double_grant() {
    let story = fenced().waits(A).granted_with_fence(A, 100, 2);
    let report = story
        .at(10)
        .waits(B)
        .granted_with_fence(B, 110, 2)
        .at(30)
        .releases(A)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..stale(1)
        }
    );
    assert_eq!(
        report.violations.iter().map(|v| v.overlap).collect::<Vec<_>>(),
        [Nanos(20); 2]
    );
}

#[test]
fn a_lock_that_promises_no_fences_may_repeat_them() {
    let story = turn(turn(script(), 0, A, 7), 10, B, 7);
    assert_eq!(story.ends().counts, NONE);
}

#[test]
fn the_fences_of_a_double_grant_are_recorded() {
    let story = fenced().waits(A).granted_with_fence(A, 100, 117);
    let violation = story.waits(C).granted_with_fence(C, 100, 118).ends().violations[0];
    assert_eq!(
        (violation.first.fence, violation.second.unwrap().fence),
        (fence(117), fence(118))
    );
}

#[test]
fn a_promised_fence_must_come() {
    fenced().takes(A, 100).finds("promises fences without one");
}
