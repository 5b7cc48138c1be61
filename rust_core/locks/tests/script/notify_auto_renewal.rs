//! `notify` with auto-renewal, and the waiters of such a holder. `watchdog` tests what both share.
//!
//! A lease of 9 s is believed for 8,908 ms and renewed every 3 s, for the first time after 1.5 to 3 s.

use locks::{Chance, Command, ErrorKind, Outcome, Reply, Retry, Script as Lua, ScriptForm, Spec, Strategy};

use crate::notify::SUBSCRIBE;
use crate::waiting::{SHA, SOURCE};
use crate::words::{KEY, REPLY_TIMEOUT_MS, Script, every_10_ms, lease};

const KEPT: Strategy = Strategy::Notify { renews: true };
const TTL_MS: u64 = 9_000;
const BELIEF_MS: u64 = 8_908;
const EVERY_MS: u64 = 3_000;

/// Waits for up to a minute.
fn spec() -> Spec {
    let Spec { retry, .. } = every_10_ms();
    let max_wait = locks::Nanos::from_secs(60);
    Spec {
        lease: lease(TTL_MS),
        retry: Retry { max_wait, ..retry },
        ..every_10_ms()
    }
}

impl Script {
    fn expect_renewing_try(self, label: &'static str) -> Self {
        let (script, command) = self.expect_send(label);
        let (key, token, lease_ms) = (KEY, script.token(label), TTL_MS);
        assert_eq!(command, Command::SetNxPx { key, token, lease_ms }, "{label}");
        script.expect_guard()
    }

    fn expect_renewing_look(self, label: &'static str) -> Self {
        self.expect_run(label, Lua::NotifyAcquire, None, SHA, [TTL_MS, 0])
    }

    fn expect_renewing_until(self, ms: u64) -> Self {
        self.expect_held_until(ms).expect_pause(EVERY_MS / 2..=EVERY_MS)
    }

    fn expect_renewal(self, label: &'static str, of: &str, form: ScriptForm) -> Self {
        self.expect_run(label, Lua::CompareAndExpire, Some(of), form, [TTL_MS, 0])
    }

    fn expect_renewing_back(self, label: &'static str, of: &str) -> Self {
        self.expect_run(label, Lua::NotifyRelease, Some(of), SHA, [0, 0])
    }
}

fn asking(strategy: Strategy) -> Script {
    crate::words::script(strategy, spec())
        .acquire()
        .expect_renewing_try("try")
}

/// Held since 5 ms by an attempt labelled `try`, sent at 0.
fn held() -> Script {
    asking(KEPT)
        .at(5)
        .reply("try", Reply::Ok)
        .expect_renewing_until(BELIEF_MS)
}

/// The first renewal, sent at 3 s.
fn renewing() -> Script {
    held().at(3_000).wake().expect_renewal("keep", "try", SHA)
}

