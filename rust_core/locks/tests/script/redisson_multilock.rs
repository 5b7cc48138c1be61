//! `redisson-multilock`: the keys in the given order, none may fail, and every lease is renewed at the end.

use locks::{ArgValue, Command, ErrorKind, Key, KeyList, Outcome, Refusal, Reply, ScriptForm, Spec};

use crate::servers::{over, strategy};
use crate::words::{BELIEF_MS, LEASE_MS, Script, every_10_ms, lease, one_attempt};

use ScriptForm::{Sha, Source};

/// A key of server 0.
const FIRST: Key = Key(8);
/// A key of server 1.
const SECOND: Key = Key(3);
/// The lease of a child while the others are collected: twice 30 ms for each of two.
const COLLECTING_MS: u64 = 120;

/// Two keys on two servers, and a wait budget of 30 ms for each.
fn acquiring(spec: Spec) -> Script {
    let strategy = strategy("redisson-multilock", &[("wait_budget_ms", ArgValue::Int(30))]);
    let keys = KeyList::new(&[FIRST, SECOND, FIRST]).expect("few keys");
    crate::words::script(strategy, over(2, spec)).acquire_all(keys)
}

impl Script {
    fn expect_key(self, label: &'static str, server: u16, key: Key, of: &str, lease_ms: u64) -> Self {
        let token = self.token(of);
        let set = Command::SetNxPx { key, token, lease_ms };
        self.expect_on(label, server, set).expect_guard()
    }

    fn expect_key_back(self, label: &'static str, server: u16, key: Key, of: &str, form: ScriptForm) -> Self {
        let token = self.token(of);
        self.expect_on(label, server, Command::CompareAndDelete { key, token, form })
    }

    /// The renewals of both keys, `r0` and `r1`.
    fn expect_renewals(self, of: &str) -> Self {
        self.expect_renewals_for(of, LEASE_MS)
    }

    fn expect_renewals_for(mut self, of: &str, lease_ms: u64) -> Self {
        for (server, label, key) in [(0, "r0", FIRST), (1, "r1", SECOND)] {
            let renew = Command::Run {
                script: locks::Script::CompareAndExpire,
                form: Sha,
                key,
                token: self.token(of),
                numbers: [lease_ms, 0],
            };
            self = self.expect_on(label, server, renew);
        }
        self.expect_guard()
    }

    /// The releases of both keys, with these labels.
    fn expect_both_back(self, of: &str, labels: [&'static str; 2]) -> Self {
        self.expect_key_back(labels[0], 0, FIRST, of, Sha)
            .expect_key_back(labels[1], 1, SECOND, of, Sha)
            .expect_guard()
    }
}

/// Both taken at 5 ms, and their renewals sent.
fn renewing(spec: Spec) -> Script {
    acquiring(spec)
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Ok)
        .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
        .at(5)
        .reply("a1", Reply::Ok)
        .expect_renewals("a0")
}

fn held() -> Script {
    renewing(every_10_ms())
        .at(7)
        .replies(&["r0", "r1"], Reply::Int(1))
        .expect_held_until(5 + BELIEF_MS)
}

#[test]
fn the_keys_are_taken_in_the_order_given_and_every_lease_is_renewed_at_the_end() {
    held()
        .at(50)
        .release()
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_key_is_looked_for_on_its_own_server_whoever_names_it_and_where() {
    let strategy = strategy("redisson-multilock", &[]);
    for (keys, server) in [([FIRST, SECOND], 0), ([SECOND, FIRST], 1)] {
        let first = keys[0];
        crate::words::script(strategy, over(2, one_attempt()))
            .acquire_all(KeyList::new(&keys).expect("few keys"))
            .expect_set_on("a0", server, first, None)
            .expect_guard()
            .reply("a0", Reply::Nil)
            .expect(Outcome::Refused(Refusal::Busy));
    }
}

#[test]
fn a_release_is_as_good_as_its_worst_child() {
    let releasing = || {
        held()
            .release()
            .expect_both_back("a0", ["b0", "b1"])
            .reply("b0", Reply::Int(1))
            .expect_nothing()
    };
    releasing().reply("b1", Reply::Int(0)).expect(Outcome::Expired);
    releasing().lose("b1").expect(Outcome::Unknown);
    releasing().sleep().expect(Outcome::Unknown);
    releasing()
        .reply("b1", Reply::Error(ErrorKind::ReadOnly))
        .expect(Outcome::Failed(ErrorKind::ReadOnly));
}

#[test]
fn a_lease_that_could_not_be_renewed_is_no_grant() {
    renewing(one_attempt_that_waits())
        .reply("r0", Reply::Int(1))
        .expect_nothing()
        .reply("r1", Reply::Int(0))
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
    renewing(every_10_ms())
        .reply("r0", Reply::Int(1))
        .expect_nothing()
        .lose("r1")
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Unknown);
    renewing(every_10_ms())
        .at(500)
        .reply("r0", Reply::Error(ErrorKind::Loading))
        .expect_nothing()
        .reply("r1", Reply::Int(1))
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Failed(ErrorKind::Loading));
}

