//! `semaphore`: permits. `mutex` tests what both share; other tests run the scripts on real servers.

use locks::{ErrorKind, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Strategy};

use crate::words::{BELIEF_MS, LEASE_MS, Script, every_10_ms};

const PERMITS: u32 = 3;

fn asking() -> Script {
    crate::words::script(Strategy::Semaphore { permits: PERMITS }, every_10_ms())
        .acquire()
        .expect_run(
            "take",
            Lua::SemaphoreTake,
            None,
            ScriptForm::Sha,
            [u64::from(PERMITS), LEASE_MS],
        )
}

fn held() -> Script {
    asking().at(5).reply("take", Reply::Int(1)).expect_held_until(BELIEF_MS)
}

impl Script {
    fn expect_permit_back(self, label: &'static str, form: ScriptForm) -> Self {
        self.expect_run(label, Lua::SemaphoreRelease, Some("take"), form, [0, 0])
    }
}

#[test]
fn a_permit_is_released_by_its_token() {
    held()
        .at(50)
        .release()
        .expect_permit_back("back", ScriptForm::Sha)
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_permit_back("source", ScriptForm::Source)
        .reply("source", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_release_after_the_lease_reports_that() {
    held()
        .at(2 * LEASE_MS)
        .release()
        .expect_permit_back("back", ScriptForm::Sha)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn when_all_are_taken_it_is_tried_again_and_then_refused() {
    asking()
        .reply("take", Reply::Nil)
        .expect_pause(0..=10)
        .at(5_000)
        .wake()
        .expect_run(
            "again",
            Lua::SemaphoreTake,
            None,
            ScriptForm::Sha,
            [u64::from(PERMITS), LEASE_MS],
        )
        .reply("again", Reply::Nil)
        .expect(Outcome::Refused(Refusal::TimedOut))
        .expect_attempts(2);
}

#[test]
fn a_reply_that_never_comes_is_released_as_source() {
    for lost in [false, true] {
        let script = if lost { asking().lose("take") } else { asking().sleep() };
        script
            .expect_unguarded_run("back", Lua::SemaphoreRelease, Some("take"), ScriptForm::Source, [0, 0])
            .expect(Outcome::Unknown);
    }
}

#[test]
fn a_reply_that_it_never_gives_is_released() {
    for reply in [Reply::Int(2), Reply::Int(0), Reply::Ok, Reply::Other] {
        asking()
            .reply("take", reply)
            .expect_unguarded_run("back", Lua::SemaphoreRelease, Some("take"), ScriptForm::Source, [0, 0])
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn a_cancel_while_asking_releases_the_permit() {
    asking()
        .cancel()
        .expect_nothing()
        .reply("take", Reply::Int(1))
        .expect_permit_back("back", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}
