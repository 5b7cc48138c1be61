//! `fair-queue` and its wake-up list: beats besides the blocking pop, wake-ups that cross them, and connections that
//! break.

use locks::{ErrorKind, Outcome, Reply};

use crate::fair_queue::{asking, waiting};
use crate::waiting::SHA;
use crate::words::{BELIEF_MS, LEASE_MS};

#[test]
fn a_beat_goes_beside_the_pop_that_blocks() {
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(1))
        .expect_time_to_beat()
        .expect_attempts(1);
}

#[test]
fn an_early_wake_up_asks_for_the_point_again() {
    waiting().at(500).wake().expect_wake_in(1_501..=2_001);
}

#[test]
fn five_seconds_of_waiting_and_the_grant_cost_five_commands() {
    // join, wakeup, beat, second, mine.
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(1))
        .expect_wake_in(2_000..=2_500)
        .sleep()
        .expect_beat("second", "join")
        .reply("second", Reply::Int(1))
        .expect_wake_in(0..=1_000)
        .reply("wakeup", Reply::Items)
        .expect_beat("mine", "join");
}

#[test]
fn a_wakeup_that_overtakes_the_reply_to_a_beat_is_remembered() {
    let crossed = || {
        waiting()
            .at(2_600)
            .wake()
            .expect_beat("beat", "join")
            .at(2_601)
            .reply("wakeup", Reply::Items)
            .expect_nothing()
            .at(2_602)
    };
    crossed().reply("beat", Reply::Int(1)).expect_beat("mine", "join");
    crossed()
        .reply("beat", Reply::Int(0))
        .expect_held_until(2_600 + BELIEF_MS);
}

#[test]
fn a_beat_that_takes_the_lock_leaves_a_pop_that_the_release_wakes() {
    waiting()
        .at(2_600)
        .wake()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(0))
        .expect_held_until(2_600 + BELIEF_MS)
        .release()
        .expect_leave("leave", "join", SHA, 1)
        .reply("wakeup", Reply::Items)
        .expect_nothing()
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released)
        .acquire()
        .expect_join("next")
        .reply("next", Reply::Int(2))
        .expect_queued()
        .expect_wakeup("next wakeup", "next")
        .expect_time_to_beat();
}

#[test]
fn a_pop_of_an_earlier_request_that_still_blocks_does_not_hold_up_the_next_one() {
    waiting()
        .cancel()
        .expect_leave("leave", "join", SHA, 1)
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Released)
        .acquire()
        .expect_join("next")
        .reply("next", Reply::Int(2))
        .expect_queued()
        .expect_hang_up()
        .expect_wakeup("next wakeup", "next")
        .expect_time_to_beat()
        .lose("wakeup")
        .disconnect()
        .expect_nothing()
        .reply("next wakeup", Reply::Items)
        .expect_beat("mine", "next");
}

#[test]
fn the_wakeup_of_an_earlier_request_wakes_nobody() {
    waiting()
        .cancel()
        .expect_leave("leave", "join", SHA, 1)
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Released)
        .acquire()
        .expect_join("next")
        .reply("wakeup", Reply::Items)
        .expect_nothing()
        .reply("next", Reply::Int(2))
        .expect_queued()
        .expect_wakeup("next wakeup", "next")
        .expect_time_to_beat();
}

#[test]
fn a_pop_that_timed_out_is_sent_again() {
    waiting()
        .at(1_900)
        .reply("wakeup", Reply::Nil)
        .expect_wakeup("second", "join");
    // During a beat, when its reply has come.
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .reply("wakeup", Reply::Nil)
        .expect_nothing()
        .reply("beat", Reply::Int(1))
        .expect_wakeup("second", "join")
        .expect_time_to_beat();
}

#[test]
fn a_wakeup_lost_with_its_connection_is_asked_for_and_a_connection_that_cannot_be_had_is_not_asked_at_once_again() {
    let cut = || {
        waiting()
            .at(100)
            .disconnect()
            .expect_nothing()
            .lose("wakeup")
            .expect_beat("ask", "join")
            .at(101)
    };
    cut().reply("ask", Reply::Int(0)).expect_held_until(100 + BELIEF_MS);
    cut()
        .reply("ask", Reply::Int(1))
        .expect_wakeup("second", "join")
        .expect_time_to_beat()
        .lose("second")
        .expect_nothing()
        .sleep()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(1))
        .expect_wakeup("third", "join")
        .expect_time_to_beat()
        .lose("third")
        .expect_beat("once more", "join");
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .lose("wakeup")
        .expect_nothing()
        .reply("beat", Reply::Int(1))
        .expect_beat("ask", "join");
}

#[test]
fn a_wakeup_that_cannot_be_listened_to_ends_the_wait() {
    for (reply, kind) in [
        (Reply::Error(ErrorKind::WrongType), ErrorKind::WrongType),
        (Reply::Int(-1), ErrorKind::Unexpected),
    ] {
        let failing = || waiting().reply("wakeup", reply).expect_leave("leave", "join", SHA, 0);
        failing().reply("leave", Reply::Int(0)).expect(Outcome::Failed(kind));
        failing()
            .cancel()
            .expect_nothing()
            .reply("leave", Reply::Int(1))
            .expect(Outcome::Released);
    }
}

#[test]
fn what_happens_on_the_own_connection_changes_nothing_while_the_lock_is_held() {
    asking()
        .reply("join", Reply::Int(0))
        .expect_held_until(BELIEF_MS)
        .disconnect()
        .publish()
        .at(LEASE_MS)
        .wake()
        .expect_nothing();
}
