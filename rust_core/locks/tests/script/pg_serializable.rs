//! `pg-serializable`: the transaction that is open during the work, and its end. `pg-optimistic` tests what both share.

use locks::{ErrorKind, Outcome, Reply, Statement, Strategy};

use crate::postgres::{OTHER_ERRORS, ROW};
use crate::words::{Script, every_10_ms, script};

fn reading() -> Script {
    script(Strategy::PgSerializable, every_10_ms())
        .acquire()
        .expect_own_sql("read", Statement::SerializableRead, [0, 0])
}

fn held() -> Script {
    reading().at(2).reply("read", Reply::Int(5)).expect_begun()
}

fn writing() -> Script {
    held()
        .at(9)
        .release()
        .expect_own_sql("write", Statement::SerializableWrite, [5, 0])
}

impl Script {
    fn expect_rollback(self) -> Self {
        self.expect_own_sql("rollback", Statement::Rollback, [0, 0])
    }
}

#[test]
fn a_write_and_its_commit_are_acknowledged_together() {
    writing()
        .reply("write", ROW)
        .expect(Outcome::Released)
        .expect_attempts(1);
}

#[test]
fn a_conflict_is_rolled_back_before_the_work_is_done_again() {
    for kind in [
        ErrorKind::Serialization,
        ErrorKind::Deadlock,
        ErrorKind::LockNotAvailable,
        ErrorKind::Canceled,
    ] {
        let conflicted = || writing().error("write", kind).expect_rollback();
        conflicted()
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Conflict)
            .retry()
            .expect_pause(0..=10)
            .sleep()
            .expect_own_sql("again", Statement::SerializableRead, [0, 0])
            .expect_attempts(2)
            .expect_conflicts(1);
        // However the transaction ends, nothing was written.
        conflicted().lose("rollback").expect(Outcome::Conflict);
        conflicted().sleep().expect_hang_up().expect(Outcome::Conflict);
        conflicted()
            .error("rollback", ErrorKind::Other)
            .expect_hang_up()
            .expect(Outcome::Conflict);
        conflicted()
            .cancel()
            .expect_nothing()
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Conflict);
    }
}

#[test]
fn a_read_that_meets_others_is_rolled_back_and_tried_again() {
    let met = || reading().error("read", ErrorKind::Serialization).expect_rollback();
    met()
        .reply("rollback", Reply::Ok)
        .expect_pause(0..=10)
        .expect_conflicts(1)
        .sleep()
        .expect_own_sql("again", Statement::SerializableRead, [0, 0])
        .expect_attempts(2);
    met()
        .cancel()
        .expect_nothing()
        .reply("rollback", Reply::Ok)
        .expect(Outcome::Released);
}

#[test]
fn errors_are_outcomes_once_the_transaction_is_ended() {
    for kind in OTHER_ERRORS {
        for asked in [reading().error("read", kind), writing().error("write", kind)] {
            asked
                .expect_rollback()
                .reply("rollback", Reply::Ok)
                .expect(Outcome::Failed(kind));
        }
    }
    // A write without a row is no conflict here, because the write has no guard.
    for asked in [
        reading().reply("read", Reply::Nil),
        writing().reply("write", Reply::Nil),
    ] {
        asked
            .expect_rollback()
            .reply("rollback", Reply::Ok)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
    for asked in [
        reading().error("read", ErrorKind::SessionEnded),
        writing().error("write", ErrorKind::SessionEnded),
    ] {
        asked.expect_hang_up().expect(Outcome::Failed(ErrorKind::SessionEnded));
    }
}

#[test]
fn replies_that_do_not_come_cost_the_session() {
    reading().sleep().expect_hang_up().expect(Outcome::Unknown);
    reading().lose("read").expect(Outcome::Unknown);
    writing().sleep().expect_hang_up().expect(Outcome::Unknown);
    writing()
        .lose("write")
        .expect(Outcome::Unknown)
        .disconnect()
        .expect_nothing();
}

#[test]
fn work_whose_session_has_ended_writes_nothing() {
    let gone = || held().disconnect().expect_nothing();
    gone().release().expect(Outcome::Expired);
    gone().cancel().expect(Outcome::Expired);
    gone()
        .disconnect()
        .expect_nothing()
        .release()
        .expect(Outcome::Expired)
        .acquire()
        .expect_own_sql("fresh", Statement::SerializableRead, [0, 0])
        .expect_attempts(1);
}

#[test]
fn a_cancel_ends_the_transaction_behind_the_read() {
    reading()
        .cancel()
        .expect_rollback()
        .reply("read", Reply::Int(5))
        .expect_nothing()
        .reply("rollback", Reply::Ok)
        .expect(Outcome::Released);
    held()
        .cancel()
        .expect_own_sql("write", Statement::SerializableWrite, [5, 0])
        .reply("write", ROW)
        .expect(Outcome::Released);
}
