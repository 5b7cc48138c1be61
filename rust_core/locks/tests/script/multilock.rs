//! `multilock`: all keys or none on each server, and a quorum of servers.

use locks::{Command, ConnectionKind, ErrorKind, Key, KeyList, Outcome, Refusal, Reply, ScriptForm, ServerId};

use crate::servers::{NODE_TIMEOUT_MS, on};
use crate::words::{BELIEF_MS, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, one_attempt};

use ScriptForm::{Sha, Source};
use locks::Script as Lua;

const NOSCRIPT: Reply = Reply::Error(ErrorKind::NoScript);

fn keys(keys: &[u32]) -> KeyList {
    let keys: Vec<Key> = keys.iter().map(|&key| Key(key)).collect();
    KeyList::new(&keys).expect("few keys")
}

impl Script {
    /// To each server in order a command for all of these keys, with one token.
    fn expect_takes(mut self, sorted: KeyList, labels: &[&'static str]) -> Self {
        for (server, label) in labels.iter().enumerate() {
            let (script, command) =
                self.expect_send_to(label, ServerId(server as u16), ConnectionKind::SharedByClients);
            let token = script.token(labels[0]);
            let expected = Command::RunAll {
                script: Lua::TakeAll,
                form: Sha,
                keys: sorted,
                token,
                lease_ms: LEASE_MS,
            };
            assert_eq!(command, expected);
            self = script;
        }
        self.expect_wake_after(NODE_TIMEOUT_MS)
    }

    fn expect_gives(mut self, sorted: KeyList, of: &str, sent: &[(&'static str, ScriptForm)]) -> Self {
        for (server, &(label, form)) in sent.iter().enumerate() {
            let expected = Command::RunAll {
                script: Lua::ReleaseAll,
                form,
                keys: sorted,
                token: self.token(of),
                lease_ms: 0,
            };
            self = self.expect_on(label, server as u16, expected);
        }
        self
    }
}

#[test]
fn the_keys_are_sorted_and_each_is_taken_once() {
    on(3, "multilock", one_attempt())
        .acquire_all(keys(&[9, 2, 9, 4]))
        .expect_takes(keys(&[2, 4, 9]), &["a0", "a1", "a2"])
        .at(3)
        .replies(&["a1", "a2"], Reply::Int(1))
        .expect_held_until(BELIEF_MS)
        .at(30)
        .release()
        .expect_gives(keys(&[2, 4, 9]), "a0", &[("b0", Source), ("b1", Sha), ("b2", Sha)])
        .expect_wake_after(REPLY_TIMEOUT_MS)
        .replies(&["b1", "b2"], Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn one_server_is_a_plain_lock_over_all_or_nothing() {
    let asked = |spec| {
        on(1, "multilock", spec)
            .acquire_all(keys(&[2, 1]))
            .expect_takes(keys(&[1, 2]), &["a0"])
    };
    asked(one_attempt())
        .reply("a0", Reply::Int(1))
        .expect_held_until(BELIEF_MS)
        .release()
        .expect_gives(keys(&[1, 2]), "a0", &[("b0", Sha)])
        .expect_wake_after(REPLY_TIMEOUT_MS)
        .reply("b0", Reply::Int(0))
        .expect(Outcome::Expired);
    asked(one_attempt())
        .reply("a0", Reply::Int(0))
        .expect_gives(keys(&[1, 2]), "a0", &[("b0", Sha)])
        .expect(Outcome::Refused(Refusal::Busy));
    asked(every_10_ms())
        .reply("a0", Reply::Int(0))
        .expect_gives(keys(&[1, 2]), "a0", &[("b0", Sha)])
        .expect_pause(0..=10)
        .sleep()
        .expect_takes(keys(&[1, 2]), &["c0"])
        .expect_attempts(2);
}

#[test]
fn a_server_that_does_not_know_the_script_is_sent_its_source_within_the_attempt() {
    let asked = || {
        on(3, "multilock", one_attempt())
            .acquire_all(keys(&[1]))
            .expect_takes(keys(&[1]), &["a0", "a1", "a2"])
            .at(4)
            .reply("a0", NOSCRIPT)
    };
    let again = |script: Script| {
        let take = Command::RunAll {
            script: Lua::TakeAll,
            form: Source,
            keys: keys(&[1]),
            token: script.token("a0"),
            lease_ms: LEASE_MS,
        };
        script.expect_on("c0", 0, take)
    };
    again(asked())
        .reply("a1", Reply::Int(0))
        .expect_nothing()
        .replies(&["c0", "a2"], Reply::Int(1))
        .expect_held_until(BELIEF_MS);
    // The wait is bounded: then the effect is unknown.
    again(asked())
        .reply("c0", NOSCRIPT)
        .expect_nothing()
        .reply("a1", Reply::Error(ErrorKind::OutOfMemory))
        .expect_gives(keys(&[1]), "a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect(Outcome::Failed(ErrorKind::NoScript));
}

#[test]
fn a_script_unknown_once_the_attempt_is_over_has_taken_nothing() {
    on(3, "multilock", one_attempt())
        .acquire_all(keys(&[1]))
        .expect_takes(keys(&[1]), &["a0", "a1", "a2"])
        .replies(&["a0", "a1"], Reply::Int(1))
        .expect_held_until(BELIEF_MS)
        .reply("a2", NOSCRIPT)
        .expect_nothing()
        .release()
        .expect_gives(keys(&[1]), "a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha)])
        .expect_wake_after(REPLY_TIMEOUT_MS)
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_refusal_releases_all_keys_on_all_servers_and_counts_an_attempt_without_quorum() {
    on(3, "multilock", every_10_ms())
        .acquire_all(keys(&[1, 5]))
        .expect_takes(keys(&[1, 5]), &["a0", "a1", "a2"])
        .reply("a2", Reply::Int(1))
        .expect_nothing()
        .replies(&["a0", "a1"], Reply::Int(0))
        .expect_gives(keys(&[1, 5]), "a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha)])
        .expect_wake_after(NODE_TIMEOUT_MS)
        .replies(&["b0", "b1", "b2"], Reply::Int(1))
        .expect_pause(0..=10)
        .expect_no_quorum_attempts(1);
}

#[test]
fn a_reply_that_no_script_gives_is_an_error() {
    for odd in [Reply::Ok, Reply::Nil, Reply::Int(2), Reply::Items, Reply::Other] {
        on(1, "multilock", every_10_ms())
            .acquire_all(keys(&[1]))
            .expect_takes(keys(&[1]), &["a0"])
            .reply("a0", odd)
            .expect_gives(keys(&[1]), "a0", &[("b0", Sha)])
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}
