//! `layered`: the mutex outside, the fence inside, and the write that decides.

use locks::{ErrorKind, Fence, Outcome, Refusal, Reply, ScriptForm, Spec, Statement, Strategy};

use crate::postgres::{OTHER_ERRORS, ROW};
use crate::words::{BELIEF_MS, Script, every_10_ms, lease, one_attempt, script};

fn entering_with(spec: Spec) -> Script {
    script(Strategy::Layered, Spec { servers: 2, ..spec })
        .acquire()
        .expect_set("set")
        .at(3)
        .reply("set", Reply::Ok)
        .expect_enter("fence", "value")
}

fn entering() -> Script {
    entering_with(every_10_ms())
}

fn held() -> Script {
    entering()
        .reply("fence", Reply::Int(12))
        .expect_nothing()
        .at(5)
        .reply("value", Reply::Int(30))
        .expect_fenced_until(BELIEF_MS, fence(12))
}

fn writing() -> Script {
    held()
        .at(50)
        .release()
        .expect_database("write", Statement::FencedWrite, [12, 30])
        .expect_guard()
}

fn fence(number: u64) -> Fence {
    Fence(number.try_into().expect("fences begin with 1"))
}

impl Script {
    /// Fence and value in one write, guarded by the reply timeout.
    fn expect_enter(self, fence: &'static str, value: &'static str) -> Self {
        self.expect_database(fence, Statement::FenceTake, [0, 0])
            .expect_database(value, Statement::ValueRead, [0, 0])
            .expect_guard()
    }

    fn expect_mutex_back(self) -> Self {
        self.expect_release("back", "set", ScriptForm::Sha)
    }
}

#[test]
fn a_write_with_the_newest_fence_is_acknowledged_and_then_the_mutex_released() {
    for row in [Reply::Int(0), Reply::Int(7)] {
        writing()
            .reply("write", row)
            .expect_mutex_back()
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released)
            .expect_attempts(1);
    }
}

#[test]
fn the_write_alone_decides_how_a_release_settles() {
    let written = || writing().reply("write", ROW).expect_mutex_back();
    // The mutex had expired, or its reply is lost, or never comes, or is an error: the write stands.
    written().reply("back", Reply::Int(0)).expect(Outcome::Released);
    written().lose("back").expect(Outcome::Released);
    written().sleep().expect(Outcome::Released);
    written().error("back", ErrorKind::Loading).expect(Outcome::Released);
    written()
        .error("back", ErrorKind::NoScript)
        .expect_release("source", "set", ScriptForm::Source)
        .reply("source", Reply::Int(1))
        .expect(Outcome::Released);
    let refused = || writing().reply("write", Reply::Nil).expect_mutex_back();
    refused().reply("back", Reply::Int(1)).expect(Outcome::Expired);
    refused().lose("back").expect(Outcome::Expired);
}

#[test]
fn fence_and_value_may_come_in_any_order_and_once() {
    entering()
        .reply("value", Reply::Int(0))
        .expect_nothing()
        .reply("value", Reply::Int(9))
        .expect_nothing()
        .reply("fence", Reply::Int(1))
        .expect_fenced_until(BELIEF_MS, fence(1))
        .release()
        .expect_database("write", Statement::FencedWrite, [1, 0])
        .expect_guard();
}

#[test]
fn the_mutex_is_released_where_the_database_fails() {
    for kind in OTHER_ERRORS.into_iter().chain([ErrorKind::Canceled]) {
        for label in ["fence", "value"] {
            entering()
                .error(label, kind)
                .expect_unawaited_release("back", "set")
                .expect(Outcome::Failed(kind));
        }
    }
    // A missing row, and values that this lock never writes.
    for (label, odd) in [
        ("fence", Reply::Nil),
        ("fence", Reply::Int(0)),
        ("fence", Reply::Int(-1)),
        ("value", Reply::Nil),
        ("value", Reply::Int(-1)),
        ("value", Reply::Other),
    ] {
        entering()
            .reply(label, odd)
            .expect_unawaited_release("back", "set")
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
    for label in ["fence", "value"] {
        entering()
            .lose(label)
            .expect_unawaited_release("back", "set")
            .expect(Outcome::Unknown);
    }
    entering()
        .sleep()
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown)
        .reply("fence", Reply::Int(3))
        .expect_nothing();
}

#[test]
fn a_write_that_gets_no_reply_is_perhaps_written() {
    writing()
        .lose("write")
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown);
    writing()
        .sleep()
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown)
        .acquire()
        .expect_set("second")
        .reply("write", ROW)
        .expect_nothing();
    for kind in OTHER_ERRORS.into_iter().chain([ErrorKind::Canceled]) {
        writing()
            .error("write", kind)
            .expect_mutex_back()
            .reply("back", Reply::Int(1))
            .expect(Outcome::Failed(kind));
    }
}

#[test]
fn a_database_that_replies_when_the_lease_is_over_makes_the_grant_too_late() {
    let short = |spec: Spec| {
        entering_with(Spec {
            lease: lease(100),
            ..spec
        })
        .reply("fence", Reply::Int(2))
        .expect_nothing()
    };
    short(every_10_ms())
        .at(96)
        .reply("value", Reply::Int(0))
        .expect_fenced_until(97, fence(2));
    let late = |spec| short(spec).at(97).reply("value", Reply::Int(0)).expect_mutex_back();
    late(one_attempt())
        .reply("back", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
    late(every_10_ms())
        .reply("back", Reply::Int(0))
        .expect_pause(0..=10)
        .sleep()
        .expect_set("second")
        .expect_attempts(2)
        // A reply of the first attempt.
        .reply("fence", Reply::Int(3))
        .expect_nothing()
        .reply("second", Reply::Ok)
        .expect_enter("second fence", "second value")
        .reply("value", Reply::Int(8))
        .expect_nothing();
    late(every_10_ms())
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_busy_mutex_spares_the_database() {
    script(
        Strategy::Layered,
        Spec {
            servers: 2,
            ..every_10_ms()
        },
    )
    .acquire()
    .expect_set("set")
    .reply("set", Reply::Nil)
    .expect_pause(0..=10)
    .sleep()
    .expect_set("second")
    .lose("second")
    .expect_unawaited_release("back", "second")
    .expect(Outcome::Unknown);
}

#[test]
fn a_cancel_releases_the_mutex_and_while_held_it_writes() {
    let asking = || {
        script(
            Strategy::Layered,
            Spec {
                servers: 2,
                ..every_10_ms()
            },
        )
        .acquire()
        .expect_set("set")
    };
    asking()
        .cancel()
        .expect_nothing()
        .reply("set", Reply::Ok)
        .expect_mutex_back()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    entering()
        .cancel()
        .expect_mutex_back()
        .reply("fence", Reply::Int(2))
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    held()
        .cancel()
        .expect_database("write", Statement::FencedWrite, [12, 30])
        .expect_guard()
        .cancel()
        .expect_nothing()
        .reply("write", ROW)
        .expect_mutex_back()
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_closed_connection_ends_no_lease() {
    held().disconnect().expect_nothing().wake().expect_nothing();
}
