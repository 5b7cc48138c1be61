//! What is counted when the window opens and closes, with replies by hand: it lasts from 10 ms to 30 ms.

use locks::{Nanos, Reply, Scope, SessionOwner, Strategy, Wait};

use crate::by_hand::{A, B, MS, Rig, nested_rig, rig};
use crate::clients::Doing;
use crate::driver::Driver;
use crate::recorder::stats::{Counters, Ended, Phase};

const TAKEN: Reply = Reply::Int(0);
const GRANTED: Reply = Reply::Int(1);
const RELEASED: Reply = Reply::Int(1);

fn locks(clients: u32) -> Rig {
    let lock = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    rig(lock, clients).expecting_a_window(10, 30)
}

/// The longest sample of each outcome, in milliseconds.
fn samples(rig: &mut Rig, phase: Phase) -> Vec<(Ended, u64)> {
    let filled = rig.driver.recorder.histograms().filled();
    let of_phase = filled.filter(|row| row.0 == phase);
    of_phase
        .map(|(_, ended, histogram)| (ended, histogram.max() / MS))
        .collect()
}

fn counted(rig: &Rig) -> Counters {
    rig.driver.recorder.counters()
}

#[test]
fn a_grant_at_the_first_moment_of_the_window_counts_and_one_before_does_not() {
    let before = locks(1).at_ms(8).begins(A).at_ms(9).answered(GRANTED);
    assert_eq!((counted(&before).grants, counted(&before).all_grants), (0, 1));
    let first = locks(1).at_ms(9).begins(A).at_ms(10).answered(GRANTED);
    assert_eq!((counted(&first).grants, counted(&first).all_grants), (1, 1));
}

#[test]
fn a_grant_at_the_end_of_the_window_is_none_of_its_grants() {
    let late = locks(1).at_ms(29).begins(A).at_ms(30).answered(GRANTED);
    assert_eq!((counted(&late).grants, counted(&late).all_grants), (0, 1));
}

#[test]
fn an_acquire_that_was_due_in_the_warm_up_and_is_granted_in_the_window_is_a_grant_and_no_sample() {
    let mut granted = locks(1).at_ms(4).begins(A).at_ms(15).answered(GRANTED);
    assert_eq!(counted(&granted).grants, 1);
    assert_eq!(granted.driver.recorder.clients.figures[A as usize].wait_max_ns, 11 * MS);
    assert_eq!(samples(&mut granted, Phase::Response), []);
}

#[test]
fn an_acquire_that_was_due_and_granted_in_the_window_is_a_sample_however_long_the_loop_did_not_look() {
    let mut granted = locks(1).at_ms(12).begins(A).at_ms(20).answered(GRANTED);
    assert_eq!(counted(&granted).grants, 1);
    assert_eq!(samples(&mut granted, Phase::Response), [(Ended::Granted, 8)]);
}

#[test]
fn an_acquire_that_ended_without_a_grant_is_a_sample_where_it_was_due_in_the_window() {
    let refused = |due| {
        let mut rig = locks(1).at_ms(due).begins(A).at_ms(14).loses_its_reply();
        (counted(&rig).unknown, samples(&mut rig, Phase::Response))
    };
    assert_eq!(refused(12), (1, vec![(Ended::Unknown, 2)]));
    assert_eq!(refused(9), (1, vec![]));
}

#[test]
fn a_wait_that_is_not_over_when_the_window_closes_is_a_sample_of_at_least_so_long() {
    let mut granted = locks(1).at_ms(12).begins(A).at_ms(33).answered(GRANTED);
    let counters = counted(&granted);
    assert_eq!((counters.grants, counters.unfinished), (0, 1));
    assert_eq!(samples(&mut granted, Phase::Response), [(Ended::Waiting, 18)]);
    assert_eq!(granted.driver.recorder.clients.figures[A as usize].wait_max_ns, 18 * MS);
}

#[test]
fn who_waits_from_before_the_window_to_its_end_is_a_sample_of_all_that_time() {
    let mut starved = locks(1).at_ms(4).begins(A).at_ms(31);
    assert_eq!(counted(&starved).unfinished, 1);
    assert_eq!(starved.driver.recorder.clients.figures[A as usize].wait_max_ns, 26 * MS);
    assert_eq!(samples(&mut starved, Phase::Response), [(Ended::Waiting, 26)]);
}

#[test]
fn an_acquire_that_begins_after_the_window_is_none_that_it_left_waiting() {
    let mut idle = locks(1).at_ms(31).begins(A).at_ms(40);
    assert_eq!(counted(&idle).unfinished, 0);
    assert_eq!(samples(&mut idle, Phase::Response), []);
}

