//! `pg-row`: one row and several, waited for, refused and skipped. `pg-advisory` tests what both share.

use locks::{ErrorKind, KeyList, Mode, Outcome, Refusal, Reply, Statement, Strategy, Wait};

use crate::postgres::{ROW, WAITED_OUT, keys, sql};
use crate::words::{KEY, REPLY_TIMEOUT_MS, Script, every_10_ms, script};

fn asking(wait: Wait, first: Statement) -> Script {
    script(Strategy::PgRow { wait }, every_10_ms())
        .acquire()
        .expect_own("row", sql(first, KEY, [0, 0]))
        .expect_wake_at_ms(REPLY_TIMEOUT_MS + if wait == Wait::Block { 5_000 } else { 0 })
}

/// Three rows, in the order 9, 2, 5.
fn asking_for_three(wait: Wait, first: Statement, also: Statement) -> Script {
    let [a, b, c] = three().as_slice()[..] else {
        unreachable!("three keys")
    };
    script(Strategy::PgRow { wait }, every_10_ms())
        .acquire_all(three())
        .expect_own("first", sql(first, a, [0, 0]))
        .expect_own("second", sql(also, b, [0, 0]))
        .expect_own("third", sql(also, c, [0, 0]))
        .expect_wake_at_ms(REPLY_TIMEOUT_MS + if wait == Wait::Block { 5_000 } else { 0 })
}

fn three() -> KeyList {
    keys(&[9, 2, 5])
}

fn waiting() -> Script {
    asking_for_three(Wait::Block, Statement::RowLock, Statement::RowLockAlso)
}

fn refusing() -> Script {
    asking_for_three(Wait::Try, Statement::RowNowait, Statement::RowNowaitAlso)
}

fn skipping() -> Script {
    asking_for_three(Wait::SkipLocked, Statement::RowSkip, Statement::RowSkipAlso)
}

impl Script {
    /// A statement about the first of the three rows, guarded by the reply timeout.
    fn expect_end(self, label: &'static str, statement: Statement) -> Self {
        let first = three().as_slice()[0];
        self.expect_own(label, sql(statement, first, [0, 0])).expect_guard()
    }
}

#[test]
fn a_row_is_held_by_its_transaction_whatever_its_id() {
    for id in [0, 1, i64::from(i32::MAX)] {
        asking(Wait::Block, Statement::RowLock)
            .at(30)
            .reply("row", Reply::Int(id))
            .expect_held_by_session()
            .release()
            .expect_own_sql("commit", Statement::Commit, [0, 0])
            .reply("commit", Reply::Ok)
            .expect(Outcome::Released);
    }
}

#[test]
fn several_rows_are_asked_for_in_one_write_and_held_when_all_are() {
    for three in [waiting, refusing, skipping] {
        three()
            .reply("first", Reply::Int(9))
            .expect_nothing()
            // Already answered: a second reply changes nothing.
            .reply("first", Reply::Nil)
            .expect_nothing()
            .lose("first")
            .expect_nothing()
            .reply("second", Reply::Int(2))
            .expect_nothing()
            .reply("third", Reply::Int(5))
            .expect_held_by_session()
            .release()
            .expect_end("commit", Statement::Commit)
            .reply("commit", Reply::Ok)
            .expect(Outcome::Released)
            .expect_attempts(1);
    }
}

#[test]
fn one_row_that_is_refused_undoes_all_before_the_pause() {
    let undone = |refused: Script| {
        refused
            .expect_end("rollback", Statement::Rollback)
            // The other replies of the attempt change nothing.
            .error("third", ErrorKind::InFailedTransaction)
            .expect_nothing()
            .at(2)
            .reply("rollback", Reply::Ok)
            .expect_pause(0..=10)
            .expect_conflicts(0)
    };
    let nowait = refusing().reply("first", ROW).expect_nothing();
    undone(nowait.error("second", ErrorKind::LockNotAvailable));
    let skipped = skipping().reply("first", ROW).expect_nothing();
    undone(skipped.reply("second", Reply::Nil))
        .sleep()
        .expect_own("again", sql(Statement::RowSkip, three().as_slice()[0], [0, 0]))
        .expect_own("also", sql(Statement::RowSkipAlso, three().as_slice()[1], [0, 0]))
        .expect_own("last", sql(Statement::RowSkipAlso, three().as_slice()[2], [0, 0]))
        .expect_guard()
        .expect_attempts(2)
        // A row of the first attempt does not count for the second.
        .reply("third", ROW)
        .expect_nothing()
        .reply("again", ROW)
        .reply("also", ROW)
        .expect_nothing()
        .reply("last", ROW)
        .expect_held_by_session();
}

