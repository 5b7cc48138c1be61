//! Holders with guarded work, with replies by hand.

use locks::{ErrorKind, Event, GuardKind, Key, Reply, ServerId, Strategy};

use super::{Accepted, Guards};
use crate::by_hand::{A, B, ByHand, Rig, rig_of, server, spec};
use crate::clients::Doing;
use crate::clients::trial_params::TrialParams;
use crate::recorder::stats::Counters;
use crate::spec::{AfterLease, GuardSpec, TrialSpec};

const READ: Reply = Reply::Int(7);
const DONE: Reply = Reply::Int(1);

fn guarded(strategy: Strategy, kind: GuardKind) -> TrialSpec {
    TrialSpec {
        guard: Some(GuardSpec {
            kind,
            server: server(strategy),
        }),
        servers: vec![server(strategy)],
        ..spec(strategy, 2)
    }
}

/// A counter under a mutex.
fn counter() -> TrialSpec {
    guarded(Strategy::Mutex, GuardKind::Counter)
}

/// A client that was granted the mutex at 1 ms, and waits for the value.
fn reading(spec: &TrialSpec) -> Rig {
    let rig = rig_of(spec, ByHand::default()).begins_to_hold(A, 5);
    rig.at_ms(1).answered(Reply::Ok)
}

fn counters(rig: &Rig) -> Counters {
    rig.driver.recorder.counters()
}

fn writes(rig: &Rig) -> (u64, u64, i64) {
    let writes = rig.driver.written();
    (writes.acknowledged[0], writes.unknown[0], writes.changed[0])
}

#[test]
fn the_hold_begins_when_the_value_was_read_and_the_release_follows_the_acknowledged_write() {
    let mut rig = reading(&counter()).at_ms(4).answered(READ);
    assert!(rig.driver.transport.sent.is_empty(), "it thinks");
    rig = rig.at_ms(8);
    assert!(
        rig.driver.transport.sent.is_empty(),
        "5 ms from the read on, not from the grant on"
    );
    rig = rig.at_ms(9);
    assert!(rig.driver.transport.sent.last().expect("it writes").call.is_guarded());
    assert_eq!(rig.doing(A), Doing::Holding);
    rig = rig.at_ms(10).answered(DONE);
    assert_eq!(rig.doing(A), Doing::Releasing);
    assert!(!rig.last_sent().call.is_guarded());
    assert_eq!(writes(&rig), (1, 0, 1));
    assert_eq!(
        counters(&rig).commands,
        2,
        "the calls of the work are not those of the lock"
    );
}

#[test]
fn a_read_without_a_reply_abandons_the_work_and_releases() {
    let is_abandoned = |rig: Rig| {
        assert_eq!((rig.doing(A), counters(&rig).abandoned_works), (Doing::Releasing, 1));
        assert_eq!(writes(&rig), (0, 0, 0));
    };
    is_abandoned(reading(&counter()).at_ms(1_001));
    is_abandoned(reading(&counter()).at_ms(2).loses_its_reply());
    is_abandoned(reading(&counter()).at_ms(2).answered(Reply::Error(ErrorKind::Other)));
}

#[test]
fn a_write_without_a_reply_is_unknown_and_releases() {
    let written = || reading(&counter()).at_ms(2).answered(READ).at_ms(7);
    for rig in [written().at_ms(1_007), written().at_ms(8).loses_its_reply()] {
        assert_eq!(rig.doing(A), Doing::Releasing);
        assert_eq!(writes(&rig), (0, 1, 0));
        assert_eq!(counters(&rig).unsettled, 0, "the lock itself is settled");
    }
}

#[test]
fn a_holder_that_stops_with_its_lease_does_not_write() {
    let spec = TrialSpec {
        after_lease: AfterLease::Stop,
        ..counter()
    };
    // A lease of 10 s, less 1 % and 2 ms, from the send at 0.
    let thinks = rig_of(&spec, ByHand::default()).begins_to_hold(A, 20_000);
    let thinks = thinks.at_ms(1).answered(Reply::Ok).at_ms(2).answered(READ);
    let stopped = thinks.at_ms(9_898);
    assert_eq!(
        (stopped.doing(A), counters(&stopped).abandoned_works),
        (Doing::Releasing, 1)
    );
    assert_eq!(writes(&stopped), (0, 0, 0));
}

