//! `fair-queue` after a wake-up: the lock is held at once, for the time of a hand-over, counted from the last beat, and
//! for its whole lease after the reply of the script.

use locks::{ErrorKind, Outcome, Reply, Script as Lua, Spec};

use crate::fair_queue::{ALIVE_MS, script, waiting};
use crate::waiting::{SHA, SOURCE};
use crate::words::{BELIEF_MS, LEASE_MS, Script, every_10_ms, lease};

/// The time for which a waiter counts as alive, from the send of its last beat at 0 ms, less 1 % and 2 ms: here it is
/// shorter than the lease.
const PROMISED_MS: u64 = ALIVE_MS - ALIVE_MS / 100 - 2;

impl Script {
    fn expect_confirmation(self, label: &'static str, form: locks::ScriptForm) -> Self {
        self.expect_unguarded_run(label, Lua::QueueConfirm, Some("join"), form, [LEASE_MS, 1])
    }
}

/// The wake-up came 800 ms after the last beat.
fn woken() -> Script {
    waiting()
        .at(800)
        .reply("wakeup", Reply::Int(1))
        .expect_confirmation("confirm", SHA)
        .expect_held_until(PROMISED_MS)
}

#[test]
fn a_lock_handed_over_is_held_with_the_wakeup_and_has_its_whole_lease_with_the_reply() {
    woken()
        .at(801)
        .reply("confirm", Reply::Int(0))
        .expect_renewed_until(800 + BELIEF_MS)
        .expect_attempts(1)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_wakeup_received_late_promises_no_more_than_one_received_at_once() {
    waiting()
        .at(1_700)
        .reply("wakeup", Reply::Int(1))
        .expect_confirmation("confirm", SHA)
        .expect_held_until(PROMISED_MS);
}

#[test]
fn a_wakeup_received_when_its_promise_is_over_is_only_a_question() {
    // By then it has had no reply to later beats: the place may be gone too.
    waiting()
        .at(PROMISED_MS)
        .reply("wakeup", Reply::Int(1))
        .expect_beat("mine", "join");
}

#[test]
fn a_lock_whose_lease_is_shorter_than_a_beat_is_held_with_the_wakeup_only_for_that_long_since_the_beat() {
    let short = || {
        script(Spec {
            lease: lease(1_000),
            ..every_10_ms()
        })
        .acquire()
        .expect_run("join", Lua::QueueTake, None, SHA, [1_000, ALIVE_MS])
        .reply("join", Reply::Int(2))
        .expect_queued()
        .expect_wakeup("wakeup", "join")
        .expect_time_to_beat()
    };
    short()
        .at(987)
        .reply("wakeup", Reply::Int(1))
        .expect_unguarded_run("confirm", Lua::QueueConfirm, Some("join"), SHA, [1_000, 1])
        .expect_held_until(988)
        .release()
        .expect_run("leave", Lua::QueueLeave, Some("join"), SHA, [1_000, 0]);
    short()
        .at(988)
        .reply("wakeup", Reply::Int(1))
        .expect_run("mine", Lua::QueueTake, Some("join"), SHA, [1_000, ALIVE_MS])
        .reply("mine", Reply::Int(0))
        .expect_held_until(988 + 988);
}

#[test]
fn a_wakeup_of_a_place_that_lapsed_is_not_taken_for_one_of_the_next() {
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(2))
        .expect_queued()
        .expect_time_to_beat()
        .reply("wakeup", Reply::Int(1))
        .expect_beat("mine", "join");
}

#[test]
fn such_a_wakeup_may_come_when_the_pop_of_before_had_found_none_in_its_time() {
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .reply("beat", Reply::Int(2))
        .expect_queued()
        .expect_time_to_beat()
        .reply("wakeup", Reply::Nil)
        .expect_wakeup("second", "join")
        .reply("second", Reply::Int(1))
        .expect_beat("mine", "join");
}

#[test]
fn a_reply_after_the_promise_revives_nothing_and_the_release_releases_what_it_took() {
    woken()
        .at(PROMISED_MS)
        .reply("confirm", Reply::Int(0))
        .expect_nothing()
        .release()
        .expect_leave("leave", "join", SHA, 0);
}

#[test]
fn a_lock_that_was_lost_is_reported_as_lost() {
    woken().at(801).reply("confirm", Reply::Int(-1)).expect_lapsed();
}

#[test]
fn a_server_that_does_not_know_the_script_is_sent_its_source() {
    woken()
        .at(801)
        .reply("confirm", Reply::Error(ErrorKind::NoScript))
        .expect_confirmation("again", SOURCE)
        .at(802)
        .reply("again", Reply::Int(0))
        .expect_renewed_until(801 + BELIEF_MS);
}

#[test]
fn without_a_reply_the_promise_of_the_wakeup_stands() {
    for reply in [Reply::Error(ErrorKind::ReadOnly), Reply::Nil, Reply::Other] {
        woken().at(801).reply("confirm", reply).expect_nothing();
    }
    woken().at(801).lose("confirm").expect_nothing();
}

#[test]
fn a_reply_to_the_question_after_the_release_changes_nothing() {
    woken()
        .at(801)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("confirm", Reply::Int(0))
        .expect_nothing()
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released);
}
