//! `fair-queue`: joining, taking and leaving when things go well, late, wrong, or not at all.

use locks::{Command, ErrorKind, Millis, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Spec, Strategy};

use crate::waiting::{SHA, SOURCE};
use crate::words::{BELIEF_MS, KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

const BEAT_MS: u64 = 2_000;
pub(crate) const ALIVE_MS: u64 = 3 * BEAT_MS;

pub(crate) fn script(spec: Spec) -> Script {
    let beat = Millis(BEAT_MS);
    crate::words::script(Strategy::FairQueue { beat }, spec)
}

impl Script {
    /// Joins with a fresh token.
    pub(crate) fn expect_join(self, label: &'static str) -> Self {
        self.expect_run(label, Lua::QueueTake, None, SHA, [LEASE_MS, ALIVE_MS])
    }

    /// Sends a beat, or asks after a wake-up.
    pub(crate) fn expect_beat(self, label: &'static str, of: &str) -> Self {
        self.expect_run(label, Lua::QueueTake, Some(of), SHA, [LEASE_MS, ALIVE_MS])
    }

    /// `listens`: the client's own wake-up list gets an element. A handed-over lock lasts no longer than its waiter
    /// counts as alive.
    pub(crate) fn expect_leave(self, label: &'static str, of: &str, form: ScriptForm, listens: u64) -> Self {
        self.expect_run(label, Lua::QueueLeave, Some(of), form, [ALIVE_MS, listens])
    }

    pub(crate) fn expect_unawaited_leave(self, label: &'static str, of: &str, listens: u64) -> Self {
        self.expect_unguarded_run(label, Lua::QueueLeave, Some(of), SOURCE, [ALIVE_MS, listens])
    }

    pub(crate) fn expect_wakeup(self, label: &'static str, of: &str) -> Self {
        let token = self.token(of);
        let command = Command::AwaitWakeup {
            key: KEY,
            token,
            timeout_ms: ALIVE_MS,
        };
        self.expect_own(label, command)
    }

    /// A beat, or up to a quarter more.
    pub(crate) fn expect_time_to_beat(self) -> Self {
        self.expect_wake_in(BEAT_MS..=BEAT_MS + BEAT_MS / 4)
    }
}

pub(crate) fn asking() -> Script {
    script(every_10_ms()).at(0).acquire().expect_join("join")
}

/// In the queue since 1 ms, with the pop labelled `wakeup`.
pub(crate) fn waiting() -> Script {
    asking()
        .at(1)
        .reply("join", Reply::Int(2))
        .expect_queued()
        .expect_wakeup("wakeup", "join")
        .expect_time_to_beat()
}

fn held() -> Script {
    asking().at(5).reply("join", Reply::Int(0)).expect_held_until(BELIEF_MS)
}

#[test]
fn a_free_lock_is_taken_in_one_round_trip() {
    held()
        .expect_attempts(1)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn the_lease_of_a_lock_handed_over_counts_from_the_reply_to_the_wakeup() {
    waiting()
        .at(800)
        .reply("wakeup", Reply::Items)
        .expect_beat("mine", "join")
        .at(801)
        .reply("mine", Reply::Int(0))
        .expect_held_until(800 + BELIEF_MS)
        .expect_attempts(1)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_place_that_was_lost_is_replaced_by_a_new_one() {
    let lapsed = |spec| {
        script(spec)
            .acquire()
            .expect_join("join")
            .reply("join", Reply::Int(2))
            .expect_queued()
            .expect_wakeup("wakeup", "join")
            .expect_time_to_beat()
            .at(100)
            .reply("wakeup", Reply::Items)
            .expect_beat("late", "join")
            .reply("late", Reply::Int(2))
            .expect_queued()
    };
    lapsed(every_10_ms())
        .expect_wakeup("wakeup again", "join")
        .expect_time_to_beat()
        .expect_attempts(2);
    let mut spec = every_10_ms();
    spec.retry.max_attempts = Some(2);
    lapsed(spec)
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn without_retry_it_does_not_queue() {
    script(one_attempt())
        .acquire()
        .expect_run("ask", Lua::QueueTake, None, SHA, [LEASE_MS, 0])
        .reply("ask", Reply::Int(-1))
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn the_longest_wait_ends_with_leaving_the_queue() {
    let over = || {
        waiting()
            .at(3_500)
            .wake()
            .expect_beat("beat", "join")
            .at(3_501)
            .reply("beat", Reply::Int(1))
            .expect_wake_at_ms(5_000)
            .sleep()
            .expect_leave("leave", "join", SHA, 1)
    };
    over()
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::TimedOut));
    // The lock was handed over meanwhile: the script has handed it on.
    over()
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TimedOut));
    over()
        .cancel()
        .expect_nothing()
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_leaves_the_queue_and_wakes_the_blocked_pop() {
    for handed in [0, 1] {
        waiting()
            .cancel()
            .expect_leave("leave", "join", SHA, 1)
            .cancel()
            .expect_nothing()
            .reply("wakeup", Reply::Items)
            .expect_nothing()
            .reply("leave", Reply::Int(handed))
            .expect(Outcome::Released);
        asking()
            .cancel()
            .expect_leave("leave", "join", SHA, 0)
            .reply("join", Reply::Int(0))
            .expect_nothing()
            .reply("leave", Reply::Int(handed))
            .expect(Outcome::Released);
    }
    held()
        .cancel()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_release_after_expiry_reports_it() {
    held()
        .at(2 * LEASE_MS)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_again_as_source() {
    let unknown = Reply::Error(ErrorKind::NoScript);
    asking()
        .at(3)
        .reply("join", unknown)
        .expect_run("again", Lua::QueueTake, Some("join"), SOURCE, [LEASE_MS, ALIVE_MS])
        .reply("again", Reply::Int(0))
        .expect_held_until(3 + BELIEF_MS)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", unknown)
        .expect_leave("leave again", "join", SOURCE, 0)
        .reply("leave again", Reply::Int(1))
        .expect(Outcome::Released);
    // A wake-up that came before the reply still counts.
    waiting()
        .at(2_600)
        .wake()
        .expect_beat("beat", "join")
        .reply("wakeup", Reply::Items)
        .reply("beat", unknown)
        .expect_run("again", Lua::QueueTake, Some("join"), SOURCE, [LEASE_MS, ALIVE_MS])
        .reply("again", Reply::Int(1))
        .expect_beat("mine", "join");
    asking()
        .reply("join", unknown)
        .expect_run("again", Lua::QueueTake, Some("join"), SOURCE, [LEASE_MS, ALIVE_MS])
        .reply("again", unknown)
        .expect_unawaited_leave("word", "join", 0)
        .expect(Outcome::Failed(ErrorKind::NoScript));
}

#[test]
fn a_question_that_gets_no_reply_is_unknown_and_undone() {
    asking()
        .lose("join")
        .expect_unawaited_leave("word", "join", 0)
        .expect(Outcome::Unknown);
    asking()
        .sleep()
        .expect_unawaited_leave("word", "join", 0)
        .expect(Outcome::Unknown);
    waiting()
        .sleep()
        .expect_beat("beat", "join")
        .lose("beat")
        .expect_unawaited_leave("word", "join", 1)
        .expect(Outcome::Unknown);
    let leaving = || held().release().expect_leave("leave", "join", SHA, 0);
    leaving().lose("leave").expect(Outcome::Unknown);
    leaving().sleep().expect(Outcome::Unknown);
    // Late replies to the script grant nothing.
    asking()
        .sleep()
        .expect_unawaited_leave("word", "join", 0)
        .expect(Outcome::Unknown)
        .acquire()
        .expect_join("second")
        .reply("join", Reply::Int(0))
        .expect_nothing()
        .lose("join")
        .expect_nothing()
        .reply("second", Reply::Int(0))
        .expect_held_until(REPLY_TIMEOUT_MS + BELIEF_MS);
}

#[test]
fn an_error_is_an_outcome() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, Unexpected, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth] {
        asking().reply("join", Reply::Error(kind)).expect(Outcome::Failed(kind));
        // A place in the queue remains.
        waiting()
            .sleep()
            .expect_beat("beat", "join")
            .reply("beat", Reply::Error(kind))
            .expect_unawaited_leave("word", "join", 1)
            .expect(Outcome::Failed(kind));
        held()
            .release()
            .expect_leave("leave", "join", SHA, 0)
            .reply("leave", Reply::Error(kind))
            .expect(Outcome::Failed(kind));
    }
    for reply in [
        Reply::Error(Other),
        Reply::Nil,
        Reply::Ok,
        Reply::Int(1),
        Reply::Int(3),
        Reply::Other,
    ] {
        let kind = if reply == Reply::Error(Other) {
            Other
        } else {
            Unexpected
        };
        asking()
            .reply("join", reply)
            .expect_unawaited_leave("word", "join", 0)
            .expect(Outcome::Failed(kind));
    }
}

#[test]
fn a_grant_that_came_too_late_is_handed_on_and_a_new_place_taken_where_the_policy_allows_it() {
    let late = |spec: Spec, alive| {
        let numbers = [100, alive];
        script(Spec {
            lease: lease(100),
            ..spec
        })
        .acquire()
        .expect_run("ask", Lua::QueueTake, None, SHA, numbers)
        .at(97)
        .reply("ask", Reply::Int(0))
        .expect_run("leave", Lua::QueueLeave, Some("ask"), SHA, [100, 0])
    };
    late(one_attempt(), 0)
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
    late(every_10_ms(), ALIVE_MS)
        .reply("leave", Reply::Int(0))
        .expect_pause(0..=10)
        .sleep()
        .expect_run("second", Lua::QueueTake, None, SHA, [100, ALIVE_MS])
        .expect_attempts(2);
    late(every_10_ms(), ALIVE_MS)
        .cancel()
        .expect_nothing()
        .reply("leave", Reply::Int(0))
        .expect(Outcome::Released);
}
