//! `redlock`, releasing: releases, cancels, and what must not outlive them.

use locks::{ErrorKind, Outcome, Reply, ScriptForm};

use crate::redlock::asking;
use crate::servers::{NODE_TIMEOUT_MS, on};
use crate::words::{BELIEF_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, one_attempt};

use ScriptForm::{Sha, Source};

const NOSCRIPT: Reply = Reply::Error(ErrorKind::NoScript);

/// Held by `a0`, `a1` and `a2` of five; `a3` refused, and `a4` has not replied. Released by `b0` to `b4`.
fn releasing() -> Script {
    on(5, "redlock", one_attempt())
        .acquire()
        .expect_sets(&["a0", "a1", "a2", "a3", "a4"])
        .reply("a3", Reply::Nil)
        .expect_nothing()
        .replies(&["a0", "a1", "a2"], Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .at(100)
        .release()
        .expect_deletes(
            "a0",
            &[("b0", Sha), ("b1", Sha), ("b2", Sha), ("b3", Sha), ("b4", Source)],
        )
        .expect_wake_after(REPLY_TIMEOUT_MS)
}

#[test]
fn a_release_goes_to_all_servers_and_is_over_when_most_that_had_granted_reply_1() {
    releasing()
        .replies(&["b3", "b0"], Reply::Int(0))
        .expect_nothing()
        .replies(&["b1", "b2"], Reply::Int(1))
        .expect(Outcome::Released)
        .reply("b4", Reply::Int(1))
        .expect_nothing();
}

#[test]
fn a_late_set_does_not_outlive_its_release_on_a_connection_that_lives() {
    // The release follows the SET on the connection that has not replied, and has the same token; the late grant is one
    // of those that must reply 1.
    releasing()
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Released)
        .replies(&["a4"], Reply::Ok)
        .reply("b4", Reply::Int(1))
        .expect_nothing();
    releasing()
        .reply("a4", Reply::Ok)
        .expect_nothing()
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect_nothing()
        .reply("b4", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_release_that_finds_too_few_reports_it() {
    releasing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .replies(&["b1", "b2"], Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_lost_reply_of_a_minority_stays_invisible_and_those_of_more_are_unknown() {
    releasing()
        .lose("b0")
        .expect_nothing()
        .replies(&["b1", "b2"], Reply::Int(1))
        .expect(Outcome::Released);
    releasing()
        .lose("b0")
        .expect_nothing()
        .lose("b1")
        .expect_nothing()
        .reply("b2", Reply::Int(1))
        .expect(Outcome::Unknown);
    releasing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .sleep()
        .expect(Outcome::Unknown)
        .replies(&["b1", "b2"], Reply::Int(1))
        .expect_nothing();
    releasing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .reply("b1", Reply::Error(ErrorKind::ReadOnly))
        .expect_nothing()
        .reply("b2", Reply::Int(0))
        .expect(Outcome::Failed(ErrorKind::ReadOnly));
    releasing()
        .reply("b0", Reply::Other)
        .expect_nothing()
        .lose("b1")
        .expect_nothing()
        .reply("b2", Reply::Int(1))
        .expect(Outcome::Failed(ErrorKind::Unexpected));
}

#[test]
fn each_server_that_does_not_know_the_script_is_sent_its_source() {
    releasing()
        .reply("b0", NOSCRIPT)
        .expect_delete_on("c0", 0, "a0", Source)
        .reply("b1", NOSCRIPT)
        .expect_delete_on("c1", 1, "a0", Source)
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .replies(&["b2", "c1"], Reply::Int(1))
        .expect(Outcome::Released)
        // After the settlement too: a minority's key is not left to its lease.
        .reply("b3", NOSCRIPT)
        .expect_delete_on("c3", 3, "a0", Source)
        .reply("c0", NOSCRIPT)
        .expect_nothing();
    // The wait is bounded.
    releasing()
        .replies(&["b1"], NOSCRIPT)
        .expect_delete_on("c1", 1, "a0", Source)
        .reply("c1", NOSCRIPT)
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .reply("b2", Reply::Int(0))
        .expect(Outcome::Failed(ErrorKind::NoScript));
}

#[test]
fn a_release_of_an_earlier_attempt_is_sent_again_during_the_next_one() {
    asking(every_10_ms())
        .reply("a0", Reply::Nil)
        .expect_nothing()
        .reply("a1", Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_pause(0..=10)
        .sleep()
        .expect_sets(&["c0", "c1", "c2"])
        .reply("b1", NOSCRIPT)
        .expect_delete_on("again", 1, "a0", Source)
        .reply("again", Reply::Int(1))
        .expect_nothing()
        .lose("b0")
        .reply("b0", NOSCRIPT)
        .expect_nothing();
}

#[test]
fn servers_that_do_not_reply_get_the_release_behind_and_the_next_attempt_behind_that() {
    let silent = |retry| {
        asking(retry)
            .reply("a0", Reply::Ok)
            .expect_nothing()
            .sleep()
            .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Source)])
            .expect_wake_after(NODE_TIMEOUT_MS)
            .reply("b0", Reply::Int(1))
    };
    // Nobody waits a second time for them; only whether they granted is not known.
    silent(one_attempt()).expect(Outcome::Unknown);
    silent(every_10_ms())
        .expect_pause(0..=10)
        .replies(&["a1", "a2"], Reply::Ok)
        .expect_nothing()
        .at(NODE_TIMEOUT_MS + 10)
        .wake()
        .expect_sets(&["c0", "c1", "c2"])
        .replies(&["b1", "b2"], Reply::Int(1))
        .expect_nothing()
        .reply("c0", Reply::Ok)
        .expect_nothing()
        .reply("c1", Reply::Ok)
        .expect_held_until(NODE_TIMEOUT_MS + 10 + BELIEF_MS);
    // The one that granted is waited for, as long as the others were.
    let no_reply = || {
        asking(every_10_ms())
            .reply("a0", Reply::Ok)
            .expect_nothing()
            .sleep()
            .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Source)])
            .expect_wake_after(NODE_TIMEOUT_MS)
    };
    no_reply().sleep().expect_pause(0..=10);
    // A connection that breaks takes the order with it.
    no_reply()
        .lose("a1")
        .expect_nothing()
        .lose("a2")
        .expect_nothing()
        .lose("b1")
        .expect_nothing()
        .lose("b2")
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Unknown);
    // A lost connection shows nothing about the SET that went over it, unless the key was there.
    let lost = || {
        asking(every_10_ms())
            .lose("a1")
            .expect_nothing()
            .lose("a2")
            .expect_deletes("a0", &[("b0", Source), ("b1", Source), ("b2", Source)])
            .expect_wake_after(NODE_TIMEOUT_MS)
    };
    lost()
        .replies(&["b0", "b1", "b2"], Reply::Int(0))
        .expect(Outcome::Unknown);
    lost()
        .replies(&["b0", "b1"], Reply::Int(0))
        .expect_nothing()
        .reply("b2", Reply::Int(1))
        .expect_pause(0..=10);
}

