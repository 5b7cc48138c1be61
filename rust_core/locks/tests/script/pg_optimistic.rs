//! `pg-optimistic`: the version read, the version written, and the work done again.

use locks::{ErrorKind, Key, Outcome, Refusal, Reply, Retry, Spec, Statement, Strategy};

use crate::postgres::{OTHER_ERRORS, ROW, sql};
use crate::words::{KEY, Script, every_10_ms, one_attempt, script};

fn reading_with(spec: Spec) -> Script {
    script(Strategy::PgOptimistic, spec)
        .acquire()
        .expect_sql("read", Statement::VersionRead, [0, 0])
}

fn reading() -> Script {
    reading_with(every_10_ms())
}

fn writing_with(spec: Spec) -> Script {
    reading_with(spec)
        .at(2)
        .reply("read", Reply::Int(17))
        .expect_begun()
        .at(9)
        .release()
        .expect_sql("write", Statement::VersionWrite, [17, 0])
}

fn writing() -> Script {
    writing_with(every_10_ms())
}

#[test]
fn a_write_of_the_version_that_was_read_is_acknowledged_by_its_row() {
    for row in [Reply::Int(0), Reply::Int(7)] {
        writing()
            .reply("write", row)
            .expect(Outcome::Released)
            .expect_attempts(1)
            .expect_conflicts(0);
    }
}

#[test]
fn the_work_is_done_again_after_a_pause_as_the_next_attempt() {
    let in_the_way = [
        Reply::Nil,
        Reply::Error(ErrorKind::Serialization),
        Reply::Error(ErrorKind::Deadlock),
        Reply::Error(ErrorKind::LockNotAvailable),
        Reply::Error(ErrorKind::Canceled),
    ];
    for reply in in_the_way {
        writing()
            .reply("write", reply)
            .expect(Outcome::Conflict)
            .expect_conflicts(1)
            .retry()
            .expect_pause(0..=10)
            .sleep()
            .expect_sql("again", Statement::VersionRead, [0, 0])
            .expect_attempts(2)
            .reply("again", Reply::Int(18))
            .expect_begun()
            .release()
            .expect_sql("second write", Statement::VersionWrite, [18, 0])
            .reply("second write", Reply::Nil)
            .expect(Outcome::Conflict)
            .expect_conflicts(2)
            .expect_attempts(2);
    }
}

#[test]
fn an_acquire_after_a_conflict_is_another_work() {
    writing()
        .reply("write", Reply::Nil)
        .expect(Outcome::Conflict)
        .acquire()
        .expect_sql("fresh", Statement::VersionRead, [0, 0])
        .expect_attempts(1)
        .expect_conflicts(0);
    let other = Key(8);
    writing()
        .reply("write", Reply::Nil)
        .expect(Outcome::Conflict)
        .acquire_all(other.into())
        .expect_command("other", sql(Statement::VersionRead, other, [0, 0]))
        .expect_attempts(1)
        .expect_conflicts(0);
    // So is one after the work was given up.
    writing()
        .reply("write", Reply::Nil)
        .expect(Outcome::Conflict)
        .cancel()
        .expect(Outcome::Released)
        .acquire()
        .expect_sql("fresh", Statement::VersionRead, [0, 0])
        .expect_attempts(1);
}

#[test]
fn the_policy_ends_the_attempts_of_one_work() {
    let refused = |spec: Spec, at: u64| {
        writing_with(spec)
            .at(at)
            .reply("write", Reply::Nil)
            .expect(Outcome::Conflict)
            .retry()
    };
    refused(one_attempt(), 10)
        .expect(Outcome::Refused(Refusal::Busy))
        .acquire()
        .expect_sql("fresh", Statement::VersionRead, [0, 0])
        .expect_attempts(1);
    refused(every_10_ms(), 5_001).expect(Outcome::Refused(Refusal::TimedOut));
    let twice = Retry {
        max_attempts: Some(2),
        ..every_10_ms().retry
    };
    refused(
        Spec {
            retry: twice,
            ..every_10_ms()
        },
        10,
    )
    .expect_pause(0..=10)
    .sleep()
    .expect_sql("again", Statement::VersionRead, [0, 0])
    .error("again", ErrorKind::Serialization)
    .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_write_whose_reply_is_lost_is_perhaps_written() {
    writing().lose("write").expect(Outcome::Unknown);
    writing()
        .sleep()
        .expect(Outcome::Unknown)
        .acquire()
        .expect_sql("fresh", Statement::VersionRead, [0, 0])
        .reply("write", ROW)
        .expect_nothing()
        .expect_attempts(1);
}

#[test]
fn errors_are_outcomes() {
    for kind in OTHER_ERRORS.into_iter().chain([ErrorKind::SessionEnded]) {
        reading().error("read", kind).expect(Outcome::Failed(kind));
        writing().error("write", kind).expect(Outcome::Failed(kind));
    }
    // A missing row, and values that this lock never writes.
    for odd in [Reply::Nil, Reply::Int(-1), Reply::Ok, Reply::Other] {
        reading()
            .reply("read", odd)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
    writing()
        .reply("write", Reply::Ok)
        .expect(Outcome::Failed(ErrorKind::Unexpected));
}

#[test]
fn a_read_that_meets_others_is_tried_again() {
    reading()
        .error("read", ErrorKind::Serialization)
        .expect_pause(0..=10)
        .expect_conflicts(1)
        .sleep()
        .expect_sql("again", Statement::VersionRead, [0, 0])
        .reply("read", Reply::Int(3))
        .expect_nothing()
        .cancel()
        .expect(Outcome::Released);
    reading().lose("read").expect(Outcome::Unknown);
    reading().sleep().expect(Outcome::Unknown);
}

#[test]
fn a_cancel_before_the_work_leaves_nothing_and_one_during_it_writes() {
    reading()
        .cancel()
        .expect(Outcome::Released)
        .reply("read", Reply::Int(1))
        .expect_nothing();
    reading()
        .error("read", ErrorKind::Deadlock)
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released);
    reading()
        .reply("read", Reply::Int(1))
        .expect_begun()
        .disconnect()
        .expect_nothing()
        .cancel()
        .expect_sql("write", Statement::VersionWrite, [1, 0])
        .cancel()
        .expect_nothing()
        .reply("write", ROW)
        .expect(Outcome::Released);
}

#[test]
fn the_key_is_the_one_that_was_asked_for() {
    script(Strategy::PgOptimistic, every_10_ms())
        .acquire_all(Key(3).into())
        .expect_command("read", sql(Statement::VersionRead, Key(3), [0, 0]));
    assert_ne!(KEY, Key(3));
}