/// Refused at 0, subscribed; a script labelled `look` has returned that the holder has 700 ms left.
fn waiting() -> Script {
    asking(KEPT)
        .reply("try", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_renewing_look("look")
        .reply("look", Reply::Int(700))
        .expect_pause(700..=710)
}

#[test]
fn it_is_renewed_only_where_that_was_asked_for() {
    asking(Strategy::Notify { renews: false })
        .reply("try", Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .at(5_000)
        .wake()
        .expect_nothing();
    renewing()
        .at(3_010)
        .reply("keep", Reply::Int(1))
        .expect_renewed_until(3_000 + BELIEF_MS)
        .expect_wake_at_ms(6_000)
        .sleep()
        .expect_renewal("again", "try", SHA)
        .at(6_010)
        .reply("again", Reply::Int(1))
        .expect_renewed_until(6_000 + BELIEF_MS)
        // When the first lease would end.
        .expect_wake_at_ms(9_000)
        .sleep()
        .expect_renewal("third", "try", SHA);
}

#[test]
fn the_next_grant_is_renewed_as_the_first() {
    renewing()
        .release()
        .expect_renewing_back("back", "try")
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released)
        .at(20_000)
        .acquire()
        .expect_renewing_try("next")
        .reply("keep", Reply::Int(1))
        .expect_nothing()
        .reply("next", Reply::Ok)
        .expect_renewing_until(20_000 + BELIEF_MS)
        .sleep()
        .expect_renewal("anew", "next", SHA);
}

#[test]
fn what_was_taken_after_a_wait_is_renewed_too() {
    waiting()
        .at(500)
        .publish()
        .expect_renewing_try("woken")
        .reply("woken", Reply::Ok)
        .expect_renewing_until(500 + BELIEF_MS)
        .sleep()
        .expect_renewal("keep", "woken", SHA);
    waiting()
        .at(710)
        .wake()
        .expect_renewing_look("second")
        .reply("second", Reply::Int(0))
        .expect_renewing_until(710 + BELIEF_MS)
        .sleep()
        .expect_renewal("keep", "second", SHA);
}

#[test]
fn a_reply_that_the_lock_is_gone_ends_belief_and_nothing_is_taken_again() {
    renewing()
        .reply("keep", Reply::Int(0))
        .expect_lapsed()
        .at(6_000)
        .wake()
        .expect_nothing()
        .release()
        .expect_renewing_back("back", "try")
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn without_a_reply_belief_ends_with_the_lease() {
    renewing()
        .sleep()
        .expect_pause(2_000..=2_000)
        .at(BELIEF_MS)
        .reply("keep", Reply::Int(1))
        .expect_nothing()
        .wake()
        .expect_lapsed();
    held().at(BELIEF_MS).wake().expect_lapsed().wake().expect_nothing();
}

#[test]
fn a_message_or_a_lost_connection_while_it_is_held_changes_no_renewal() {
    held()
        .publish()
        .expect_nothing()
        .disconnect()
        .expect_nothing()
        .at(3_000)
        .wake()
        .expect_renewal("keep", "try", SHA)
        .publish_to_others_first()
        .expect_nothing()
        .disconnect()
        .expect_nothing()
        .lose("keep")
        .expect_wake_at_ms(6_000);
}

#[test]
fn no_renewal_follows_a_release() {
    for cancels in [false, true] {
        let end = |script: Script| if cancels { script.cancel() } else { script.release() };
        let released = |script: Script| {
            end(script)
                .expect_renewing_back("back", "try")
                .at(3_100)
                .wake()
                .expect_pause(REPLY_TIMEOUT_MS - 100..=REPLY_TIMEOUT_MS - 100)
        };
        // One renewal is due; one is under way, and would be sent again.
        released(held().at(3_000))
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released)
            .at(60_000)
            .wake()
            .expect_nothing();
        released(renewing())
            .reply("keep", Reply::Error(ErrorKind::NoScript))
            .expect_nothing()
            .reply("back", Reply::Error(ErrorKind::NoScript))
            .expect_run("source", Lua::NotifyRelease, Some("try"), SOURCE, [0, 0])
            .lose("keep")
            .expect_nothing()
            .reply("source", Reply::Int(1))
            .expect(Outcome::Released);
        released(renewing()).reply("keep", Reply::Int(1)).expect_nothing();
    }
}

#[test]
fn a_renewal_that_the_server_does_not_know_is_sent_as_source() {
    renewing()
        .at(3_020)
        .reply("keep", Reply::Error(ErrorKind::NoScript))
        .expect_renewal("source", "try", SOURCE)
        .at(3_030)
        .reply("source", Reply::Int(1))
        .expect_renewed_until(3_020 + BELIEF_MS)
        .expect_wake_at_ms(6_020);
}

#[test]
fn a_waiter_asks_once_at_each_end_that_it_knows_of_for_as_long_as_the_holder_renews() {
    // The rest of the lease is at least two thirds, as with a holder that renews each third.
    waiting()
        .at(710)
        .wake()
        .expect_renewing_look("second")
        .reply("second", Reply::Int(6_000))
        .expect_pause(6_000..=6_010)
        .at(5_000)
        .wake()
        .expect_pause(1_710..=1_720)
        .sleep()
        .expect_renewing_look("third")
        .reply("third", Reply::Int(8_990))
        .expect_pause(8_990..=9_000)
        .expect_attempts(4)
        // And still receives the message of the release.
        .publish()
        .expect_renewing_try("woken")
        .reply("woken", Reply::Nil)
        .expect_pause(TTL_MS..=TTL_MS + 10);
}

#[test]
fn clients_that_were_granted_together_are_not_renewed_in_step() {
    let points: std::collections::BTreeSet<_> = Chance::streams(5)
        .take(20)
        .map(|chance| {
            crate::words::script_of(KEPT, spec(), chance)
                .acquire()
                .expect_renewing_try("try")
                .reply("try", Reply::Ok)
                .expect_renewing_until(BELIEF_MS)
                .point()
        })
        .collect();
    assert_eq!(points.len(), 20);
}
