//! Progress: keys that nobody is granted, clients that nobody serves, releases that do nothing.

use crate::script::{A, B, C, KEY, NONE, OTHER_KEY, Script, script, script_of};
use check::{Order, Rules, ViolationCounts, ViolationKind};
use locks::Nanos;

fn granted_within(ns: u64) -> Script {
    script_of(Rules {
        granted_within: Nanos(ns),
        ..Rules::default()
    })
}

const ONE_STALL: ViolationCounts = ViolationCounts { stalls: 1, ..NONE };

#[test]
fn a_key_that_one_waits_for_while_nobody_has_it_stalls_when_its_time_is_over() {
    let granted_at = |at| {
        let freed = granted_within(50).takes(A, 100).at(10).waits(B).at(20).releases(A);
        freed.at(at).granted(B, at + 100).ends()
    };
    assert_eq!(granted_at(70).counts, NONE);
    let report = granted_at(71);
    assert_eq!(report.counts, ONE_STALL);
    let violation = report.violations[0];
    assert_eq!((violation.kind, violation.key), (ViolationKind::StalledKey, KEY));
    assert_eq!((violation.at, violation.overlap), (Nanos(71), Nanos(51)));
    assert_eq!(
        (violation.first.client, violation.first.granted, violation.second),
        (B, None, None)
    );
}

#[test]
fn a_key_stalls_by_nothing_that_a_driver_did_not_do() {
    let granted_after = |ns: u64| {
        let freed = granted_within(50).takes(A, 100).at(10).waits(B).at(20).releases(A);
        let stood = freed.at(500).driver_stood();
        stood.at(500 + ns).granted(B, 900).ends().counts
    };
    assert_eq!(granted_after(50), NONE);
    assert_eq!(granted_after(51), ONE_STALL, "it runs again");
}

#[test]
fn a_key_that_is_held_does_not_stall() {
    let report = granted_within(50).takes(A, 1_000).at(1).waits(B).at(500).releases(A);
    assert_eq!(report.at(510).granted(B, 600).ends().counts, NONE);
}

#[test]
fn a_key_that_nobody_wants_does_not_stall() {
    let report = granted_within(50)
        .takes(A, 100)
        .at(10)
        .releases(A)
        .at(500)
        .takes(B, 600);
    assert_eq!(report.ends().counts, NONE);
}

#[test]
fn waits_of_several_one_after_another_are_no_stall() {
    let first = granted_within(50).waits(A).at(40).waits(B).at(45).gives_up(A);
    assert_eq!(first.at(85).granted(B, 200).ends().counts, NONE);
}

#[test]
fn a_stall_that_nothing_ends_is_seen_when_its_waiters_leave_or_the_trial_ends() {
    let left = granted_within(50)
        .waits(A)
        .at(1)
        .waits(B)
        .at(60)
        .gives_up(A)
        .gives_up(B);
    assert_eq!(left.ends().counts, ONE_STALL, "one stall, though two leave");
    let over = granted_within(50).waits(A).at(60);
    assert_eq!(over.ends().counts, ONE_STALL);
}

#[test]
fn the_end_of_a_lease_frees_what_its_holder_stops_with() {
    let stopped = granted_within(50).takes(A, 100).at(1).waits(B).at(100).stops(A);
    assert_eq!(stopped.at(149).granted(B, 200).ends().counts, NONE);
}

fn passed_over(times: u64, rules: Rules) -> Script {
    let mut story = script_of(rules).waits(A).queued(A);
    for turn in 1..=times {
        story = story
            .at(turn * 10)
            .takes(B, turn * 10 + 100)
            .at(turn * 10 + 5)
            .releases(B);
    }
    story.at(1_000).window_ends()
}

#[test]
fn who_waits_and_is_passed_over_twenty_times_has_starved() {
    let starved = |times| passed_over(times, Rules::default()).ends().counts.starved;
    assert_eq!((starved(19), starved(20)), (0, 1));
}

#[test]
fn starving_is_a_violation_where_an_order_is_promised() {
    let promised = Rules {
        order: Order::Promised,
        ..Rules::default()
    };
    let starving = |story: Script| {
        let report = story.ends();
        let of = report
            .violations
            .iter()
            .find(|found| found.kind == ViolationKind::StarvedClient);
        of.map(|found| (found.first.client, found.at, found.overlap))
    };
    assert_eq!(starving(passed_over(20, Rules::default())), None);
    assert_eq!(
        starving(passed_over(20, promised)),
        Some((A, Nanos(1_000), Nanos(1_000)))
    );
    let moved = script_of(promised).waits(A).queued(A).at(1).queued(A);
    assert_eq!(starving(moved.at(1_000).window_ends()), None);
}

#[test]
fn who_began_to_wait_in_the_second_half_has_not_starved() {
    let mut story = script().at(600).waits(A);
    for turn in 0..20 {
        story = story.at(601 + turn).takes(B, 900).releases(B);
    }
    assert_eq!(story.at(1_000).window_ends().ends().counts.starved, 0);
}

#[test]
fn a_grant_that_comes_when_the_lease_of_who_released_ends_was_freed_by_the_lease() {
    let ms = 1_000_000;
    let freed_at = |at: u64| {
        let released = script().takes(A, 10 * ms).at(ms).waits(B).at(2 * ms).releases(A);
        released.at(at).granted(B, 30 * ms).ends().figures.lease_freed_grants
    };
    assert_eq!(
        (freed_at(3 * ms), freed_at(9 * ms), freed_at(10 * ms + 2_000)),
        (0, 0, 1)
    );
}

#[test]
fn a_release_shortly_before_the_end_of_its_lease_may_have_freed_the_key() {
    let ms = 1_000_000;
    let rules = Rules {
        release_seen_within: Nanos(3 * ms),
        ..Rules::default()
    };
    let released = script_of(rules)
        .takes(A, 10 * ms)
        .at(ms)
        .waits(B)
        .at(8 * ms)
        .releases(A);
    let report = released.at(11 * ms).granted(B, 30 * ms).ends();
    assert_eq!(report.figures.lease_freed_grants, 0);
}

#[test]
fn what_nobody_waited_for_was_not_freed_by_a_lease() {
    let ms = 1_000_000;
    let released = script()
        .takes(A, 10 * ms)
        .at(2 * ms)
        .releases(A)
        .at(11 * ms)
        .takes(B, 30 * ms);
    assert_eq!(released.ends().figures.lease_freed_grants, 0);
}

#[test]
fn a_release_that_is_denied_inside_its_lease_is_a_violation_of_one_grant() {
    let report = script()
        .takes(A, 100)
        .at(10)
        .releases(A)
        .at(12)
        .denied_its_release(A)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            denied_releases: 1,
            ..NONE
        }
    );
    let violation = report.violations[0];
    assert_eq!(
        (violation.kind, violation.at, violation.second),
        (ViolationKind::DeniedRelease, Nanos(12), None)
    );
    assert_eq!(
        (violation.first.granted, violation.first.until),
        (Some(Nanos(0)), Some(Nanos(100)))
    );
}

#[test]
fn keys_stall_by_themselves() {
    let told = granted_within(50)
        .waits_for(C, OTHER_KEY)
        .takes(A, 900)
        .at(55)
        .granted(C, 900);
    assert_eq!(told.ends().counts, ONE_STALL);
}