#[test]
fn a_renewed_lease_counts_from_before_its_send() {
    let spec = Spec {
        lease: lease(100),
        ..one_attempt_that_waits()
    };
    let renewing = || {
        acquiring(spec)
            .expect_set_on("a0", 0, FIRST, None)
            .expect_guard()
            .reply("a0", Reply::Ok)
            .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
            .at(5)
            .reply("a1", Reply::Ok)
            .expect_renewals_for("a0", 100)
            .reply("r0", Reply::Int(1))
            .expect_nothing()
    };
    renewing().at(101).reply("r1", Reply::Int(1)).expect_held_until(5 + 97);
    renewing()
        .at(102)
        .reply("r1", Reply::Int(1))
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
}

fn one_attempt_that_waits() -> Spec {
    let mut spec = every_10_ms();
    spec.retry.max_attempts = Some(1);
    spec
}

#[test]
fn in_a_circular_wait_the_budget_ends_and_all_is_released_and_started_again() {
    acquiring(every_10_ms())
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Ok)
        .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
        .reply("a1", Reply::Nil)
        .expect_pause(0..=10)
        // The other client holds it, and waits for ours.
        .at(55)
        .wake()
        .expect_key("again", 1, SECOND, "a0", COLLECTING_MS)
        .reply("again", Reply::Nil)
        .expect_pause(5..=5)
        .sleep()
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        .expect_set_on("c0", 0, FIRST, None)
        .expect_guard()
        .expect_attempts(2)
        // A new budget of 60 ms.
        .reply("c0", Reply::Nil)
        .expect_pause(0..=10)
        .at(118)
        .wake()
        .expect_key("c0 again", 0, FIRST, "c0", COLLECTING_MS)
        .reply("c0 again", Reply::Ok)
        .expect_key("c1", 1, SECOND, "c0", COLLECTING_MS)
        // Taken, but the budget has ended.
        .at(121)
        .reply("c1", Reply::Ok)
        .expect_both_back("c0", ["d0", "d1"])
        .replies(&["d0", "d1"], Reply::Int(1))
        .expect_set_on("e0", 0, FIRST, None)
        .expect_guard();
}

#[test]
fn the_longest_wait_of_the_policy_ends_it() {
    let mut spec = every_10_ms();
    spec.retry.max_wait = locks::Nanos::from_millis(40);
    acquiring(spec)
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Ok)
        .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
        .at(38)
        .reply("a1", Reply::Nil)
        .expect_pause(0..=2)
        .at(40)
        .wake()
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TimedOut));
}

#[test]
fn without_retry_nothing_waits() {
    acquiring(one_attempt())
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Ok)
        .expect_key("a1", 1, SECOND, "a0", LEASE_MS)
        .reply("a1", Reply::Nil)
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_silent_or_erring_child_ends_the_request_after_releasing() {
    let second = || {
        acquiring(every_10_ms())
            .expect_set_on("a0", 0, FIRST, None)
            .expect_guard()
            .reply("a0", Reply::Ok)
            .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
    };
    second()
        .lose("a1")
        .expect_key_back("word", 1, SECOND, "a0", Source)
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Unknown);
    second()
        .reply("a1", Reply::Error(ErrorKind::OutOfMemory))
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .sleep()
        .expect(Outcome::Failed(ErrorKind::OutOfMemory));
    second()
        .reply("a1", Reply::Int(7))
        .expect_key_back("word", 1, SECOND, "a0", Source)
        .expect_key_back("b0", 0, FIRST, "a0", Sha)
        .expect_guard()
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Failed(ErrorKind::Unexpected));
}

#[test]
fn a_cancel_releases_what_was_taken_or_may_be() {
    acquiring(every_10_ms())
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Ok)
        .expect_key("a1", 1, SECOND, "a0", COLLECTING_MS)
        .cancel()
        .expect_both_back("a0", ["b0", "b1"])
        .reply("a1", Reply::Nil)
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .reply("b1", Reply::Int(0))
        .expect(Outcome::Released);
    acquiring(every_10_ms())
        .expect_set_on("a0", 0, FIRST, None)
        .expect_guard()
        .reply("a0", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released);
    renewing(every_10_ms())
        .cancel()
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["r0", "r1"], Reply::Int(1))
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .lose("b1")
        .expect(Outcome::Unknown);
    held()
        .cancel()
        .expect_both_back("a0", ["b0", "b1"])
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Released);
}
