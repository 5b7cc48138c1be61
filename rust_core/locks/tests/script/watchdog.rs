//! `watchdog`: how a lease is renewed, and how its loss is noticed. `mutex` tests what both share.
//!
//! A lease of 9 s is believed for 8,908 ms and renewed every 3 s, for the first time after 1.5 to 3 s.

use locks::{Chance, Command, ErrorKind, Millis, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Spec, Strategy};

use crate::words::{KEY, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

const TTL_MS: u64 = 9_000;
const BELIEF_MS: u64 = 8_908;
const EVERY_MS: u64 = 3_000;

fn watchdog(max_hold: Option<Millis>) -> Strategy {
    Strategy::Watchdog {
        renewals_per_ttl: 3,
        max_hold,
    }
}

fn spec() -> Spec {
    Spec {
        lease: lease(TTL_MS),
        ..one_attempt()
    }
}

/// Held since 5 ms by a `SET` sent at 0.
fn held() -> Script {
    held_with(watchdog(None), spec())
}

fn held_with(strategy: Strategy, spec: Spec) -> Script {
    crate::words::script(strategy, spec)
        .acquire()
        .expect_set("set")
        .at(5)
        .reply("set", Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .expect_pause(EVERY_MS / 2..=EVERY_MS)
}

fn renewal(script: &Script, form: ScriptForm) -> Command {
    Command::Run {
        script: Lua::CompareAndExpire,
        form,
        key: KEY,
        token: script.token("set"),
        numbers: [TTL_MS, 0],
    }
}

trait Renews {
    fn expect_renewal(self, label: &'static str, form: ScriptForm) -> Self;
}

impl Renews for Script {
    fn expect_renewal(self, label: &'static str, form: ScriptForm) -> Self {
        let command = renewal(&self, form);
        self.expect_command(label, command)
    }
}

/// The first renewal, sent at 3 s.
fn renewing() -> Script {
    held().at(3_000).wake().expect_renewal("keep", ScriptForm::Sha)
}

#[test]
fn the_lease_is_renewed_and_counts_from_before_the_send() {
    renewing()
        .at(3_010)
        .reply("keep", Reply::Int(1))
        .expect_renewed_until(3_000 + BELIEF_MS)
        .expect_wake_at(locks::Nanos::from_millis(6_000))
        .sleep()
        .expect_renewal("again", ScriptForm::Sha)
        .at(6_500)
        .reply("again", Reply::Int(1))
        .expect_renewed_until(6_000 + BELIEF_MS)
        .expect_pause(2_500..=2_500);
}

#[test]
fn a_wake_up_before_the_point_asks_for_it_again() {
    held().at(1_000).wake().expect_pause(505..=2_005);
    renewing().at(3_100).wake().expect_pause(900..=900);
}

#[test]
fn a_reply_that_the_lock_is_gone_ends_belief_and_nothing_is_taken_again() {
    renewing()
        .at(3_010)
        .reply("keep", Reply::Int(0))
        .expect_lapsed()
        .at(6_000)
        .wake()
        .expect_nothing()
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_renewal_that_gets_its_reply_after_the_end_revives_nothing() {
    // The reply comes at the very end, before the wake-up that would have reported it.
    renewing()
        .at(3_900)
        .reply("keep", Reply::Error(ErrorKind::Loading))
        .expect_pause(2_100..=2_100)
        .at(8_800)
        .wake()
        .expect_last_renewal("late")
        .at(BELIEF_MS)
        .reply("late", Reply::Int(1))
        .expect_lapsed()
        .wake()
        .expect_nothing();
}

#[test]
fn a_holder_that_wakes_after_the_end_asks_nothing() {
    held().at(BELIEF_MS).wake().expect_lapsed().wake().expect_nothing();
}

impl Script {
    /// As `expect_renewal`, but the lease ends before the reply timeout.
    fn expect_last_renewal(self, label: &'static str) -> Self {
        let command = renewal(&self, ScriptForm::Sha);
        self.expect_unguarded(label, command)
            .expect_wake_at(locks::Nanos::from_millis(BELIEF_MS))
    }
}

#[test]
fn without_any_reply_belief_ends_with_the_lease() {
    renewing()
        .at(3_000 + REPLY_TIMEOUT_MS)
        .wake()
        .expect_pause(2_000..=2_000)
        .sleep()
        .expect_renewal("second", ScriptForm::Sha)
        .lose("second")
        .expect_pause(2_908..=2_908)
        .sleep()
        .expect_lapsed()
        .reply("keep", Reply::Int(1))
        .expect_nothing();
}

#[test]
fn a_reply_to_a_renewal_that_was_given_up_changes_nothing() {
    renewing()
        .sleep()
        .expect_pause(2_000..=2_000)
        .reply("keep", Reply::Int(0))
        .expect_nothing()
        .reply("keep", Reply::Int(1))
        .expect_nothing()
        .lose("keep")
        .expect_nothing();
}

#[test]
fn a_renewal_that_the_server_does_not_know_is_sent_as_source() {
    renewing()
        .at(3_020)
        .reply("keep", Reply::Error(ErrorKind::NoScript))
        .expect_renewal("source", ScriptForm::Source)
        .at(3_030)
        .reply("source", Reply::Int(1))
        .expect_renewed_until(3_020 + BELIEF_MS)
        .expect_pause(2_990..=2_990);
    renewing()
        .reply("keep", Reply::Error(ErrorKind::NoScript))
        .expect_renewal("source", ScriptForm::Source)
        .reply("source", Reply::Error(ErrorKind::NoScript))
        .expect_pause(3_000..=3_000);
}

#[test]
fn an_error_is_no_loss_while_the_lease_runs() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, Unexpected, WrongType};
    for kind in [
        ReadOnly,
        Loading,
        Moved,
        OutOfMemory,
        WrongType,
        NoAuth,
        Other,
        Unexpected,
    ] {
        renewing()
            .reply("keep", Reply::Error(kind))
            .expect_pause(3_000..=3_000)
            .sleep()
            .expect_renewal("again", ScriptForm::Sha);
    }
    for reply in [Reply::Ok, Reply::Nil, Reply::Int(2), Reply::Items, Reply::Other] {
        renewing().reply("keep", reply).expect_pause(3_000..=3_000);
    }
}

#[test]
fn no_renewal_follows_a_release() {
    for cancels in [false, true] {
        let end = |script: Script| if cancels { script.cancel() } else { script.release() };
        let released = |script: Script| {
            script
                .expect_release("back", "set", ScriptForm::Sha)
                .at(3_100)
                .wake()
                .expect_pause(REPLY_TIMEOUT_MS - 100..=REPLY_TIMEOUT_MS - 100)
        };
        // One renewal is due; one is under way, and would be sent again.
        released(end(held().at(3_000)))
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released)
            .at(60_000)
            .wake()
            .expect_nothing();
        released(end(renewing()))
            .reply("keep", Reply::Error(ErrorKind::NoScript))
            .expect_nothing()
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released);
        released(end(renewing())).lose("keep").expect_nothing();
    }
}

