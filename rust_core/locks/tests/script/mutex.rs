//! `mutex`: what it does at each point when things go well, late, wrong, or not at all.

use locks::{ErrorKind, Outcome, Refusal, Reply, ScriptForm, Spec, Strategy};

use crate::words::{BELIEF_MS, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

pub(crate) fn script(spec: Spec) -> Script {
    crate::words::script(Strategy::Mutex, spec)
}

/// Held since 5 ms by a `SET` labelled `set`, sent at 0.
pub(crate) fn held() -> Script {
    script(one_attempt())
        .at(0)
        .acquire()
        .expect_set("set")
        .at(5)
        .reply("set", Reply::Ok)
        .expect_held_until(BELIEF_MS)
}

#[test]
fn the_lease_counts_from_before_the_send_less_the_clock_skew_margin() {
    script(one_attempt())
        .at(100)
        .acquire()
        .expect_set("set")
        .at(900)
        .reply("set", Reply::Ok)
        .expect_held_until(100 + BELIEF_MS)
        .expect_attempts(1);
}

#[test]
fn a_release_deletes_only_what_holds_the_token() {
    held()
        .at(50)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_release_after_expiry_reports_it() {
    held()
        .at(2 * LEASE_MS)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_busy_lock_is_refused_at_once_without_retry() {
    script(one_attempt())
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn each_attempt_brings_a_token_and_a_call_of_its_own() {
    script(every_10_ms())
        .acquire()
        .expect_set("first")
        .reply("first", Reply::Nil)
        .expect_pause(0..=10)
        .sleep()
        .expect_set("second")
        .reply("second", Reply::Nil)
        .expect_pause(10..=10)
        .sleep()
        .expect_set("third")
        .expect_attempts(3)
        .reply("third", Reply::Nil)
        .expect_pause(10..=10);
}

#[test]
fn no_attempt_begins_after_the_longest_wait() {
    script(every_10_ms())
        .at(100)
        .acquire()
        .expect_set("first")
        .reply("first", Reply::Nil)
        .expect_pause(0..=10)
        .sleep()
        .expect_set("second")
        .at(900)
        .reply("second", Reply::Nil)
        .expect_pause(10..=10)
        .at(5_095)
        .wake()
        .expect_set("third")
        .reply("third", Reply::Nil)
        .expect(Outcome::Refused(Refusal::TimedOut));
}

#[test]
fn attempts_used_up_are_a_refusal() {
    let mut spec = every_10_ms();
    spec.retry.max_attempts = Some(2);
    script(spec)
        .acquire()
        .expect_set("first")
        .reply("first", Reply::Nil)
        .expect_pause(0..=10)
        .sleep()
        .expect_set("second")
        .reply("second", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy))
        .expect_attempts(2);
}

#[test]
fn a_late_reply_to_an_earlier_request_does_not_grant_the_present_one() {
    script(one_attempt())
        .acquire()
        .expect_set("first")
        .sleep()
        .expect_unawaited_release("back", "first")
        .expect(Outcome::Unknown)
        .at(1_500)
        .acquire()
        .expect_set("second")
        .at(1_600)
        .reply("first", Reply::Ok)
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect_nothing()
        .at(1_700)
        .reply("second", Reply::Ok)
        .expect_held_until(1_500 + BELIEF_MS)
        .reply("first", Reply::Nil)
        .lose("first")
        .expect_nothing();
}

#[test]
fn a_reply_repeated_during_the_pause_changes_nothing() {
    script(every_10_ms())
        .acquire()
        .expect_set("first")
        .reply("first", Reply::Nil)
        .expect_pause(0..=10)
        .reply("first", Reply::Ok)
        .expect_nothing()
        .lose("first")
        .expect_nothing();
}

#[test]
fn a_reply_that_never_comes_is_unknown_after_the_reply_timeout_and_released() {
    script(one_attempt())
        .at(10)
        .acquire()
        .expect_set("set")
        .sleep()
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown)
        .at(10 + 2 * REPLY_TIMEOUT_MS)
        .wake()
        .expect_nothing();
}

#[test]
fn a_connection_that_closes_while_asking_is_unknown_at_once_and_released() {
    script(every_10_ms())
        .acquire()
        .expect_set("set")
        .at(3)
        .lose("set")
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown)
        .lose("back")
        .expect_nothing();
}

#[test]
fn a_release_without_reply_is_unknown() {
    held()
        .at(20)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .sleep()
        .expect(Outcome::Unknown);
    held()
        .at(20)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .lose("back")
        .expect(Outcome::Unknown);
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_again_as_source() {
    held()
        .at(20)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .at(21)
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_release("again", "set", ScriptForm::Source)
        .reply("back", Reply::Int(1))
        .expect_nothing()
        .reply("again", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_server_that_does_not_know_the_source_either_is_not_asked_for_ever() {
    held()
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_release("again", "set", ScriptForm::Source)
        .reply("again", Reply::Error(ErrorKind::NoScript))
        .expect(Outcome::Failed(ErrorKind::NoScript));
}

#[test]
fn an_error_that_shows_that_nothing_was_taken_leaves_nothing_to_clean_up() {
    use ErrorKind::{Loading, Moved, NoAuth, OutOfMemory, ReadOnly, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth] {
        script(every_10_ms())
            .acquire()
            .expect_set("set")
            .reply("set", Reply::Error(kind))
            .expect(Outcome::Failed(kind));
    }
}

#[test]
fn after_a_reply_that_makes_no_sense_the_lock_is_released() {
    let odd = [
        (Reply::Error(ErrorKind::Other), ErrorKind::Other),
        (Reply::Error(ErrorKind::NoScript), ErrorKind::NoScript),
        (Reply::Error(ErrorKind::Unexpected), ErrorKind::Unexpected),
        (Reply::Int(1), ErrorKind::Unexpected),
        (Reply::Other, ErrorKind::Unexpected),
    ];
    for (reply, kind) in odd {
        script(every_10_ms())
            .acquire()
            .expect_set("set")
            .reply("set", reply)
            .expect_unawaited_release("back", "set")
            .expect(Outcome::Failed(kind));
    }
}

#[test]
fn an_error_in_the_release_is_an_outcome() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, Unexpected, WrongType};
    let releasing = || held().release().expect_release("back", "set", ScriptForm::Sha);
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
        releasing()
            .reply("back", Reply::Error(kind))
            .expect(Outcome::Failed(kind));
    }
    for reply in [Reply::Ok, Reply::Nil, Reply::Int(2), Reply::Int(-1), Reply::Other] {
        releasing()
            .reply("back", reply)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_grant_at_the_very_end_of_its_lease_is_released() {
    let short = Spec {
        lease: lease(100),
        ..one_attempt()
    };
    // 100 ms less 1 % and 2 ms: believed until 97 ms.
    let asking = || script(short).at(0).acquire().expect_set("set");
    asking().at(96).reply("set", Reply::Ok).expect_held_until(97);
    asking()
        .at(97)
        .reply("set", Reply::Ok)
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
}

#[test]
fn a_grant_that_came_too_late_is_tried_again_where_the_policy_allows_it() {
    let late = || {
        script(Spec {
            lease: lease(100),
            ..every_10_ms()
        })
        .acquire()
        .expect_set("first")
        .at(500)
        .reply("first", Reply::Ok)
        .expect_release("back", "first", ScriptForm::Sha)
    };
    late()
        .reply("back", Reply::Int(0))
        .expect_pause(0..=10)
        .at(600)
        .wake()
        .expect_set("second")
        .reply("second", Reply::Ok)
        .expect_held_until(697)
        .expect_attempts(2);
    late()
        .at(6_000)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::TooLate));
    late()
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_release("again", "first", ScriptForm::Source)
        .reply("again", Reply::Int(1))
        .expect_pause(0..=10);
    late().sleep().expect(Outcome::Unknown);
    late().lose("back").expect(Outcome::Unknown);
    late()
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    late()
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(0))
        .expect(Outcome::Released);
}

#[test]
fn a_long_lease_is_honoured_and_does_not_wrap() {
    let until = |ms, end| {
        script(Spec {
            lease: lease(ms),
            ..one_attempt()
        })
        .at(1_000)
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Ok)
        .expect_held_until(end)
    };
    // A little over 2^31 ms, in whole percents.
    until(2_147_483_700, 1_000 + 2_147_483_700 - 21_474_837 - 2);
    // Beyond the end of the driver's clock.
    until(1 << 53, u64::MAX);
}
