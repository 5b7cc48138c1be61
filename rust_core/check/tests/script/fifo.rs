//! A client with a place in the queue is served before clients that come later.

use crate::script::{A, B, C, NONE, OTHER_KEY, Script, script, script_of};
use check::{Order, Report, Rules, ViolationCounts, ViolationKind};
use locks::Nanos;

const INVERSION: ViolationCounts = ViolationCounts {
    fifo_inversions: 1,
    ..NONE
};

fn in_order() -> Script {
    of_order(Order::Promised)
}

fn of_order(order: Order) -> Script {
    script_of(Rules {
        order,
        ..Rules::default()
    })
}

/// A waits from 0 and has its place from 10 on.
fn a_has_a_place() -> Script {
    in_order().waits(A).at(10).queued(A)
}

/// Waits, is granted and releases.
fn turn(story: Script, sent: u64, client: u32) -> Script {
    let story = story.at(sent).waits(client).at(sent + 5).granted(client, sent + 100);
    story.at(sent + 6).releases(client)
}

#[test]
fn who_is_granted_in_the_order_of_places_inverts_nothing() {
    let story = a_has_a_place().at(11).waits(B).at(12).queued(B).at(20).granted(A, 100);
    assert_eq!(story.at(21).releases(A).at(22).granted(B, 122).ends().counts, NONE);
}

#[test]
fn who_was_sent_after_a_place_was_acknowledged_and_is_granted_first_inverts_the_order() {
    let report = turn(a_has_a_place(), 11, B)
        .at(30)
        .granted(A, 130)
        .at(40)
        .releases(A)
        .ends();
    assert_eq!(report.counts, INVERSION);
    let violation = report.violations[0];
    assert_eq!(
        (violation.kind, violation.at),
        (ViolationKind::FifoInversion, Nanos(30))
    );
    assert_eq!((violation.first.client, violation.second.unwrap().client), (B, A));
    assert_eq!(
        (violation.first.granted, violation.first.ended),
        (Some(Nanos(16)), Some(Nanos(17)))
    );
    assert_eq!(
        (violation.second.unwrap().ended, violation.overlap),
        (Some(Nanos(40)), Nanos::ZERO)
    );
}

#[test]
fn who_was_sent_in_the_instant_of_the_acknowledgement_inverts_nothing() {
    assert_eq!(turn(a_has_a_place(), 10, B).at(30).granted(A, 130).ends().counts, NONE);
}

#[test]
fn who_was_sent_before_the_acknowledgement_inverts_nothing() {
    let story = in_order()
        .waits(A)
        .at(5)
        .waits(B)
        .at(10)
        .queued(A)
        .at(11)
        .granted(B, 111);
    assert_eq!(story.at(12).releases(B).at(13).granted(A, 113).ends().counts, NONE);
}

#[test]
fn who_was_passed_by_several_counts_once() {
    let story = turn(turn(a_has_a_place(), 11, B), 20, C);
    assert_eq!(story.at(30).granted(A, 130).ends().counts, INVERSION);
}

#[test]
fn several_who_were_passed_by_one_count_each() {
    let story = a_has_a_place().waits(B).at(11).queued(B);
    let story = turn(story, 12, C).at(30).granted(A, 130).at(31).releases(A);
    assert_eq!(story.at(32).granted(B, 132).ends().counts.fifo_inversions, 2);
}

#[test]
fn who_got_a_new_place_has_lost_the_old_one() {
    let story = turn(a_has_a_place(), 11, B).at(20).queued(A);
    assert_eq!(story.at(30).granted(A, 130).ends().counts, NONE);
}

#[test]
fn who_gives_up_may_have_left_the_queue_before_it_was_passed() {
    let story = turn(a_has_a_place(), 11, B).at(20).gives_up(A);
    assert_eq!(story.at(30).takes(A, 130).ends().counts, NONE);
}

#[test]
fn a_place_is_used_up_by_its_grant() {
    let story = a_has_a_place()
        .at(20)
        .granted(A, 120)
        .at(21)
        .releases(A)
        .at(22)
        .waits(A);
    assert_eq!(turn(story, 23, B).at(40).granted(A, 140).ends().counts, NONE);
}

#[test]
fn without_a_place_nobody_can_be_passed() {
    assert_eq!(
        turn(in_order().waits(A), 11, B).at(30).granted(A, 130).ends().counts,
        NONE
    );
}

#[test]
fn a_grant_of_another_key_passes_nobody() {
    let story = a_has_a_place().at(11).waits_for(B, OTHER_KEY).at(12).granted(B, 112);
    assert_eq!(story.at(30).granted(A, 130).ends().counts, NONE);
}

/// A is overtaken by B, and then by C, which still holds the key when A is granted it too.
fn passed_and_granted_twice(order: Order) -> Report {
    let story = turn(of_order(order).waits(A).at(10).queued(A), 11, B);
    story
        .at(20)
        .waits(C)
        .at(25)
        .granted(C, 125)
        .at(30)
        .granted(A, 130)
        .ends()
}

#[test]
fn where_an_order_is_not_promised_its_inversions_are_counted_and_recorded_nowhere() {
    let kinds = |report: &Report| report.violations.iter().map(|found| found.kind).collect::<Vec<_>>();
    let both = ViolationCounts {
        double_grants: 1,
        ..INVERSION
    };
    let counted = passed_and_granted_twice(Order::Counted);
    assert_eq!(
        (counted.counts, kinds(&counted)),
        (both, vec![ViolationKind::DoubleGrant])
    );
    let promised = passed_and_granted_twice(Order::Promised);
    let recorded = vec![ViolationKind::DoubleGrant, ViolationKind::FifoInversion];
    assert_eq!((promised.counts, kinds(&promised)), (both, recorded));
}

#[test]
fn where_nobody_asks_for_the_order_an_overtake_is_a_figure_only() {
    let story = turn(script().waits(A).at(10).queued(A), 11, B).at(30).granted(A, 130);
    let report = story.ends();
    assert_eq!((report.counts, report.figures.overtakes), (NONE, 1));
}

#[test]
fn a_place_without_waiting() {
    in_order()
        .takes(A, 100)
        .queued(A)
        .finds("client 0 cannot have a place in the queue");
}

#[test]
fn who_was_passed_and_still_has_its_place_at_the_end_was_passed() {
    let told = in_order()
        .waits(A)
        .at(5)
        .queued(A)
        .at(10)
        .takes(B, 100)
        .at(20)
        .releases(B);
    let report = told.at(30).cut_off_in_place(A).ends();
    assert_eq!(report.counts.fifo_inversions, 1);
    let violation = report.violations[0];
    let second = violation.second.expect("it waits");
    assert_eq!((violation.kind, violation.at.0), (ViolationKind::FifoInversion, 30));
    assert_eq!((violation.first.client, second.client, second.granted), (B, A, None));
}

#[test]
fn who_may_have_lost_its_place_at_the_end_was_not_passed_for_certain() {
    let told = || in_order().waits(A).at(5).queued(A).at(10).takes(B, 100).at(20);
    assert_eq!(told().cut_off_without_place(A).ends().counts.fifo_inversions, 0);
    assert_eq!(told().gives_up(A).ends().counts.fifo_inversions, 0);
    let anew = told().at(25).queued(A).at(30).cut_off_in_place(A).ends();
    assert_eq!(anew.counts.fifo_inversions, 0, "its place of now is behind B's");
}
