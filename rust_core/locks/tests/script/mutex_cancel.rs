//! `mutex`, cancelled at each point where it waits.

use locks::{ErrorKind, Outcome, Reply, ScriptForm};

use crate::mutex::{held, script};
use crate::words::every_10_ms;

#[test]
fn a_cancel_while_asking_waits_for_the_reply_and_releases_what_it_granted() {
    let cancelled = || {
        script(every_10_ms())
            .at(0)
            .acquire()
            .expect_set("set")
            .at(1)
            .cancel()
            .expect_nothing()
    };
    let back = || {
        cancelled()
            .reply("set", Reply::Ok)
            .expect_release("back", "set", ScriptForm::Sha)
    };
    back().reply("back", Reply::Int(1)).expect(Outcome::Released);
    back().reply("back", Reply::Int(0)).expect(Outcome::Released);
    back().cancel().expect_nothing().lose("back").expect(Outcome::Unknown);

    cancelled().reply("set", Reply::Nil).expect(Outcome::Released);
    cancelled()
        .reply("set", Reply::Error(ErrorKind::Loading))
        .expect(Outcome::Released);
    cancelled()
        .reply("set", Reply::Error(ErrorKind::Other))
        .expect_release("back", "set", ScriptForm::Sha)
        .lose("back")
        .expect(Outcome::Unknown);
    cancelled()
        .lose("set")
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown);
    cancelled()
        .cancel()
        .expect_nothing()
        .sleep()
        .expect_unawaited_release("back", "set")
        .expect(Outcome::Unknown);
}

#[test]
fn a_cancel_during_the_pause_settles_at_once() {
    script(every_10_ms())
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released)
        .sleep()
        .expect_nothing();
}

#[test]
fn a_cancel_while_held_is_a_release() {
    let back = || held().at(50).cancel().expect_release("back", "set", ScriptForm::Sha);
    back().reply("back", Reply::Int(1)).expect(Outcome::Released);
    back().reply("back", Reply::Int(0)).expect(Outcome::Expired);
}

#[test]
fn a_cancel_during_the_release_adds_nothing() {
    held()
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .cancel()
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
}
