//! `fenced`: grants with numbers. `mutex` and `watchdog` test what they share.

use std::num::NonZeroU64;

use locks::{ErrorKind, Fence, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Strategy};

use crate::words::{BELIEF_MS, LEASE_MS, Script, every_10_ms, one_attempt};

const PLAIN: Strategy = Strategy::Fenced { renews: false };
const KEPT: Strategy = Strategy::Fenced { renews: true };

fn fence(number: u64) -> Fence {
    Fence(NonZeroU64::new(number).expect("a test's fence is not 0"))
}

fn asking() -> Script {
    crate::words::script(PLAIN, every_10_ms()).acquire().expect_run(
        "take",
        Lua::FencedTake,
        None,
        ScriptForm::Sha,
        [LEASE_MS, 0],
    )
}

#[test]
fn a_grant_brings_the_number_that_the_server_counted() {
    asking()
        .at(5)
        .reply("take", Reply::Int(7))
        .expect_fenced_until(BELIEF_MS, fence(7))
        .at(50)
        .release()
        .expect_release("back", "take", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_lock_that_is_taken_is_asked_for_again_with_a_token_of_its_own() {
    asking()
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .at(20)
        .wake()
        .expect_run("again", Lua::FencedTake, None, ScriptForm::Sha, [LEASE_MS, 0])
        .reply("take", Reply::Int(1))
        .expect_nothing()
        .reply("again", Reply::Int(2))
        .expect_fenced_until(20 + BELIEF_MS, fence(2));
}

#[test]
fn a_counter_that_is_no_count_of_grants_is_an_error_and_released() {
    for reply in [Reply::Int(0), Reply::Int(-1), Reply::Ok, Reply::Items, Reply::Other] {
        asking()
            .reply("take", reply)
            .expect_unawaited_release("back", "take")
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_as_source_and_the_lease_counts_from_there() {
    let asked = || {
        asking()
            .at(100)
            .reply("take", Reply::Error(ErrorKind::NoScript))
            .expect_run(
                "source",
                Lua::FencedTake,
                Some("take"),
                ScriptForm::Source,
                [LEASE_MS, 0],
            )
    };
    asked()
        .at(105)
        .reply("source", Reply::Int(1))
        .expect_fenced_until(100 + BELIEF_MS, fence(1))
        .expect_attempts(1);
    asked()
        .reply("source", Reply::Error(ErrorKind::NoScript))
        .expect_unawaited_release("back", "source")
        .expect(Outcome::Failed(ErrorKind::NoScript));
    let asked = asked();
    assert_eq!(asked.token("take"), asked.token("source"));
    asked
        .sleep()
        .expect_unawaited_release("back", "source")
        .expect(Outcome::Unknown);
}

#[test]
fn a_cancel_while_asking_releases_what_was_granted() {
    asking()
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Int(1))
        .expect_release("back", "take", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    asking()
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Nil)
        .expect(Outcome::Released);
}

#[test]
fn it_is_renewed_only_where_that_was_asked_for() {
    asking()
        .reply("take", Reply::Int(1))
        .expect_fenced_until(BELIEF_MS, fence(1))
        .at(5_000)
        .wake()
        .expect_nothing();
    crate::words::script(KEPT, one_attempt())
        .acquire()
        .expect_run("take", Lua::FencedTake, None, ScriptForm::Sha, [LEASE_MS, 0])
        .reply("take", Reply::Int(1))
        .expect_fenced_until(BELIEF_MS, fence(1))
        .expect_pause(LEASE_MS / 6..=LEASE_MS / 3 + 1)
        .at(4_000)
        .wake()
        .expect_run(
            "keep",
            Lua::CompareAndExpire,
            Some("take"),
            ScriptForm::Sha,
            [LEASE_MS, 0],
        )
        .reply("keep", Reply::Int(1))
        .expect_renewed_until(4_000 + BELIEF_MS)
        .expect_pause(3_333..=3_334);
}

#[test]
fn an_error_that_shows_that_nothing_was_taken_leaves_nothing_to_clean_up() {
    use ErrorKind::{Loading, Moved, NoAuth, OutOfMemory, ReadOnly, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth] {
        asking().reply("take", Reply::Error(kind)).expect(Outcome::Failed(kind));
    }
}

#[test]
fn without_retry_a_taken_lock_is_refused() {
    crate::words::script(PLAIN, one_attempt())
        .acquire()
        .expect_run("take", Lua::FencedTake, None, ScriptForm::Sha, [LEASE_MS, 0])
        .reply("take", Reply::Nil)
        .expect(Outcome::Refused(Refusal::Busy));
}