#[test]
fn at_the_end_a_write_is_waited_for_and_a_read_is_given_up() {
    let mut writes_still = reading(&counter()).at_ms(2).answered(READ).at_ms(7);
    writes_still.driver.stop();
    assert_eq!(writes_still.doing(A), Doing::Holding);
    let written = writes_still.at_ms(8).answered(DONE);
    assert_eq!((written.doing(A), writes(&written)), (Doing::Releasing, (1, 0, 1)));

    let mut reads_still = reading(&counter()).at_ms(2);
    reads_still.driver.stop();
    assert_eq!(
        (reads_still.doing(A), writes(&reads_still)),
        (Doing::Releasing, (0, 0, 0))
    );
}

#[test]
fn a_write_that_is_still_unanswered_in_the_end_is_unknown() {
    let mut rig = reading(&counter()).at_ms(2).answered(READ).at_ms(7);
    rig.driver.count_unanswered_writes();
    assert_eq!(writes(&rig), (0, 1, 0));
}

#[test]
fn the_late_reply_of_a_work_that_was_given_up_does_not_touch_the_next_one() {
    let mut rig = reading(&counter());
    let late = rig.last_sent();
    rig = rig.at_ms(2);
    rig.cut_short(A);
    rig = rig.at_ms(3).answered(DONE);
    assert_eq!(rig.doing(A), Doing::Idle);
    rig = rig.begins_to_hold(A, 5).at_ms(4).answered(Reply::Ok);
    let call = late.call;
    rig.dispatch(A, Event::Replied { call, reply: READ });
    rig = rig.at_ms(20);
    assert!(rig.last_sent().call.is_guarded(), "it waits for its own value");
    assert_eq!(writes(&rig), (0, 0, 0));
}

#[test]
fn an_atomic_step_needs_no_lock_and_knows_who_worked_beside_it() {
    let spec = guarded(Strategy::Atomic, GuardKind::Stock);
    let mut rig = rig_of(&spec, ByHand::default())
        .begins_to_hold(A, 5)
        .begins_to_hold(B, 5);
    assert_eq!((rig.doing(A), rig.doing(B)), (Doing::Holding, Doing::Holding));
    rig = rig.at_ms(5);
    assert_eq!(rig.driver.transport.sent.len(), 2);
    rig = rig.answered(DONE).answered(DONE);
    assert_eq!((writes(&rig), counters(&rig).conflicted_grants), ((2, 0, -2), 1));
    // Where nothing is left, works beside one another change nothing, and prove nothing.
    rig = rig.begins_to_hold(A, 5).begins_to_hold(B, 5).at_ms(10);
    rig = rig.answered(Reply::Nil).answered(Reply::Nil);
    assert_eq!((counters(&rig).sold_out, counters(&rig).conflicted_grants), (2, 1));
    assert_eq!((rig.doing(A), rig.doing(B)), (Doing::Idle, Doing::Idle));
}

#[test]
fn a_resource_that_accepts_a_lower_fence_than_before_is_caught() {
    let spec = guarded(Strategy::Fenced { renews: false }, GuardKind::FencedWrite);
    let params = TrialParams::new(&spec).expect("the trial is sound");
    let accepted = Accepted::new(&params, 1);
    assert_eq!(accepted.floor(Key(0)), 0);
    accepted.accept(Key(0), 9);
    accepted.accept(Key(0), 4);
    assert_eq!(accepted.floor(Key(0)), 9);

    // Two holders at once, as when the first has outlived its lease.
    let held = |fence| Reply::Int(fence);
    let rig = rig_of(&spec, ByHand::default())
        .begins_to_hold(A, 5)
        .at_ms(1)
        .answered(held(1));
    let rig = rig
        .answered(READ)
        .begins_to_hold(B, 50)
        .answered(held(2))
        .answered(READ);
    let rig = rig.at_ms(6).answered(DONE);
    assert_eq!(counters(&rig).stale_writes_accepted, 1);
    assert_eq!(writes(&rig), (1, 0, 1));
}

#[test]
fn the_server_of_the_resource_comes_after_those_of_the_lock() {
    let rules = counter().guard_rules().expect("it has a guard");
    assert_eq!(
        (rules.server, rules.is_atomic, rules.is_database),
        (ServerId(1), false, false)
    );
    assert!(!Guards::NONE.are_any() && !Guards::NONE.is_writing(A));
}