#[test]
fn a_hold_is_renewed_no_longer_than_its_cap() {
    held_with(watchdog(Some(Millis(3_500))), spec())
        .at(3_000)
        .wake()
        .expect_renewal("keep", ScriptForm::Sha)
        .reply("keep", Reply::Int(1))
        .expect_renewed_until(3_000 + BELIEF_MS)
        .expect_wake_at(locks::Nanos::from_millis(3_000 + BELIEF_MS))
        .at(9_000)
        .wake()
        .expect_wake_at(locks::Nanos::from_millis(3_000 + BELIEF_MS))
        .sleep()
        .expect_lapsed();
}

#[test]
fn the_next_grant_is_renewed_as_the_first() {
    renewing()
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released)
        .at(20_000)
        .acquire()
        .expect_set("next")
        .reply("keep", Reply::Int(1))
        .expect_nothing()
        .reply("next", Reply::Ok)
        .expect_held_until(20_000 + BELIEF_MS)
        .expect_pause(EVERY_MS / 2..=EVERY_MS);
}

#[test]
fn a_lock_that_is_not_held_is_not_renewed() {
    let script = || crate::words::script(watchdog(None), spec());
    script()
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy))
        .at(3_000)
        .wake()
        .expect_nothing();
    script()
        .acquire()
        .expect_set("set")
        .cancel()
        .expect_nothing()
        .reply("set", Reply::Ok)
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released)
        .wake()
        .expect_nothing();
}

#[test]
fn a_lease_too_short_for_a_renewal_lapses() {
    // 3 ms, believed for 970 us, would be renewed after 1 ms.
    let short = Spec {
        lease: lease(3),
        ..every_10_ms()
    };
    let end = locks::Nanos::from_micros(970);
    crate::words::script(watchdog(None), short)
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Ok)
        .expect(Outcome::Held {
            lasts: locks::Lasts::Until(end),
            fence: None,
        })
        .expect_pause(0..=1)
        .at(1)
        .wake()
        .expect_lapsed();
}

#[test]
fn clients_that_were_granted_together_are_not_renewed_in_step() {
    let mut points: Vec<_> = Chance::streams(5)
        .take(20)
        .map(|chance| {
            crate::words::script_of(watchdog(None), spec(), chance)
                .acquire()
                .expect_set("set")
                .reply("set", Reply::Ok)
                .expect_held_until(BELIEF_MS)
                .expect_pause(EVERY_MS / 2..=EVERY_MS)
                .point()
        })
        .collect();
    points.sort();
    points.dedup();
    assert_eq!(points.len(), 20);
}
