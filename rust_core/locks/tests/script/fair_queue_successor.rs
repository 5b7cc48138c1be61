//! `fair-queue` when the holder knows its successor: it wakes the successor by `RENAME`, and uses the script if that
//! fails.

use locks::{Command, ErrorKind, Outcome, Reply, Script as Lua, Token};

use crate::fair_queue::{asking, waiting};
use crate::waiting::{SHA, SOURCE};
use crate::words::{BELIEF_MS, KEY, LEASE_MS, Script};

const HEIR: Token = Token { high: 7, low: 9 };

impl Script {
    fn expect_given(self, label: &'static str, of: &str, successor: Token) -> Self {
        let token = self.token(of);
        self.expect_command(
            label,
            Command::HandOver {
                key: KEY,
                token,
                successor,
            },
        )
    }
}

/// Held, with the successor in the reply to the confirmation.
fn held() -> Script {
    waiting()
        .at(800)
        .reply("wakeup", Reply::Int(1))
        .expect_unguarded_run("confirm", Lua::QueueConfirm, Some("join"), SHA, [LEASE_MS, 1])
        .expect_held_until(5_938)
        .at(801)
        .reply("confirm", Reply::Token(HEIR))
        .expect_renewed_until(800 + BELIEF_MS)
}

fn giving() -> Script {
    held().at(900).release().expect_given("give", "join", HEIR)
}

#[test]
fn a_holder_gives_the_lock_to_its_successor_by_name() {
    giving().reply("give", Reply::Ok).expect(Outcome::Released);
    held()
        .cancel()
        .expect_given("give", "join", HEIR)
        .cancel()
        .expect_nothing()
        .reply("give", Reply::Ok)
        .expect(Outcome::Released);
}

#[test]
fn where_the_successor_is_not_to_be_woken_the_script_releases() {
    for kind in [ErrorKind::Other, ErrorKind::ReadOnly, ErrorKind::WrongType] {
        let refused = || {
            giving()
                .at(901)
                .reply("give", Reply::Error(kind))
                .expect_leave("leave", "join", SHA, 0)
        };
        refused().reply("leave", Reply::Int(1)).expect(Outcome::Released);
        refused().reply("leave", Reply::Int(0)).expect(Outcome::Expired);
        refused()
            .reply("leave", Reply::Error(ErrorKind::NoScript))
            .expect_leave("again", "join", SOURCE, 0);
    }
}

#[test]
fn a_reply_that_does_not_come_or_shows_nothing_leaves_no_doubt_behind() {
    giving().lose("give").expect(Outcome::Unknown);
    giving().sleep().expect(Outcome::Unknown);
    for odd in [
        Reply::Nil,
        Reply::Int(2),
        Reply::Token(HEIR),
        Reply::Items,
        Reply::Other,
    ] {
        giving()
            .reply("give", odd)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_holder_whose_lease_is_over_gives_nothing_by_name() {
    held()
        .at(800 + BELIEF_MS)
        .release()
        .expect_leave("leave", "join", SHA, 0);
}

/// The next lock is handed over at once.
fn woken_again(before: Script, [lock, wakeup, confirm]: [&'static str; 3], wants_successor: u64) -> Script {
    before
        .acquire()
        .expect_join(lock)
        .reply(lock, Reply::Int(2))
        .expect_queued()
        .expect_wakeup(wakeup, lock)
        .expect_time_to_beat()
        .reply(wakeup, Reply::Int(1))
        .expect_unguarded_run(confirm, Lua::QueueConfirm, Some(lock), SHA, [LEASE_MS, wants_successor])
}

#[test]
fn who_was_done_as_soon_as_it_knew_its_successor_asks_for_none_the_next_time() {
    let after = |answered: bool, released: u64| {
        let woken = waiting()
            .at(800)
            .reply("wakeup", Reply::Int(1))
            .expect_unguarded_run("confirm", Lua::QueueConfirm, Some("join"), SHA, [LEASE_MS, 1])
            .expect_held_until(5_938);
        let confirmed = if answered {
            woken
                .at(810)
                .reply("confirm", Reply::Int(0))
                .expect_renewed_until(800 + BELIEF_MS)
        } else {
            woken
        };
        confirmed
            .at(released)
            .release()
            .expect_leave("leave", "join", SHA, 0)
            .reply("leave", Reply::Int(1))
            .expect(Outcome::Released)
    };
    for (answered, released, wants_successor) in [(true, 813, 1), (true, 812, 0), (false, 813, 0)] {
        woken_again(
            after(answered, released),
            ["second", "second wakeup", "again"],
            wants_successor,
        )
        .expect_held_until(released + 5_938);
    }
    let short = woken_again(after(true, 812), ["second", "second wakeup", "again"], 0)
        .expect_held_until(812 + 5_938)
        .at(813)
        .reply("again", Reply::Int(0))
        .expect_renewed_until(812 + BELIEF_MS)
        .at(814)
        .release()
        .expect_leave("leave it", "second", SHA, 0)
        .reply("leave it", Reply::Int(1))
        .expect(Outcome::Released);
    woken_again(short, ["third", "third wakeup", "woken"], 1).expect_held_until(814 + 5_938);
}

#[test]
fn a_lock_that_was_taken_by_asking_shows_nothing_of_how_long_it_takes() {
    let asked = asking()
        .at(5)
        .reply("join", Reply::Int(0))
        .expect_held_until(BELIEF_MS)
        .release()
        .expect_leave("leave", "join", SHA, 0)
        .reply("leave", Reply::Int(1))
        .expect(Outcome::Released);
    woken_again(asked, ["second", "second wakeup", "again"], 1).expect_held_until(5 + 5_938);
}

#[test]
fn the_successor_of_one_lock_is_none_of_the_next() {
    let given = giving().reply("give", Reply::Ok).expect(Outcome::Released);
    woken_again(given, ["second", "second wakeup", "again"], 1)
        .expect_held_until(6_838)
        .at(901)
        .reply("again", Reply::Int(0))
        .expect_renewed_until(900 + BELIEF_MS)
        .release()
        .expect_leave("leave", "second", SHA, 0);
}
