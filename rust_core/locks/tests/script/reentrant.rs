//! `reentrant`: entries, counted by the server or the client. `mutex` tests what both share; other tests run the
//! scripts on real servers.

use locks::{Count, ErrorKind, Outcome, Refusal, Reply, Script as Lua, ScriptForm, Strategy};

use crate::words::{BELIEF_MS, LEASE_MS, REPLY_TIMEOUT_MS, Script, one_attempt};

fn script(count: Count) -> Script {
    crate::words::script(Strategy::Reentrant { count }, one_attempt())
}

/// Held since 5 ms by a script sent at 0.
fn held() -> Script {
    script(Count::Server)
        .acquire()
        .expect_run("take", Lua::ReentrantTake, None, ScriptForm::Sha, [LEASE_MS, 0])
        .at(5)
        .reply("take", Reply::Int(1))
        .expect_held_until(BELIEF_MS)
}

/// Entered a second time at 1 s.
fn entering() -> Script {
    held().at(1_000).enter().expect_entering("enter", ScriptForm::Sha)
}

fn entered() -> Script {
    entering()
        .at(1_010)
        .reply("enter", Reply::Int(2))
        .expect_held_until(1_000 + BELIEF_MS)
}

impl Script {
    fn expect_entering(self, label: &'static str, form: ScriptForm) -> Self {
        self.expect_of_the_grant(label, Lua::ReentrantEnter, form, LEASE_MS)
    }

    fn expect_leaving(self, label: &'static str, entries: u64, form: ScriptForm) -> Self {
        self.expect_of_the_grant(label, Lua::ReentrantLeave, form, entries)
    }

    /// One token for all entries.
    fn expect_of_the_grant(self, label: &'static str, script: Lua, form: ScriptForm, number: u64) -> Self {
        self.expect_run(label, script, Some("take"), form, [number, 0])
    }

    fn expect_unawaited_release_of(self, label: &'static str, entries: u64) -> Self {
        self.expect_unguarded_run(
            label,
            Lua::ReentrantLeave,
            Some("take"),
            ScriptForm::Source,
            [entries, 0],
        )
    }
}

#[test]
fn each_entry_renews_the_lease_and_each_release_leaves_one() {
    entered()
        .at(1_200)
        .release()
        .expect_leaving("inner", 1, ScriptForm::Sha)
        .reply("inner", Reply::Int(1))
        .expect_held_until(1_000 + BELIEF_MS)
        .release()
        .expect_leaving("outer", 1, ScriptForm::Sha)
        .reply("outer", Reply::Int(0))
        .expect(Outcome::Released)
        .expect_attempts(1);
}

#[test]
fn the_next_grant_begins_with_one_entry() {
    entered()
        .cancel()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("all", Reply::Int(0))
        .expect(Outcome::Released)
        .at(2_000)
        .acquire()
        .expect_run("next", Lua::ReentrantTake, None, ScriptForm::Sha, [LEASE_MS, 0])
        .reply("next", Reply::Int(1))
        .expect_held_until(2_000 + BELIEF_MS)
        .release()
        .expect_run("back", Lua::ReentrantLeave, Some("next"), ScriptForm::Sha, [1, 0])
        .reply("back", Reply::Int(0))
        .expect(Outcome::Released);
}

