//! `pg-advisory`: in a session and in a transaction, waiting and trying.

use locks::{ErrorKind, Mode, Outcome, Refusal, Reply, Scope, SessionOwner, Spec, Statement, Strategy, Wait};

use crate::postgres::{OTHER_ERRORS, WAITED_OUT, sql};
use crate::words::{KEY, REPLY_TIMEOUT_MS, Script, every_10_ms, one_attempt};

pub(crate) fn script(scope: Scope, wait: Wait, spec: Spec) -> Script {
    let session = SessionOwner::ThisClient;
    crate::words::script(Strategy::PgAdvisory { scope, wait, session }, spec)
}

/// Asked for at 0, and waited for up to 5 s in the queue.
pub(crate) fn waiting() -> Script {
    script(Scope::Session, Wait::Block, every_10_ms())
        .acquire()
        .expect_own("lock", sql(Statement::AdvisoryLock, KEY, [0, 0]))
        .expect_wake_at_ms(5_000 + REPLY_TIMEOUT_MS)
}

pub(crate) fn trying() -> Script {
    script(Scope::Session, Wait::Try, every_10_ms())
        .acquire()
        .expect_own_sql("try", Statement::AdvisoryTry, [0, 0])
}

pub(crate) fn trying_in_transaction() -> Script {
    script(Scope::Transaction, Wait::Try, every_10_ms())
        .acquire()
        .expect_own_sql("try", Statement::TransactionTry, [0, 0])
}

pub(crate) fn held() -> Script {
    waiting().at(40).reply("lock", Reply::Ok).expect_held_by_session()
}

pub(crate) fn held_in_transaction() -> Script {
    trying_in_transaction()
        .reply("try", Reply::Int(1))
        .expect_held_by_session()
}

fn releasing() -> Script {
    held()
        .at(50)
        .release()
        .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
}

fn committing() -> Script {
    held_in_transaction()
        .at(50)
        .release()
        .expect_own_sql("commit", Statement::Commit, [0, 0])
}

#[test]
fn a_session_lock_is_waited_for_and_unlocked() {
    releasing()
        .reply("unlock", Reply::Int(1))
        .expect(Outcome::Released)
        .expect_attempts(1);
}

#[test]
fn an_unlock_that_finds_nothing_shows_that_it_was_not_held() {
    releasing().reply("unlock", Reply::Int(0)).expect(Outcome::Expired);
}

#[test]
fn a_transaction_lock_lasts_until_the_commit() {
    committing().reply("commit", Reply::Ok).expect(Outcome::Released);
    script(Scope::Transaction, Wait::Block, one_attempt())
        .acquire()
        .expect_send_over("lock", true)
        .expect_wake_at(locks::Nanos::NEVER)
        .reply("lock", Reply::Ok)
        .expect_held_by_session();
}

#[test]
fn a_commit_of_a_transaction_that_had_failed_finds_the_lock_gone() {
    committing()
        .error("commit", ErrorKind::InFailedTransaction)
        .expect(Outcome::Expired);
}

#[test]
fn readers_share() {
    for (scope, wait, take, back) in [
        (
            Scope::Session,
            Wait::Try,
            Statement::AdvisoryTryShared,
            Statement::AdvisoryUnlockShared,
        ),
        (
            Scope::Transaction,
            Wait::Try,
            Statement::TransactionTryShared,
            Statement::Commit,
        ),
    ] {
        script(scope, wait, one_attempt())
            .acquire_as(Mode::Shared)
            .expect_own_sql("take", take, [0, 0])
            .reply("take", Reply::Int(1))
            .expect_held_by_session()
            .release()
            .expect_own_sql("back", back, [0, 0]);
    }
    for (scope, lock) in [
        (Scope::Session, Statement::AdvisoryLockShared),
        (Scope::Transaction, Statement::TransactionLockShared),
    ] {
        script(scope, Wait::Block, every_10_ms())
            .acquire_as(Mode::Shared)
            .expect_own("lock", sql(lock, KEY, [0, 0]))
            .expect_wake_at_ms(5_000 + REPLY_TIMEOUT_MS)
            .reply("lock", Reply::Ok)
            .expect_held_by_session();
    }
}

