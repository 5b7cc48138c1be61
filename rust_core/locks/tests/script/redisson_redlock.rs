//! `redisson-redlock`: a majority of children in order, and no check at the end.

use locks::{ArgValue, Command, ErrorKind, Outcome, Refusal, Reply, ScriptForm, Spec};

use crate::servers::{over, strategy, with_lease};
use crate::words::{KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, one_attempt};

use ScriptForm::{Sha, Source};

/// Three servers, and a wait budget of 30 ms for each.
fn script(spec: Spec) -> Script {
    let strategy = strategy("redisson-redlock", &[("wait_budget_ms", ArgValue::Int(30))]);
    crate::words::script(strategy, over(3, spec))
}

impl Script {
    /// The `SET` of a child, of the pass that began with the one labelled `of`.
    fn expect_child(self, label: &'static str, server: u16, of: &str, lease_ms: u64) -> Self {
        let (key, token) = (KEY, self.token(of));
        let set = Command::SetNxPx { key, token, lease_ms };
        self.expect_on(label, server, set).expect_guard()
    }

    fn expect_first_child(self, label: &'static str) -> Self {
        self.expect_set_on(label, 0, KEY, None).expect_guard()
    }

    fn expect_renew(self, label: &'static str, server: u16, of: &str, form: ScriptForm) -> Self {
        self.expect_renew_for(label, server, of, form, LEASE_MS)
    }

    fn expect_renew_for(self, label: &'static str, server: u16, of: &str, form: ScriptForm, lease_ms: u64) -> Self {
        let renew = Command::Run {
            script: locks::Script::CompareAndExpire,
            form,
            key: KEY,
            token: self.token(of),
            numbers: [lease_ms, 0],
        };
        self.expect_on(label, server, renew)
    }
}

#[test]
fn the_children_are_taken_in_order_for_twice_the_budget_and_each_lease_is_renewed() {
    script(every_10_ms())
        .acquire()
        .expect_first_child("a0")
        .at(1)
        .reply("a0", Reply::Ok)
        .expect_child("a1", 1, "a0", 2 * 90)
        .reply("a1", Reply::Ok)
        .expect_child("a2", 2, "a0", 2 * 90)
        .reply("a2", Reply::Ok)
        .expect_renew("r0", 0, "a0", Sha)
        .expect_renew("r1", 1, "a0", Sha)
        .expect_renew("r2", 2, "a0", Sha)
        .expect_guard()
        .reply("r1", Reply::Error(ErrorKind::NoScript))
        .expect_renew("again", 1, "a0", Source)
        .replies(&["r0", "r2"], Reply::Int(1))
        .expect_nothing()
        .at(20)
        .reply("again", Reply::Int(1))
        .expect_held_until(20 + LEASE_MS)
        .expect_attempts(1);
}

#[test]
fn an_expired_lock_is_returned_since_nobody_looks() {
    // Nothing waits, so each child has the lease itself, and no time is checked: the second server takes longer to
    // reply than the first child's lease.
    script(with_lease(100, one_attempt()))
        .acquire()
        .expect_set_on("a0", 0, KEY, None)
        .expect_guard()
        .at(1)
        .reply("a0", Reply::Ok)
        .expect_child("a1", 1, "a0", 100)
        .at(900)
        .reply("a1", Reply::Ok)
        .expect_child("a2", 2, "a0", 100)
        .reply("a2", Reply::Nil)
        .expect_renew_for("r0", 0, "a0", Sha, 100)
        .expect_renew_for("r1", 1, "a0", Sha, 100)
        .expect_guard()
        // Both reply that there is nothing to renew.
        .reply("r0", Reply::Int(0))
        .expect_nothing()
        .at(950)
        .lose("r1")
        .expect_held_until(950 + 100);
}

