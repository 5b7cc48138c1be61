//! `Event::Extend`: a holder that asks for a whole lease from now on. The lock is a `watchdog` that never renews unasked,
//! as `load::lock_client` takes it for a `mutex`. A lease of 9 s is believed for 8,908 ms.

use locks::{Command, Millis, Nanos, Outcome, Reply, Script as Lua, ScriptForm, Spec, Strategy};

use crate::words::{KEY, Script, lease, one_attempt};

const TTL_MS: u64 = 9_000;
const BELIEF_MS: u64 = 8_908;
const UNASKED: Strategy = Strategy::Watchdog {
    renewals_per_ttl: 2,
    max_hold: Some(Millis(0)),
};

/// Held since 5 ms by a `SET` sent at 0. It is woken only at the end of its belief.
fn held() -> Script {
    let spec = Spec {
        lease: lease(TTL_MS),
        ..one_attempt()
    };
    crate::words::script(UNASKED, spec)
        .acquire()
        .expect_set("set")
        .at(5)
        .reply("set", Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .expect_wake_at(Nanos::from_millis(BELIEF_MS))
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

fn expect_renewal(script: Script, label: &'static str, form: ScriptForm) -> Script {
    let command = renewal(&script, form);
    script.expect_command(label, command)
}

fn extended(at_ms: u64) -> Script {
    expect_renewal(held().at(at_ms).extend(), "extend", ScriptForm::Sha)
}

#[test]
fn an_extension_counts_from_before_its_send() {
    extended(4_000)
        .at(4_010)
        .reply("extend", Reply::Int(1))
        .expect_renewed_until(4_000 + BELIEF_MS)
        .expect_wake_at(Nanos::from_millis(4_000 + BELIEF_MS));
}

#[test]
fn a_second_extension_needs_no_second_command_while_the_first_is_under_way() {
    extended(4_000).at(4_005).extend().expect_nothing();
}

#[test]
fn an_extension_of_a_lock_that_is_gone_lapses_it() {
    extended(4_000).at(4_010).reply("extend", Reply::Int(0)).expect_lapsed();
}

#[test]
fn an_extension_after_the_end_of_belief_revives_nothing() {
    held().at(BELIEF_MS).extend().expect_lapsed();
    let late = held().at(BELIEF_MS - 5).extend();
    let command = renewal(&late, ScriptForm::Sha);
    late.expect_unguarded("extend", command)
        .expect_wake_at(Nanos::from_millis(BELIEF_MS))
        .at(BELIEF_MS)
        .reply("extend", Reply::Int(1))
        .expect_lapsed()
        .extend()
        .expect_nothing();
}

#[test]
fn a_server_that_does_not_know_the_script_gets_it_as_source() {
    let resent = extended(4_000)
        .at(4_010)
        .reply("extend", Reply::Error(locks::ErrorKind::NoScript));
    expect_renewal(resent, "source", ScriptForm::Source)
        .at(4_020)
        .reply("source", Reply::Int(1))
        .expect_renewed_until(4_010 + BELIEF_MS)
        .expect_wake_at(Nanos::from_millis(4_010 + BELIEF_MS));
}

#[test]
fn a_lock_that_was_extended_is_released_as_any_other() {
    extended(4_000)
        .at(4_010)
        .reply("extend", Reply::Int(1))
        .expect_renewed_until(4_000 + BELIEF_MS)
        .expect_wake_at(Nanos::from_millis(4_000 + BELIEF_MS))
        .at(5_000)
        .release()
        .expect_release("free", "set", ScriptForm::Sha)
        .reply("free", Reply::Int(1))
        .expect(Outcome::Released);
}