#[test]
fn counted_by_the_client_an_entry_costs_no_command() {
    let held = || {
        script(Count::Local)
            .acquire()
            .expect_set("set")
            .at(5)
            .reply("set", Reply::Ok)
            .expect_held_until(BELIEF_MS)
            .at(1_000)
            .enter()
            .expect_held_until(BELIEF_MS)
    };
    held()
        .release()
        .expect_held_until(BELIEF_MS)
        .release()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    held()
        .cancel()
        .expect_release("back", "set", ScriptForm::Sha)
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn after_the_lease_nothing_is_entered_and_a_release_ends_all_entries() {
    entered()
        .at(1_000 + BELIEF_MS)
        .enter()
        .expect(Outcome::Refused(Refusal::TooLate))
        .release()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("all", Reply::Nil)
        .expect(Outcome::Expired);
    script(Count::Local)
        .acquire()
        .expect_set("set")
        .reply("set", Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .enter()
        .expect_held_until(BELIEF_MS)
        .at(BELIEF_MS)
        .enter()
        .expect(Outcome::Refused(Refusal::TooLate))
        .release()
        .expect_release("all", "set", ScriptForm::Sha)
        .reply("all", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn an_entry_that_finds_the_lock_gone_ends_belief() {
    entering()
        .reply("enter", Reply::Nil)
        .expect_lapsed()
        .expect(Outcome::Refused(Refusal::TooLate))
        .enter()
        .expect(Outcome::Refused(Refusal::TooLate))
        .release()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("all", Reply::Nil)
        .expect(Outcome::Expired);
}

#[test]
fn an_entry_that_gets_its_reply_after_the_lease_revives_nothing() {
    held()
        .at(BELIEF_MS - 1)
        .enter()
        .expect_entering("enter", ScriptForm::Sha)
        .at(BELIEF_MS)
        .reply("enter", Reply::Int(2))
        .expect(Outcome::Refused(Refusal::TooLate))
        .release()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("all", Reply::Int(0))
        .expect(Outcome::Released);
}

#[test]
fn an_entry_that_the_server_did_not_know_is_not_sent_again_after_the_lease() {
    held()
        .at(BELIEF_MS - 1)
        .enter()
        .expect_entering("enter", ScriptForm::Sha)
        .at(BELIEF_MS)
        .reply("enter", Reply::Error(ErrorKind::NoScript))
        .expect(Outcome::Refused(Refusal::TooLate))
        .release()
        .expect_leaving("all", 1, ScriptForm::Sha)
        .reply("all", Reply::Nil)
        .expect(Outcome::Expired);
}

#[test]
fn an_entry_without_a_reply_is_released_with_the_others() {
    for lost in [false, true] {
        let unknown = if lost {
            entering().lose("enter")
        } else {
            entering()
                .at(1_500)
                .wake()
                .expect_pause(REPLY_TIMEOUT_MS - 500..=REPLY_TIMEOUT_MS - 500)
                .sleep()
        };
        unknown
            .expect(Outcome::Unknown)
            .reply("enter", Reply::Int(2))
            .expect_nothing()
            .release()
            .expect_leaving("all", 2, ScriptForm::Sha)
            .reply("all", Reply::Int(0))
            .expect(Outcome::Released);
    }
}

#[test]
fn an_entry_that_fails_leaves_the_others_as_they_were() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, Unexpected, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth] {
        entering()
            .reply("enter", Reply::Error(kind))
            .expect(Outcome::Failed(kind))
            .release()
            .expect_leaving("back", 1, ScriptForm::Sha);
    }
    for kind in [Other, Unexpected] {
        entering()
            .reply("enter", Reply::Error(kind))
            .expect(Outcome::Failed(kind))
            .release()
            .expect_leaving("back", 2, ScriptForm::Sha);
    }
    for reply in [Reply::Ok, Reply::Int(1), Reply::Int(0), Reply::Items, Reply::Other] {
        entering()
            .reply("enter", reply)
            .expect(Outcome::Failed(ErrorKind::Unexpected))
            .release()
            .expect_leaving("back", 2, ScriptForm::Sha);
    }
}

#[test]
fn scripts_that_the_server_does_not_know_are_sent_as_source() {
    entering()
        .at(1_020)
        .reply("enter", Reply::Error(ErrorKind::NoScript))
        .expect_entering("enter as source", ScriptForm::Source)
        .reply("enter as source", Reply::Int(2))
        .expect_held_until(1_020 + BELIEF_MS)
        .release()
        .expect_leaving("inner", 1, ScriptForm::Sha)
        .reply("inner", Reply::Error(ErrorKind::NoScript))
        .expect_leaving("inner as source", 1, ScriptForm::Source)
        .reply("inner as source", Reply::Int(1))
        .expect_held_until(1_020 + BELIEF_MS)
        .release()
        .expect_leaving("outer", 1, ScriptForm::Sha)
        .reply("outer", Reply::Error(ErrorKind::NoScript))
        .expect_leaving("outer as source", 1, ScriptForm::Source)
        .reply("outer as source", Reply::Int(0))
        .expect(Outcome::Released);
}

#[test]
fn a_release_that_finds_the_lock_gone_ends_all_entries() {
    entered()
        .release()
        .expect_leaving("inner", 1, ScriptForm::Sha)
        .reply("inner", Reply::Nil)
        .expect(Outcome::Expired)
        .at(3_000)
        .acquire()
        .expect_run("next", Lua::ReentrantTake, None, ScriptForm::Sha, [LEASE_MS, 0]);
}

#[test]
fn an_inner_release_that_fails_ends_all_entries() {
    let leaving = || entered().release().expect_leaving("inner", 1, ScriptForm::Sha);
    leaving()
        .lose("inner")
        .expect_unawaited_release_of("all", 2)
        .expect(Outcome::Unknown);
    leaving()
        .sleep()
        .expect_unawaited_release_of("all", 2)
        .expect(Outcome::Unknown);
    leaving()
        .reply("inner", Reply::Error(ErrorKind::ReadOnly))
        .expect_unawaited_release_of("all", 2)
        .expect(Outcome::Failed(ErrorKind::ReadOnly));
    for reply in [Reply::Int(0), Reply::Int(-1), Reply::Ok] {
        leaving()
            .reply("inner", reply)
            .expect_unawaited_release_of("all", 2)
            .expect(Outcome::Failed(ErrorKind::Unexpected));
    }
}

#[test]
fn an_inner_release_that_gets_its_reply_after_the_lease_releases_all() {
    entered()
        .release()
        .expect_leaving("inner", 1, ScriptForm::Sha)
        .at(1_000 + BELIEF_MS)
        .reply("inner", Reply::Int(1))
        .expect_unawaited_release_of("all", 1)
        .expect(Outcome::Expired);
}

#[test]
fn a_cancel_releases_all_entries_whatever_is_under_way() {
    entering()
        .cancel()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("enter", Reply::Int(2))
        .expect_nothing()
        .reply("all", Reply::Int(0))
        .expect(Outcome::Released);
    entered()
        .release()
        .expect_leaving("inner", 1, ScriptForm::Sha)
        .cancel()
        .expect_leaving("all", 2, ScriptForm::Sha)
        .reply("inner", Reply::Int(1))
        .expect_nothing()
        .reply("all", Reply::Int(0))
        .expect(Outcome::Released);
}
