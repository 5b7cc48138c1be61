//! `notify`: acquire and release when things go well, late, wrong, or not at all.

use locks::{Command, ErrorKind, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Spec, Strategy};

use crate::waiting::{SHA, SOURCE};
use crate::words::{BELIEF_MS, KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

pub(crate) const SUBSCRIBE: Command = Command::Subscribe { key: KEY };

pub(crate) fn script(spec: Spec) -> Script {
    crate::words::script(Strategy::Notify { renews: false }, spec)
}

impl Script {
    /// A plain attempt with a fresh token: the first one, or one after a message.
    pub(crate) fn expect_try(self, label: &'static str) -> Self {
        self.expect_try_for(label, LEASE_MS)
    }

    fn expect_try_for(self, label: &'static str, lease_ms: u64) -> Self {
        let seen = self.tokens();
        let (script, command) = self.expect_send(label);
        let token = script.token(label);
        assert!(!seen.contains(&token), "a token used twice: {token:?}");
        let key = KEY;
        assert_eq!(command, Command::SetNxPx { key, token, lease_ms }, "{label}");
        script.expect_guard()
    }

    /// An attempt with a fresh token, by the script that returns the rest of the lease.
    pub(crate) fn expect_look(self, label: &'static str) -> Self {
        self.expect_run(label, Lua::NotifyAcquire, None, SHA, [LEASE_MS, 0])
    }

    fn expect_back(self, label: &'static str, of: &str, form: ScriptForm) -> Self {
        self.expect_run(label, Lua::NotifyRelease, Some(of), form, [0, 0])
    }

    fn expect_unawaited_word(self, label: &'static str, of: &str) -> Self {
        self.expect_unguarded_run(label, Lua::NotifyRelease, Some(of), SOURCE, [0, 0])
    }
}

fn asking() -> Script {
    script(every_10_ms()).at(0).acquire().expect_try("try")
}

/// Held since 5 ms by an attempt labelled `try`, sent at 0.
fn held() -> Script {
    asking().at(5).reply("try", Reply::Ok).expect_held_until(BELIEF_MS)
}

/// Refused, subscribed, and asking by a script labelled `look`.
fn looking() -> Script {
    asking()
        .reply("try", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_look("look")
}

#[test]
fn the_lease_counts_from_before_the_send_and_the_release_is_published() {
    held()
        .expect_attempts(1)
        .release()
        .expect_back("back", "try", SHA)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_release_after_expiry_reports_it() {
    held()
        .at(2 * LEASE_MS)
        .release()
        .expect_back("back", "try", SHA)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn without_retry_it_fails_fast_and_does_not_subscribe() {
    script(one_attempt())
        .acquire()
        .expect_try("try")
        .reply("try", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_again_as_source_and_counts_from_there() {
    looking()
        .at(3)
        .reply("look", Reply::Error(ErrorKind::NoScript))
        .expect_run("again", Lua::NotifyAcquire, Some("look"), SOURCE, [LEASE_MS, 0])
        .reply("look", Reply::Int(0))
        .expect_nothing()
        .at(4)
        .reply("again", Reply::Int(0))
        .expect_held_until(3 + BELIEF_MS)
        .expect_attempts(2)
        .release()
        .expect_back("back", "look", SHA)
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_back("back again", "look", SOURCE)
        .reply("back again", Reply::Int(1))
        .expect(Outcome::Released);
    looking()
        .reply("look", Reply::Error(ErrorKind::NoScript))
        .expect_run("again", Lua::NotifyAcquire, Some("look"), SOURCE, [LEASE_MS, 0])
        .reply("again", Reply::Error(ErrorKind::NoScript))
        .expect_unawaited_word("word", "look")
        .expect(Outcome::Failed(ErrorKind::NoScript));
}

#[test]
fn an_attempt_that_gets_no_reply_is_unknown_and_released() {
    asking()
        .sleep()
        .expect_unawaited_word("word", "try")
        .expect(Outcome::Unknown);
    asking()
        .lose("try")
        .expect_unawaited_word("word", "try")
        .expect(Outcome::Unknown);
    held()
        .release()
        .expect_back("back", "try", SHA)
        .sleep()
        .expect(Outcome::Unknown);
    held()
        .release()
        .expect_back("back", "try", SHA)
        .lose("back")
        .expect(Outcome::Unknown);
}

#[test]
fn a_late_reply_to_an_earlier_request_grants_nothing() {
    asking()
        .sleep()
        .expect_unawaited_word("word", "try")
        .expect(Outcome::Unknown)
        .acquire()
        .expect_try("second")
        .reply("try", Reply::Ok)
        .expect_nothing()
        .reply("second", Reply::Ok)
        .expect_held_until(REPLY_TIMEOUT_MS + BELIEF_MS)
        .lose("try")
        .expect_nothing();
}

#[test]
fn an_error_is_an_outcome() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, Unexpected, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth] {
        asking().reply("try", Reply::Error(kind)).expect(Outcome::Failed(kind));
        held()
            .release()
            .expect_back("back", "try", SHA)
            .reply("back", Reply::Error(kind))
            .expect(Outcome::Failed(kind));
    }
    let kind = |reply| {
        if reply == Reply::Error(Other) {
            Other
        } else {
            Unexpected
        }
    };
    for reply in [Reply::Error(Other), Reply::Int(0), Reply::Other] {
        asking()
            .reply("try", reply)
            .expect_unawaited_word("word", "try")
            .expect(Outcome::Failed(kind(reply)));
    }
    for reply in [Reply::Error(Other), Reply::Ok, Reply::Nil, Reply::Int(-2), Reply::Other] {
        looking()
            .reply("look", reply)
            .expect_unawaited_word("word", "look")
            .expect(Outcome::Failed(kind(reply)));
    }
    held()
        .release()
        .expect_back("back", "try", SHA)
        .reply("back", Reply::Int(2))
        .expect(Outcome::Failed(Unexpected));
}

#[test]
fn a_grant_that_came_too_late_is_released_and_tried_again_where_the_policy_allows_it() {
    let short = |spec| Spec {
        lease: lease(100),
        ..spec
    };
    let late = |spec: Spec| {
        script(short(spec))
            .acquire()
            .expect_try_for("try", 100)
            .at(97)
            .reply("try", Reply::Ok)
            .expect_back("back", "try", SHA)
    };
    late(one_attempt())
        .reply("back", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
    late(every_10_ms())
        .reply("back", Reply::Int(0))
        .expect_pause(0..=10)
        .sleep()
        .expect_try_for("second", 100)
        .expect_attempts(2)
        .cancel()
        .expect_back("second back", "second", SHA)
        .reply("second", Reply::Ok)
        .expect_nothing()
        .reply("second back", Reply::Int(1))
        .expect(Outcome::Released);
    late(every_10_ms())
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_undoes_what_there_is() {
    for granted in [0, 1] {
        asking()
            .cancel()
            .expect_back("back", "try", SHA)
            .cancel()
            .expect_nothing()
            .reply("try", Reply::Ok)
            .expect_nothing()
            .reply("back", Reply::Int(granted))
            .expect(Outcome::Released);
    }
    held()
        .cancel()
        .expect_back("back", "try", SHA)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
    asking()
        .reply("try", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .cancel()
        .expect(Outcome::Released);
}