#[test]
fn a_try_that_was_refused_is_tried_again_and_given_up_by_the_policy() {
    trying()
        .reply("try", Reply::Int(0))
        .expect_pause(0..=10)
        .sleep()
        .expect_own_sql("second", Statement::AdvisoryTry, [0, 0])
        .expect_attempts(2)
        .at(6_000)
        .reply("second", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::TimedOut));
    script(Scope::Session, Wait::Try, one_attempt())
        .acquire()
        .expect_own_sql("try", Statement::AdvisoryTry, [0, 0])
        .reply("try", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_refused_transaction_is_ended_before_the_pause() {
    let refused = || {
        trying_in_transaction()
            .reply("try", Reply::Int(0))
            .expect_own_sql("rollback", Statement::Rollback, [0, 0])
    };
    refused()
        .at(3)
        .reply("rollback", Reply::Ok)
        .expect_pause(0..=10)
        .sleep()
        .expect_own_sql("second", Statement::TransactionTry, [0, 0])
        .reply("second", Reply::Int(1))
        .expect_held_by_session()
        .expect_attempts(2);
    refused().lose("rollback").expect(Outcome::Unknown);
    refused().sleep().expect_hang_up().expect(Outcome::Unknown);
    refused()
        .error("rollback", ErrorKind::Other)
        .expect_hang_up()
        .expect(Outcome::Failed(ErrorKind::Other));
    refused()
        .reply("rollback", Reply::Int(1))
        .expect_hang_up()
        .expect(Outcome::Failed(ErrorKind::Unexpected));
}

#[test]
fn a_wait_that_the_server_ended_unlocks_what_may_have_come_with_the_error() {
    for kind in WAITED_OUT {
        let ended = || {
            waiting()
                .at(5_000)
                .error("lock", kind)
                .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
        };
        // The lock was not granted; and it was.
        for answer in [Reply::Int(0), Reply::Int(1)] {
            ended()
                .reply("unlock", answer)
                .expect(Outcome::Refused(Refusal::TimedOut));
        }
        ended().lose("unlock").expect(Outcome::Unknown);
        ended().sleep().expect_hang_up().expect(Outcome::Unknown);
        ended()
            .error("unlock", ErrorKind::Other)
            .expect_hang_up()
            .expect(Outcome::Failed(ErrorKind::Other));
    }
}

#[test]
fn a_transaction_whose_wait_the_server_ended_is_rolled_back() {
    for kind in WAITED_OUT {
        script(Scope::Transaction, Wait::Block, every_10_ms())
            .acquire()
            .expect_send_over("lock", true)
            .expect_wake_at_ms(5_000 + REPLY_TIMEOUT_MS)
            .at(5_000)
            .error("lock", kind)
            .expect_own_sql("rollback", Statement::Rollback, [0, 0])
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Refused(Refusal::TimedOut));
    }
}

#[test]
fn a_wait_is_not_given_up_before_its_longest_and_the_reply_timeout_are_over() {
    waiting()
        .at(5_999)
        .wake()
        .expect_wake_at_ms(6_000)
        .sleep()
        .expect_hang_up()
        .expect(Outcome::Unknown)
        // A lock that is granted afterwards ends with the session.
        .reply("lock", Reply::Ok)
        .expect_nothing()
        .disconnect()
        .expect_nothing();
}

#[test]
fn a_try_that_gets_no_reply_costs_the_session() {
    trying().sleep().expect_hang_up().expect(Outcome::Unknown);
    trying()
        .lose("try")
        .expect(Outcome::Unknown)
        .disconnect()
        .expect_nothing();
}

#[test]
fn a_deadlock_is_counted_and_tried_again() {
    waiting()
        .error("lock", ErrorKind::Deadlock)
        .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
        .reply("unlock", Reply::Int(0))
        .expect_pause(0..=10)
        .expect_conflicts(1)
        .sleep()
        .expect_send_over("second", true)
        .expect_wake_at_ms(5_000 + REPLY_TIMEOUT_MS)
        .reply("second", Reply::Ok)
        .expect_held_by_session()
        .expect_attempts(2);
}

#[test]
fn an_error_is_an_outcome_once_nothing_is_left_of_the_attempt() {
    for kind in OTHER_ERRORS {
        waiting()
            .error("lock", kind)
            .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
            .reply("unlock", Reply::Int(0))
            .expect(Outcome::Failed(kind));
    }
    // A statement that does not wait was cancelled from outside.
    for kind in OTHER_ERRORS.into_iter().chain([ErrorKind::Canceled]) {
        trying_in_transaction()
            .error("try", kind)
            .expect_own_sql("rollback", Statement::Rollback, [0, 0])
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Failed(kind));
    }
    for odd in [Reply::Nil, Reply::Int(1), Reply::Items, Reply::Other] {
        waiting()
            .reply("lock", odd)
            .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
            .reply("unlock", Reply::Int(1))
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
    waiting()
        .error("lock", ErrorKind::SessionEnded)
        .expect_hang_up()
        .expect(Outcome::Failed(ErrorKind::SessionEnded));
}

#[test]
fn a_release_that_cannot_be_trusted_ends_the_session() {
    for kind in OTHER_ERRORS.into_iter().chain([ErrorKind::Canceled]) {
        releasing()
            .error("unlock", kind)
            .expect_hang_up()
            .expect(Outcome::Failed(kind));
    }
    for odd in [Reply::Ok, Reply::Nil, Reply::Int(2), Reply::Other] {
        releasing()
            .reply("unlock", odd)
            .expect_hang_up()
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
    releasing().sleep().expect_hang_up().expect(Outcome::Unknown);
    releasing().lose("unlock").expect(Outcome::Unknown);
    // The transaction has ended, and the lock with it.
    committing()
        .error("commit", ErrorKind::Serialization)
        .expect(Outcome::Released);
}

#[test]
fn a_late_reply_to_an_earlier_attempt_does_not_hold() {
    trying()
        .sleep()
        .expect_hang_up()
        .expect(Outcome::Unknown)
        .acquire()
        .expect_own_sql("second", Statement::AdvisoryTry, [0, 0])
        .reply("try", Reply::Int(1))
        .expect_nothing()
        .lose("try")
        .expect_nothing()
        // The end of the connection that the client itself closed.
        .disconnect()
        .expect_nothing()
        .reply("second", Reply::Int(1))
        .expect_held_by_session()
        .reply("second", Reply::Int(1))
        .expect_nothing();
}