#[test]
fn a_row_that_does_not_exist_locks_nothing_and_is_an_error() {
    for asking in [
        asking(Wait::Block, Statement::RowLock),
        asking(Wait::Try, Statement::RowNowait),
    ] {
        asking
            .reply("row", Reply::Nil)
            .expect_own_sql("rollback", Statement::Rollback, [0, 0])
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_deadlock_is_rolled_back_counted_and_tried_again() {
    let deadlocked = |asking: Script| {
        asking
            .at(20)
            .error("second", ErrorKind::Deadlock)
            .expect_end("rollback", Statement::Rollback)
            .error("third", ErrorKind::InFailedTransaction)
            .expect_nothing()
            .reply("rollback", Reply::Ok)
    };
    deadlocked(waiting().reply("first", ROW).expect_nothing())
        .expect_pause(0..=10)
        .expect_conflicts(1)
        .sleep()
        .expect_send_over("again", true)
        .expect_send_over("also", true)
        .expect_send_over("last", true)
        .expect_wake_at_ms(5_000 + REPLY_TIMEOUT_MS)
        .error("again", ErrorKind::Deadlock)
        .expect_end("second rollback", Statement::Rollback)
        .at(5_001)
        .reply("second rollback", Reply::Ok)
        .expect(Outcome::Refused(Refusal::TimedOut))
        .expect_conflicts(2)
        .expect_attempts(2)
        .acquire()
        .expect_send_over("fresh", true)
        .expect_pause(0..=6_000)
        .expect_conflicts(0);
}

#[test]
fn a_wait_that_the_server_ended_is_rolled_back_and_timed_out() {
    for kind in WAITED_OUT {
        waiting()
            .at(5_000)
            .error("first", kind)
            .expect_end("rollback", Statement::Rollback)
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Refused(Refusal::TimedOut));
    }
}

#[test]
fn readers_lock_their_rows_shared() {
    for (wait, first, also) in [
        (Wait::Block, Statement::RowLockShared, Statement::RowLockSharedAlso),
        (Wait::Try, Statement::RowNowaitShared, Statement::RowNowaitSharedAlso),
        (Wait::SkipLocked, Statement::RowSkipShared, Statement::RowSkipSharedAlso),
    ] {
        let two = keys(&[7, 3]);
        script(Strategy::PgRow { wait }, every_10_ms())
            .acquire_all_as(two, Mode::Shared)
            .expect_own("first", sql(first, two.as_slice()[0], [0, 0]))
            .expect_own("second", sql(also, two.as_slice()[1], [0, 0]))
            .expect_pause(0..=6_000)
            .reply("second", ROW)
            .expect_nothing()
            .reply("first", ROW)
            .expect_held_by_session();
    }
}

#[test]
fn a_session_that_ends_in_the_midst_of_several_rows_settles_once() {
    waiting()
        .reply("first", ROW)
        .expect_nothing()
        .lose("second")
        .expect(Outcome::Unknown)
        .lose("third")
        .expect_nothing()
        .disconnect()
        .expect_nothing();
    waiting()
        .cancel()
        .expect_hang_up()
        .expect(Outcome::Unknown)
        .reply("first", ROW)
        .reply("second", ROW)
        .reply("third", ROW)
        .expect_nothing();
    refusing()
        .cancel()
        .expect_end("rollback", Statement::Rollback)
        .reply("first", ROW)
        .reply("second", ROW)
        .reply("third", ROW)
        .expect_nothing()
        .reply("rollback", Reply::Ok)
        .expect(Outcome::Released);
}
