//! The session locks: a session that ends during the hold, a cancel, and a shared session.

use locks::{ErrorKind, Key, KeyList, Outcome, Reply, Scope, SessionOwner, Statement, Strategy, Wait};

use crate::pg_advisory::{held, held_in_transaction, trying, trying_in_transaction, waiting};
use crate::words::{Script, every_10_ms};

#[test]
fn a_holder_learns_that_its_session_has_ended_and_releases_nothing() {
    for held in [held, held_in_transaction] {
        let lapsed = || held().at(60).disconnect().expect_lapsed();
        lapsed()
            .disconnect()
            .expect_nothing()
            .at(70)
            .release()
            .expect(Outcome::Expired);
        lapsed().cancel().expect(Outcome::Expired).wake().expect_nothing();
        lapsed()
            .release()
            .expect(Outcome::Expired)
            .acquire()
            .expect_send_over("again", true)
            .expect_pause(0..=6_000);
    }
}

#[test]
fn a_session_that_ends_during_the_release_leaves_it_unknown() {
    held()
        .release()
        .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
        .disconnect()
        .expect_nothing()
        .lose("unlock")
        .expect(Outcome::Unknown);
}

#[test]
fn a_session_that_ends_while_it_is_waited_in_leaves_it_unknown() {
    waiting()
        .disconnect()
        .expect_nothing()
        .lose("lock")
        .expect(Outcome::Unknown);
    waiting()
        .lose("lock")
        .expect(Outcome::Unknown)
        .disconnect()
        .expect_nothing();
}

#[test]
fn a_cancel_of_what_waits_in_the_queue_hangs_up() {
    waiting()
        .at(70)
        .cancel()
        .expect_hang_up()
        .expect(Outcome::Unknown)
        .reply("lock", Reply::Ok)
        .expect_nothing();
}

#[test]
fn a_cancel_of_a_try_undoes_it_behind_it() {
    let cancelled = || {
        trying()
            .cancel()
            .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
            .reply("try", Reply::Int(1))
            .expect_nothing()
    };
    for answer in [Reply::Int(0), Reply::Int(1)] {
        cancelled().reply("unlock", answer).expect(Outcome::Released);
    }
    cancelled()
        .cancel()
        .expect_nothing()
        .lose("unlock")
        .expect(Outcome::Unknown);
    trying_in_transaction()
        .cancel()
        .expect_own_sql("rollback", Statement::Rollback, [0, 0])
        .reply("try", Reply::Int(0))
        .expect_nothing()
        .reply("rollback", Reply::Ok)
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_while_an_attempt_is_undone_settles_when_it_is() {
    trying_in_transaction()
        .reply("try", Reply::Int(0))
        .expect_own_sql("rollback", Statement::Rollback, [0, 0])
        .cancel()
        .expect_nothing()
        .reply("rollback", Reply::Ok)
        .expect(Outcome::Released);
    waiting()
        .error("lock", ErrorKind::LockNotAvailable)
        .expect_own_sql("unlock", Statement::AdvisoryUnlock, [0, 0])
        .cancel()
        .expect_nothing()
        .reply("unlock", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_during_the_pause_settles_at_once_and_one_while_held_is_a_release() {
    trying()
        .reply("try", Reply::Int(0))
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released)
        .sleep()
        .expect_nothing();
    held_in_transaction()
        .cancel()
        .expect_own_sql("commit", Statement::Commit, [0, 0])
        .cancel()
        .expect_nothing()
        .reply("commit", Reply::Ok)
        .expect(Outcome::Released);
}

/// Two clients in one session are one holder to the database.
fn shared() -> Script {
    let strategy = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::AllClients,
    };
    crate::words::script(strategy, every_10_ms())
        .acquire()
        .expect_sql("try", Statement::AdvisoryTry, [0, 0])
}

#[test]
fn a_session_of_others_is_used_and_never_hung_up_on() {
    let held = || shared().reply("try", Reply::Int(1)).expect_held_by_session();
    let releasing = || held().release().expect_sql("unlock", Statement::AdvisoryUnlock, [0, 0]);
    releasing().reply("unlock", Reply::Int(1)).expect(Outcome::Released);
    releasing().reply("unlock", Reply::Int(0)).expect(Outcome::Expired);
    releasing().sleep().expect(Outcome::Unknown);
    releasing()
        .error("unlock", ErrorKind::Other)
        .expect(Outcome::Failed(ErrorKind::Other));
    shared().lose("try").expect(Outcome::Unknown);
    shared()
        .sleep()
        .expect_unguarded(
            "unlock",
            crate::postgres::sql(Statement::AdvisoryUnlock, crate::words::KEY, [0, 0]),
        )
        .expect(Outcome::Unknown);
}

#[test]
#[should_panic(expected = "for a lock that takes one key")]
fn an_advisory_lock_takes_one_key() {
    let both = KeyList::new(&[Key(1), Key(2)]).expect("two are few");
    crate::pg_advisory::script(Scope::Session, Wait::Try, every_10_ms()).acquire_all(both);
}