#[test]
fn attempts_count_when_they_were_made_within_the_window() {
    let twice_before = locks(1).at_ms(5).begins(A).answered(TAKEN).at_ms(7).answered(TAKEN);
    let third = twice_before.at_ms(9);
    assert_eq!(third.doing(A), Doing::Acquiring);
    // The third is under way when the window opens; the fourth is granted.
    let granted = third.at_ms(11).answered(TAKEN).at_ms(13).answered(GRANTED);
    assert_eq!(counted(&granted).attempts, 4, "in full until the window closes");
    let closed = granted.at_ms(30);
    let counters = counted(&closed);
    assert_eq!(
        (counters.grants, counters.attempts, counters.refused_attempts),
        (1, 1, 1)
    );
    assert_eq!(closed.driver.recorder.clients.figures[A as usize].attempts, 1);
}

#[test]
fn of_a_nominal_hold_the_part_within_the_window_counts() {
    let nominal = |rig: Rig| counted(&rig.at_ms(30)).nominal_hold_ns / MS;
    let begun_before = || locks(2).at_ms(5).begins_to_hold(A, 8).at_ms(6).answered(GRANTED);
    assert_eq!(nominal(begun_before().at_ms(14).answered(RELEASED)), 4, "from 10 to 14");
    let goes_on = || locks(2).at_ms(20).begins_to_hold(B, 50).at_ms(27).answered(GRANTED);
    assert_eq!(nominal(goes_on()), 3, "from 27 to 30");
    let all_along = locks(2).at_ms(2).begins_to_hold(A, 500).answered(GRANTED);
    assert_eq!(nominal(all_along), 20);
}

#[test]
fn of_a_hold_that_is_cut_short_after_its_lease_it_is_known_that_it_was_at_least_so_long() {
    let cut_short_at = |ms: u64| {
        let mutex = nested_rig(Strategy::Mutex, 1, 1);
        let held = mutex.begins_to_hold(A, 60_000).answered(Reply::Ok);
        let mut cut = held.at_ms(ms);
        cut.cut_short(A);
        samples(&mut cut.answered(RELEASED), Phase::Hold)
    };
    assert_eq!(
        cut_short_at(9_000),
        [],
        "nobody knows whether it would have outlived it"
    );
    // The bucket of this value ends there.
    assert_eq!(cut_short_at(11_000), [(Ended::Waiting, 11_005)]);
}

#[test]
fn a_trial_that_is_stopped_closes_its_window_then() {
    let mut stopped = locks(1).at_ms(12).begins(A).at_ms(17);
    let Driver { clients, recorder, .. } = &mut stopped.driver;
    recorder.close_window(Nanos(17 * MS), clients, Nanos::ZERO);
    assert_eq!(stopped.driver.recorder.window.length, Nanos(7 * MS));
    assert_eq!(samples(&mut stopped, Phase::Response), [(Ended::Waiting, 5)]);
    let never_opened = locks(1).at_ms(4);
    assert_eq!(never_opened.driver.recorder.window.length, Nanos::ZERO);
}

#[test]
fn an_arrival_that_still_queues_waits_too() {
    let mut queued = locks(1).at_ms(12);
    for ms in [8, 14] {
        queued.driver.clients.enqueue(Nanos(ms * MS));
    }
    let mut closed = queued.at_ms(30);
    assert_eq!(counted(&closed).unfinished, 2);
    assert_eq!(samples(&mut closed, Phase::Response), [(Ended::Waiting, 22)]);
    assert_eq!(closed.driver.recorder.window.longest.queued, Nanos(22 * MS));
}

#[test]
fn a_stall_is_as_long_as_the_window_saw_of_it() {
    let stall = |planned: u64, looked: u64| {
        let mut rig = locks(1);
        rig.driver.recorder.looks(Nanos(planned * MS), Nanos(looked * MS));
        rig.driver.recorder.window.longest.stall.0 / MS
    };
    assert_eq!(stall(12, 17), 5);
    assert_eq!(stall(2, 9), 0, "before the window");
    assert_eq!(stall(2, 13), 3, "it began before the window");
    assert_eq!(stall(26, 4_000), 4, "it ended after the window");
    assert_eq!(stall(31, 40), 0, "after the window");
    assert_eq!(stall(17, 12), 0, "something came before the time to wake up");
}

#[test]
fn no_lock_is_to_blame_for_a_key_that_was_free_while_the_loop_stood_still_in_the_midst_of_a_round() {
    let stalls_when_read_at = |readings: &[u64]| {
        let held = locks(2).at_ms(1).begins(A).answered(GRANTED).begins(B);
        let mut freed = held.at_ms(2).answered(RELEASED);
        for &ms in readings {
            freed.reads(ms);
        }
        freed.answered(GRANTED).judged().counts.stalls
    };
    let all_the_while: Vec<u64> = (1..=300).map(|step| step * 50).collect();
    assert_eq!(stalls_when_read_at(&all_the_while), 1);
    assert_eq!(stalls_when_read_at(&[15_000]), 0);
}
