//! `read-write`: which script each mode sends, and the reservation of a waiting writer. `mutex` tests what both share;
//! other tests run the scripts on real servers.

use locks::{ErrorKind, Mode, Outcome, Prefer, Refusal, Reply, Retry, Script as Lua, ScriptForm, Spec, Strategy};

use crate::words::{BELIEF_MS, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, one_attempt};

/// The longest pause, and the reply timeout.
const RESERVATION_MS: u64 = 10 + REPLY_TIMEOUT_MS;

fn script(prefer: Prefer, spec: Spec) -> Script {
    crate::words::script(Strategy::ReadWrite { prefer }, spec)
}

fn reading(prefer: Prefer) -> Script {
    script(prefer, every_10_ms()).acquire_as(Mode::Shared).expect_run(
        "take",
        Lua::ReadTake,
        None,
        ScriptForm::Sha,
        [LEASE_MS, 0],
    )
}

fn writing() -> Script {
    script(Prefer::Writers, every_10_ms()).acquire().expect_run(
        "take",
        Lua::WriteTake,
        None,
        ScriptForm::Sha,
        [LEASE_MS, RESERVATION_MS],
    )
}

#[test]
fn a_reader_joins_and_leaves_the_readers() {
    for prefer in [Prefer::Readers, Prefer::Writers] {
        reading(prefer)
            .at(5)
            .reply("take", Reply::Int(1))
            .expect_held_until(BELIEF_MS)
            .release()
            .expect_run("back", Lua::ReadRelease, Some("take"), ScriptForm::Sha, [0, 0])
            .reply("back", Reply::Int(1))
            .expect(Outcome::Released);
    }
}

#[test]
fn a_writer_takes_and_releases_its_key() {
    let held = || {
        writing()
            .at(5)
            .reply("take", Reply::Int(1))
            .expect_held_until(BELIEF_MS)
            .release()
            .expect_run("back", Lua::WriteRelease, Some("take"), ScriptForm::Sha, [0, 0])
    };
    held().reply("back", Reply::Int(1)).expect(Outcome::Released);
    held().reply("back", Reply::Int(0)).expect(Outcome::Expired);
}

#[test]
fn each_acquire_has_a_mode_of_its_own() {
    reading(Prefer::Readers)
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released)
        .acquire()
        .expect_run("write", Lua::WriteTake, None, ScriptForm::Sha, [LEASE_MS, 0]);
}

#[test]
fn a_writer_keeps_its_token_from_attempt_to_attempt_but_not_to_the_next_acquire() {
    writing()
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .sleep()
        .expect_run(
            "again",
            Lua::WriteTake,
            Some("take"),
            ScriptForm::Sha,
            [LEASE_MS, RESERVATION_MS],
        )
        .reply("again", Reply::Error(ErrorKind::Loading))
        .expect_forgotten("claim")
        .expect(Outcome::Failed(ErrorKind::Loading))
        .acquire()
        .expect_run(
            "next",
            Lua::WriteTake,
            None,
            ScriptForm::Sha,
            [LEASE_MS, RESERVATION_MS],
        );
}

impl Script {
    /// Nobody waits for the reply; the reservation expires by itself if the command does not arrive.
    fn expect_forgotten(self, label: &'static str) -> Self {
        self.expect_unguarded_run(label, Lua::WriteRelease, Some("take"), ScriptForm::Source, [0, 0])
    }
}

#[test]
fn a_writer_that_gives_up_removes_its_reservation() {
    writing()
        .at(4_995)
        .reply("take", Reply::Nil)
        .expect_pause(0..=5)
        .sleep()
        .expect_run(
            "again",
            Lua::WriteTake,
            Some("take"),
            ScriptForm::Sha,
            [LEASE_MS, RESERVATION_MS],
        )
        .at(5_100)
        .reply("again", Reply::Nil)
        .expect_forgotten("claim")
        .expect(Outcome::Refused(Refusal::TimedOut));
    writing()
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect_forgotten("claim")
        .expect(Outcome::Released);
    writing()
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Nil)
        .expect_forgotten("claim")
        .expect(Outcome::Released);
    writing()
        .lose("take")
        .expect_forgotten("claim")
        .expect(Outcome::Unknown);
}

#[test]
fn nothing_is_reserved_where_nobody_tries_again_or_readers_go_first() {
    let once = Retry {
        max_attempts: Some(1),
        ..every_10_ms().retry
    };
    let specs = [
        (Prefer::Writers, one_attempt()),
        (
            Prefer::Writers,
            Spec {
                retry: once,
                ..one_attempt()
            },
        ),
        (Prefer::Readers, one_attempt()),
    ];
    for (prefer, spec) in specs {
        script(prefer, spec)
            .acquire()
            .expect_run("take", Lua::WriteTake, None, ScriptForm::Sha, [LEASE_MS, 0])
            .reply("take", Reply::Nil)
            .expect(Outcome::Refused(Refusal::Busy));
    }
}

#[test]
fn a_reader_that_gives_up_has_nothing_to_take_back() {
    reading(Prefer::Writers)
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released);
}

#[test]
fn scripts_that_the_server_does_not_know_are_sent_as_source() {
    reading(Prefer::Readers)
        .reply("take", Reply::Error(ErrorKind::NoScript))
        .expect_run("source", Lua::ReadTake, Some("take"), ScriptForm::Source, [LEASE_MS, 0])
        .reply("source", Reply::Int(1))
        .expect_held_until(BELIEF_MS)
        .release()
        .expect_run("back", Lua::ReadRelease, Some("take"), ScriptForm::Sha, [0, 0])
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_run(
            "back as source",
            Lua::ReadRelease,
            Some("take"),
            ScriptForm::Source,
            [0, 0],
        )
        .reply("back as source", Reply::Int(1))
        .expect(Outcome::Released);
}
