//! `replicated`: when a grant counts. `mutex` tests what both share.

use locks::{
    Command, ConnectionKind, ErrorKind, Nanos, Outcome, Refusal, Reply, ScriptForm, ServerId, Spec, SpecError, Strategy,
};

use crate::words::{BELIEF_MS, KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

const STRATEGY: Strategy = Strategy::Replicated {
    replicas: 2,
    timeout_ms: 100,
};

impl Script {
    fn expect_own_set(self, label: &'static str) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(0), ConnectionKind::Own);
        let Command::SetNxPx {
            key: KEY,
            lease_ms: LEASE_MS,
            ..
        } = command
        else {
            panic!("not a SET of the key: {command:?}")
        };
        script.expect_guard()
    }

    fn expect_own_release(self, label: &'static str, form: ScriptForm) -> Self {
        let token = self.token("set");
        self.expect_own(label, Command::CompareAndDelete { key: KEY, token, form })
    }
}

fn asking(spec: Spec) -> Script {
    crate::words::script(STRATEGY, spec).acquire().expect_own_set("set")
}

/// `SET` sent at 0, `WAIT` at 10 ms.
fn waiting() -> Script {
    let wait = Command::Wait {
        replicas: 2,
        timeout_ms: 100,
    };
    asking(every_10_ms())
        .at(10)
        .reply("set", Reply::Ok)
        .expect_own("wait", wait)
        .expect_wake_at(Nanos::from_millis(2 * REPLY_TIMEOUT_MS))
}

#[test]
fn it_is_held_once_enough_replicas_have_it_and_the_lease_counts_from_the_set() {
    for replicas in [2, 3] {
        waiting()
            .at(60)
            .reply("wait", Reply::Int(replicas))
            .expect_held_until(BELIEF_MS)
            .release()
            .expect_own_release("back", ScriptForm::Sha)
            .expect_guard()
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released);
    }
}

#[test]
fn with_too_few_replicas_it_is_released_and_tried_again() {
    for replicas in [0, 1] {
        waiting()
            .at(110)
            .reply("wait", Reply::Int(replicas))
            .expect_own_release("back", ScriptForm::Sha)
            .expect_guard()
            .reply("back", Reply::Int(1))
            .expect_pause(0..=10)
            .sleep()
            .expect_own_set("again")
            .expect_attempts(2);
    }
}

#[test]
fn with_too_few_replicas_and_no_retry_it_is_refused() {
    asking(one_attempt())
        .reply("set", Reply::Ok)
        .expect_own(
            "wait",
            Command::Wait {
                replicas: 2,
                timeout_ms: 100,
            },
        )
        .expect_wake_at(Nanos::from_millis(2 * REPLY_TIMEOUT_MS))
        .reply("wait", Reply::Int(1))
        .expect_own_release("back", ScriptForm::Sha)
        .expect_guard()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
}

#[test]
fn a_lock_that_is_taken_is_not_waited_for() {
    asking(one_attempt())
        .reply("set", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_confirmation_that_never_comes_is_unknown_and_released() {
    waiting()
        .at(REPLY_TIMEOUT_MS)
        .wake()
        .expect_wake_at(Nanos::from_millis(2 * REPLY_TIMEOUT_MS))
        .sleep()
        .expect_own_release("back", ScriptForm::Source)
        .expect(Outcome::Unknown);
    waiting()
        .lose("wait")
        .expect_own_release("back", ScriptForm::Source)
        .expect(Outcome::Unknown)
        .disconnect()
        .expect_nothing();
}

#[test]
fn an_error_in_the_confirmation_releases_the_lock() {
    for kind in [ErrorKind::Loading, ErrorKind::NoScript, ErrorKind::Other] {
        waiting()
            .reply("wait", Reply::Error(kind))
            .expect_own_release("back", ScriptForm::Source)
            .expect(Outcome::Failed(kind));
    }
    for reply in [Reply::Ok, Reply::Nil, Reply::Int(-1), Reply::Other] {
        waiting()
            .reply("wait", reply)
            .expect_own_release("back", ScriptForm::Source)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_cancel_while_it_is_confirmed_releases_it_behind_the_reply() {
    for answer in [Reply::Int(2), Reply::Int(0), Reply::Error(ErrorKind::Loading)] {
        waiting()
            .cancel()
            .expect_nothing()
            .reply("wait", answer)
            .expect_own_release("back", ScriptForm::Sha)
            .expect_guard()
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released);
    }
    waiting()
        .cancel()
        .expect_nothing()
        .sleep()
        .expect_own_release("back", ScriptForm::Source)
        .expect(Outcome::Unknown);
}

#[test]
fn a_confirmation_that_came_after_the_lease_is_too_late() {
    let short = Spec {
        lease: lease(LEASE_MS),
        reply_timeout: Nanos::from_millis(REPLY_TIMEOUT_MS),
        ..one_attempt()
    };
    asking(short)
        .at(10)
        .reply("set", Reply::Ok)
        .expect_own(
            "wait",
            Command::Wait {
                replicas: 2,
                timeout_ms: 100,
            },
        )
        .expect_wake_at(Nanos::from_millis(2 * REPLY_TIMEOUT_MS))
        .at(BELIEF_MS)
        .reply("wait", Reply::Int(2))
        .expect_own_release("back", ScriptForm::Sha)
        .expect_guard()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
}

#[test]
fn a_wait_that_outlasts_reply_timeout_or_lease_is_refused_beforehand() {
    let check = |timeout_ms, lease_ms| {
        Strategy::Replicated {
            replicas: 1,
            timeout_ms,
        }
        .check(&Spec {
            lease: lease(lease_ms),
            ..one_attempt()
        })
    };
    assert_eq!(check(999, 10_000), Ok(()));
    for refused in [check(1_000, 10_000), check(500, 500)] {
        let Err(SpecError::BadArgument {
            argument: "timeout_ms", ..
        }) = refused
        else {
            panic!("{refused:?}")
        };
    }
}