#[test]
fn a_cancel_while_asking_does_not_wait_for_the_replies_to_what_it_undoes() {
    let cancelled = || {
        asking(every_10_ms())
            .reply("a0", Reply::Ok)
            .expect_nothing()
            .cancel()
            .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Source)])
            .expect_wake_after(NODE_TIMEOUT_MS)
    };
    cancelled()
        .reply("a1", Reply::Ok)
        .expect_nothing()
        .reply("a2", Reply::Ok)
        .expect_nothing()
        .cancel()
        .expect_nothing()
        .replies(&["b0", "b1", "b2"], Reply::Int(1))
        .expect(Outcome::Released);
    // A dead server is not waited for once the others have replied that nothing is left.
    cancelled()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .reply("b1", Reply::Int(0))
        .expect(Outcome::Released);
    cancelled().reply("b0", Reply::Int(1)).sleep().expect(Outcome::Unknown);
}

#[test]
fn a_cancel_at_any_other_point_settles_as_well() {
    let pausing = asking(every_10_ms())
        .replies(&["a0", "a1"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_pause(0..=10);
    pausing.cancel().expect(Outcome::Released).sleep().expect_nothing();

    asking(every_10_ms())
        .reply("a0", Reply::Ok)
        .expect_nothing()
        .replies(&["a1", "a2"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha)])
        .expect_wake_after(NODE_TIMEOUT_MS)
        .cancel()
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Released);

    asking(one_attempt())
        .replies(&["a0", "a1"], Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .cancel()
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_guard()
        .cancel()
        .expect_nothing()
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Released);
}