#[test]
fn a_minority_may_fail_and_a_silent_child_is_released_behind() {
    script(one_attempt())
        .acquire()
        .expect_first_child("a0")
        .sleep()
        .expect_delete_on("b0", 0, "a0", Source)
        .expect_child("a1", 1, "a0", LEASE_MS)
        .reply("a1", Reply::Ok)
        .expect_child("a2", 2, "a0", LEASE_MS)
        .reply("a2", Reply::Ok)
        .expect_renew("r1", 1, "a0", Sha)
        .expect_renew("r2", 2, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(0))
        .expect_nothing()
        .replies(&["r1", "r2"], Reply::Int(1))
        .expect_held_until(REPLY_TIMEOUT_MS + LEASE_MS);
}

#[test]
fn a_child_is_waited_for_by_its_part_of_the_budget() {
    script(every_10_ms())
        .acquire()
        .expect_first_child("a0")
        .reply("a0", Reply::Nil)
        .expect_pause(0..=10)
        .at(25)
        .wake()
        .expect_child("again", 0, "a0", 180)
        .reply("again", Reply::Nil)
        // Not until 35 ms, which the retry policy would choose.
        .expect_pause(5..=5)
        .sleep()
        .expect_child("a1", 1, "a0", 180)
        .reply("a1", Reply::Error(ErrorKind::Loading))
        // One may fail, not two; and after an error the child is not asked again at once.
        .expect(Outcome::Failed(ErrorKind::Loading));
}

#[test]
fn too_many_that_are_busy_are_released_and_tried_again_until_the_policy_ends() {
    let mut spec = every_10_ms();
    spec.retry.max_attempts = Some(2);
    script(spec)
        .acquire()
        .expect_first_child("a0")
        .reply("a0", Reply::Ok)
        .expect_child("a1", 1, "a0", 180)
        .reply("a1", Reply::Nil)
        .expect_pause(0..=10)
        .lapse(30)
        .expect_child("a2", 2, "a0", 180)
        .reply("a2", Reply::Nil)
        .expect_pause(0..=10)
        .lapse(30)
        .expect_delete_on("b0", 0, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        // Within the same 90 ms.
        .expect_set_on("c0", 0, KEY, None)
        .expect_guard()
        .expect_attempts(2)
        .reply("c0", Reply::Ok)
        .expect_child("c1", 1, "c0", 180)
        .reply("c1", Reply::Nil)
        .expect_pause(0..=10)
        // The 90 ms are over; the third child is not asked.
        .lapse(30)
        .expect_delete_on("d0", 0, "c0", Sha)
        .expect_guard()
        .reply("d0", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::Busy));
}

impl Script {
    /// A wake-up this much later.
    fn lapse(self, ms: u64) -> Self {
        let now = self.now().0 / 1_000_000;
        self.at(now + ms).wake()
    }
}

#[test]
fn a_release_goes_to_all_children_and_waits_for_all_replies() {
    let releasing = || {
        script(one_attempt())
            .acquire()
            .expect_first_child("a0")
            .reply("a0", Reply::Ok)
            .expect_child("a1", 1, "a0", LEASE_MS)
            .reply("a1", Reply::Ok)
            .expect_child("a2", 2, "a0", LEASE_MS)
            .reply("a2", Reply::Ok)
            .expect_renew("r0", 0, "a0", Sha)
            .expect_renew("r1", 1, "a0", Sha)
            .expect_renew("r2", 2, "a0", Sha)
            .expect_guard()
            .replies(&["r0", "r1", "r2"], Reply::Int(1))
            .expect_held_until(LEASE_MS)
            .release()
            .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha)])
            .expect_guard()
            .replies(&["b0", "b1"], Reply::Int(1))
            .expect_nothing()
    };
    releasing().reply("b2", Reply::Int(1)).expect(Outcome::Released);
    releasing().sleep().expect(Outcome::Released);
    releasing()
        .reply("b2", Reply::Error(ErrorKind::NoScript))
        .expect_delete_on("again", 2, "a0", Source)
        .cancel()
        .expect_nothing()
        .lose("again")
        .expect(Outcome::Released);
}
