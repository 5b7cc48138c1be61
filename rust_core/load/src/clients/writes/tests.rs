//! Optimistic work, with replies by hand.

use locks::{ErrorKind, Event, Reply, Strategy};

use crate::by_hand::{A, MS, Rig, rig};
use crate::clients::Doing;
use crate::driver::Driver;
use crate::recorder::Writes;
use crate::recorder::stats::{Ended, Phase};

const CONFLICT: Reply = Reply::Error(ErrorKind::Serialization);
const WRITTEN: Reply = Reply::Int(0);

fn work() -> Rig {
    rig(Strategy::PgSerializable, 1)
}

/// From the read at 1 ms to a write at 2 ms that comes after another client's write, and the end of the transaction.
fn meets_a_conflict() -> Rig {
    let held = work().begins(A).at_ms(1).answered(Reply::Int(7));
    held.at_ms(2).answered(CONFLICT).answered(Reply::Ok)
}

fn recorded(mut rig: Rig, phase: Phase) -> Vec<(Ended, u64)> {
    let filled = rig.driver.recorder.histograms().filled();
    filled
        .filter(|row| row.0 == phase)
        .map(|(_, ended, histogram)| (ended, histogram.max() / MS))
        .collect()
}

#[test]
fn a_work_is_granted_when_its_write_was_accepted_and_not_before() {
    let held = work().begins(A).at_ms(1).answered(Reply::Int(7));
    assert_eq!(
        (held.doing(A), held.driver.recorder.counters().grants),
        (Doing::Holding, 0)
    );
    let written = held.at_ms(2).answered(WRITTEN);
    let counters = written.driver.recorder.counters();
    assert_eq!(
        (counters.grants, counters.all_grants, counters.acknowledged_writes),
        (1, 1, 1)
    );
    assert_eq!((counters.conflicts, counters.conflicted_grants), (0, 0));
    assert_eq!(written.doing(A), Doing::Idle);
}

#[test]
fn a_conflict_is_a_refused_attempt_of_a_work_that_goes_on() {
    let again = meets_a_conflict();
    let counters = again.driver.recorder.counters();
    assert_eq!(again.doing(A), Doing::Acquiring);
    assert_eq!(
        (counters.grants, counters.acknowledged_writes, counters.attempts),
        (0, 0, 0)
    );
    let granted = again.at_ms(5).answered(Reply::Int(8)).at_ms(7).answered(WRITTEN);
    let counters = granted.driver.recorder.counters();
    assert_eq!((counters.grants, counters.acknowledged_writes), (1, 1));
    assert_eq!((counters.attempts, counters.refused_attempts), (2, 1));
    assert_eq!((counters.conflicts, counters.conflicted_grants), (1, 1));
}

#[test]
fn a_response_runs_from_when_the_work_was_due_to_the_grant_of_its_last_try() {
    let granted = || {
        let again = meets_a_conflict().at_ms(5).answered(Reply::Int(8));
        again.at_ms(7).answered(WRITTEN)
    };
    assert_eq!(recorded(granted(), Phase::Response), [(Ended::Granted, 5)]);
    assert_eq!(recorded(granted(), Phase::Hold), [(Ended::Granted, 2)]);
    let releases: Vec<_> = recorded(granted(), Phase::Release).iter().map(|row| row.0).collect();
    assert_eq!(releases, [Ended::Granted, Ended::Refused]);
}

#[test]
fn a_write_without_a_reply_is_no_grant_and_may_be_there() {
    let lost = work()
        .begins(A)
        .at_ms(1)
        .answered(Reply::Int(7))
        .at_ms(2)
        .loses_its_reply();
    let counters = lost.driver.recorder.counters();
    assert_eq!(
        (counters.grants, counters.acknowledged_writes, counters.unknown_writes),
        (0, 0, 1)
    );
    assert_eq!((counters.unknown, lost.doing(A)), (1, Doing::Pausing));
}

#[test]
fn a_write_without_a_reply_by_the_end_may_be_there() {
    let mut unanswered = work().begins(A).at_ms(1).answered(Reply::Int(7)).at_ms(2);
    assert_eq!(unanswered.doing(A), Doing::Releasing);
    let Driver { clients, recorder, .. } = &mut unanswered.driver;
    clients.count_unanswered_writes(recorder);
    assert_eq!(unanswered.driver.recorder.counters().unknown_writes, 1);
}

#[test]
fn a_session_that_ends_during_the_work_leaves_nothing_written() {
    let mut held = work().begins(A).at_ms(1).answered(Reply::Int(7));
    held.dispatch(A, Event::Disconnected);
    let counters = held.at_ms(2).driver.recorder.counters();
    assert_eq!(
        (
            counters.stale_writes,
            counters.unknown_writes,
            counters.acknowledged_writes
        ),
        (0, 0, 0)
    );
    assert_eq!((counters.grants, counters.lost, counters.refused_attempts), (0, 1, 1));
}

#[test]
fn a_write_after_the_window_counts_as_written_and_not_as_granted() {
    let mut held = work().begins(A).at_ms(1).answered(Reply::Int(7));
    let Driver { clients, recorder, .. } = &mut held.driver;
    recorder.count_unfinished(held.now, clients);
    recorder.close_at_once(held.now);
    clients.running = false;
    held.cut_short(A);
    let counters = held.answered(WRITTEN).driver.recorder.counters();
    assert_eq!(
        (counters.acknowledged_writes, counters.all_grants, counters.grants),
        (1, 1, 0)
    );
    assert_eq!((counters.unfinished, counters.attempts), (1, 1));
}

#[test]
fn a_work_that_the_end_of_a_period_met_in_conflict_is_dropped() {
    let mut held = work().begins(A).at_ms(1).answered(Reply::Int(7));
    held.driver.clients.running = false;
    held.cut_short(A);
    let mut dropped = held.answered(CONFLICT).answered(Reply::Ok);
    assert_eq!(dropped.doing(A), Doing::Idle);
    dropped.driver.clients.running = true;
    let next = dropped
        .at_ms(5)
        .begins(A)
        .at_ms(6)
        .answered(Reply::Int(7))
        .at_ms(7)
        .answered(WRITTEN);
    assert_eq!(
        (
            next.driver.recorder.counters().attempts,
            next.driver.recorder.counters().conflicted_grants
        ),
        (1, 0)
    );
}

#[test]
fn writes_are_counted_by_their_key_and_a_lock_that_writes_nothing_has_no_rows() {
    let written = work()
        .begins(A)
        .at_ms(1)
        .answered(Reply::Int(7))
        .at_ms(2)
        .answered(WRITTEN);
    assert_eq!(written.driver.recorder.written().acknowledged, [1]);
    assert_eq!(written.driver.recorder.written().unknown, [0]);
    assert!(
        rig(Strategy::Mutex, 1)
            .driver
            .recorder
            .written()
            .acknowledged
            .is_empty()
    );
    let mut sum = Writes::default();
    sum.add(written.driver.recorder.written());
    sum.add(written.driver.recorder.written());
    assert_eq!((sum.acknowledged, sum.unknown), (vec![2], vec![0]));
}
