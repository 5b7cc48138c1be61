//! `pg-lease`: the replies of a row. `mutex` tests what both share.

use locks::{Command, ErrorKind, Fence, Outcome, Refusal, Reply, Spec, Statement, Strategy};

use crate::postgres::ROW;
use crate::words::{BELIEF_MS, KEY, LEASE_MS, Script, every_10_ms, lease, one_attempt};

fn asking(spec: Spec) -> Script {
    crate::words::script(Strategy::PgLease, spec)
        .acquire()
        .expect_take("take", LEASE_MS)
}

fn held() -> Script {
    asking(one_attempt())
        .at(5)
        .reply("take", Reply::Int(41))
        .expect_fenced_until(BELIEF_MS, fence(41))
}

fn fence(number: u64) -> Fence {
    Fence(number.try_into().expect("fences begin with 1"))
}

impl Script {
    /// With a fresh token, guarded by the reply timeout.
    fn expect_take(self, label: &'static str, lease_ms: u64) -> Self {
        let seen = self.tokens();
        let (script, command) = self.expect_send(label);
        let Command::Sql { token, .. } = command else {
            panic!("no statement: {command:?}")
        };
        assert!(!seen.contains(&token), "a token used twice: {token:?}");
        let (statement, key, numbers) = (Statement::LeaseTake, KEY, [lease_ms, 0]);
        assert_eq!(
            command,
            Command::Sql {
                statement,
                key,
                token,
                numbers
            }
        );
        script.expect_guard()
    }

    /// With the token of `of`; nobody waits for the reply.
    fn expect_unguarded_row_back(self, label: &'static str, of: &str) -> Self {
        let token = self.token(of);
        let (statement, key, numbers) = (Statement::LeaseRelease, KEY, [0, 0]);
        self.expect_unguarded(
            label,
            Command::Sql {
                statement,
                key,
                token,
                numbers,
            },
        )
    }

    fn expect_row_back(self, label: &'static str, of: &str) -> Self {
        self.expect_unguarded_row_back(label, of).expect_guard()
    }
}

#[test]
fn a_lease_counts_from_before_the_send_and_is_released_by_its_token() {
    let releasing = || held().at(50).release().expect_row_back("back", "take");
    for row in [Reply::Int(0), Reply::Int(1), Reply::Int(900)] {
        releasing().reply("back", row).expect(Outcome::Released);
    }
    releasing().reply("back", Reply::Nil).expect(Outcome::Expired);
    releasing().lose("back").expect(Outcome::Unknown);
    for odd in [Reply::Ok, Reply::Items, Reply::Other] {
        releasing()
            .reply("back", odd)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn no_row_is_a_refusal_and_the_next_attempt_brings_a_token_of_its_own() {
    asking(every_10_ms())
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .sleep()
        .expect_take("second", LEASE_MS)
        .reply("take", Reply::Int(7))
        .expect_nothing()
        .reply("second", Reply::Nil)
        .expect_pause(10..=10);
    asking(one_attempt())
        .reply("take", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_writer_in_the_way_is_a_refusal_too() {
    for kind in [
        ErrorKind::Serialization,
        ErrorKind::Deadlock,
        ErrorKind::LockNotAvailable,
        ErrorKind::Canceled,
    ] {
        asking(every_10_ms())
            .error("take", kind)
            .expect_pause(0..=10)
            .sleep()
            .expect_take("second", LEASE_MS)
            .expect_attempts(2);
    }
    for kind in [ErrorKind::TooManyConnections, ErrorKind::ReadOnly] {
        asking(every_10_ms()).error("take", kind).expect(Outcome::Failed(kind));
    }
}

#[test]
fn a_lost_reply_is_met_with_a_release_that_nobody_waits_for() {
    asking(every_10_ms())
        .lose("take")
        .expect_unguarded_row_back("back", "take")
        .expect(Outcome::Unknown)
        .acquire()
        .expect_take("second", LEASE_MS)
        .reply("take", Reply::Int(3))
        .expect_nothing();
    asking(every_10_ms())
        .sleep()
        .expect_unguarded_row_back("back", "take")
        .expect(Outcome::Unknown);
    for (reply, kind) in [
        (Reply::Int(0), ErrorKind::Unexpected),
        (Reply::Int(-1), ErrorKind::Unexpected),
        (Reply::Ok, ErrorKind::Unexpected),
        (Reply::Error(ErrorKind::SessionEnded), ErrorKind::SessionEnded),
        (Reply::Error(ErrorKind::Other), ErrorKind::Other),
    ] {
        asking(every_10_ms())
            .reply("take", reply)
            .expect_unguarded_row_back("back", "take")
            .expect(Outcome::Failed(kind));
    }
}

#[test]
fn a_fence_that_comes_too_late_is_released() {
    let short = Spec {
        lease: lease(100),
        ..every_10_ms()
    };
    let asking = || {
        crate::words::script(Strategy::PgLease, short)
            .acquire()
            .expect_take("take", 100)
    };
    asking()
        .at(96)
        .reply("take", Reply::Int(2))
        .expect_fenced_until(97, fence(2));
    asking()
        .at(97)
        .reply("take", Reply::Int(2))
        .expect_row_back("back", "take")
        .reply("back", ROW)
        .expect_pause(0..=10);
}

#[test]
fn a_cancel_waits_for_the_reply_and_a_lost_session_of_others_does_not_end_a_lease() {
    asking(every_10_ms())
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Int(4))
        .expect_row_back("back", "take")
        .reply("back", ROW)
        .expect(Outcome::Released);
    asking(every_10_ms())
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Nil)
        .expect(Outcome::Released);
    held().disconnect().expect_nothing().lose("take").expect_nothing();
}

#[test]
fn a_release_that_met_another_transaction_is_sent_again_until_its_reply_is_waited_for_no_longer() {
    for kind in [
        ErrorKind::Serialization,
        ErrorKind::Deadlock,
        ErrorKind::LockNotAvailable,
        ErrorKind::Canceled,
    ] {
        held()
            .at(50)
            .release()
            .expect_row_back("back", "take")
            .at(60)
            .error("back", kind)
            .expect_unguarded_row_back("again", "take")
            .at(70)
            .error("again", kind)
            .expect_unguarded_row_back("third", "take")
            .reply("third", ROW)
            .expect(Outcome::Released);
        // The deadline of the first send bounds all of them.
        held()
            .at(50)
            .release()
            .expect_row_back("back", "take")
            .at(900)
            .error("back", kind)
            .expect_unguarded_row_back("again", "take")
            .sleep()
            .expect(Outcome::Unknown);
    }
}
