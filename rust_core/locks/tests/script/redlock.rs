//! `redlock`, acquiring: what libraries get wrong, and what each server may do.

use locks::{ArgValue, ErrorKind, Nanos, Outcome, Refusal, Reply, ScriptForm, Spec, SpecError, Strategy};

use crate::servers::{NODE_TIMEOUT_MS, on, over, strategy, with_lease};
use crate::words::{BELIEF_MS, Script, every_10_ms, one_attempt};

use ScriptForm::{Sha, Source};

const LOADING: Reply = Reply::Error(ErrorKind::Loading);

/// Asked at 0 on three servers: `a0`, `a1`, `a2`.
pub(crate) fn asking(spec: Spec) -> Script {
    on(3, "redlock", spec).acquire().expect_sets(&["a0", "a1", "a2"])
}

#[test]
fn every_server_is_asked_before_any_has_replied_and_a_quorum_is_enough() {
    on(5, "redlock", one_attempt())
        .acquire()
        .expect_sets(&["a0", "a1", "a2", "a3", "a4"])
        .at(1)
        .replies(&["a4", "a0", "a2"], Reply::Ok)
        .expect_held_until(BELIEF_MS)
        .reply("a1", Reply::Ok)
        .expect_nothing()
        .expect_attempts(1)
        .expect_no_quorum_attempts(0);
}

#[test]
fn the_lease_counts_from_before_the_first_send() {
    on(3, "redlock", one_attempt())
        .at(100)
        .acquire()
        .expect_sets(&["a0", "a1", "a2"])
        .at(140)
        .replies(&["a0", "a1"], Reply::Ok)
        .expect_held_until(100 + BELIEF_MS);
}

#[test]
fn what_is_left_of_the_lease_is_asked_at_the_moment_of_the_return() {
    // 100 ms less 1 % and 2 ms: believed until 97 ms.
    let asked = || {
        on(3, "redlock", with_lease(100, one_attempt()))
            .acquire()
            .expect_sets_within(&["a0", "a1", "a2"], 10)
            .at(1)
            .reply("a0", Reply::Ok)
            .expect_nothing()
    };
    asked().at(96).reply("a1", Reply::Ok).expect_held_until(97);
    asked()
        .at(97)
        .reply("a1", Reply::Ok)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_wake_after(10)
        .replies(&["b0", "b1"], Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
}

#[test]
fn one_dead_server_of_three_is_invisible_to_the_caller() {
    let held = || {
        asking(one_attempt())
            .at(2)
            .replies(&["a0", "a2"], Reply::Ok)
            .expect_held_until(BELIEF_MS)
    };
    held()
        .lose("a1")
        .expect_nothing()
        .at(500)
        .release()
        .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Sha)])
        .expect_guard()
        .replies(&["b0", "b2"], Reply::Int(1))
        .expect(Outcome::Released);
    // A refusal is not slower either.
    asking(every_10_ms())
        .at(2)
        .replies(&["a0", "a2"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Sha)])
        .expect_pause(0..=10);
}

#[test]
fn an_attempt_without_quorum_of_an_even_number_is_settled_at_once_and_counted() {
    on(4, "redlock", every_10_ms())
        .acquire()
        .expect_sets(&["a0", "a1", "a2", "a3"])
        .replies(&["a0", "a1"], Reply::Ok)
        .expect_nothing()
        .replies(&["a2", "a3"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha), ("b3", Sha)])
        .expect_wake_after(NODE_TIMEOUT_MS)
        .replies(&["b2", "b3", "b0"], Reply::Int(1))
        .expect_nothing()
        .reply("b1", Reply::Int(1))
        .expect_pause(0..=10)
        .expect_no_quorum_attempts(1)
        .sleep()
        .expect_sets(&["c0", "c1", "c2", "c3"])
        .expect_attempts(2)
        .expect_no_quorum_attempts(1)
        .reply("c0", Reply::Ok)
        .expect_nothing()
        .replies(&["c1", "c2"], Reply::Nil)
        .expect_deletes("c0", &[("d0", Sha), ("d1", Sha), ("d2", Sha), ("d3", Source)])
        .expect_wake_after(NODE_TIMEOUT_MS)
        .reply("d0", Reply::Int(1))
        .expect_pause(10..=10)
        .expect_no_quorum_attempts(2);
    // Two servers: both are a quorum.
    on(2, "redlock", one_attempt())
        .acquire()
        .expect_sets(&["a0", "a1"])
        .reply("a1", Reply::Nil)
        .expect_deletes("a0", &[("b0", Source), ("b1", Sha)])
        .expect(Outcome::Refused(Refusal::Busy))
        // Only now is it known that this client had the other half.
        .reply("a0", Reply::Ok)
        .reply("b0", Reply::Int(1))
        .expect_nothing();
}

#[test]
fn an_attempt_without_quorum_is_one_that_others_kept_from_a_quorum_and_that_got_something() {
    // No server granted: another client has it.
    asking(every_10_ms())
        .replies(&["a0", "a1"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_pause(0..=10)
        .expect_no_quorum_attempts(0)
        // The last reply shows that one server granted; the attempt counts once, however often replies come.
        .reply("a2", Reply::Ok)
        .expect_nothing()
        .reply("a2", Reply::Ok)
        .expect_nothing()
        .expect_no_quorum_attempts(1);
    // Missing replies, not other clients, prevented the quorum.
    asking(one_attempt())
        .reply("a0", Reply::Ok)
        .expect_nothing()
        .reply("a1", Reply::Nil)
        .expect_nothing()
        .sleep()
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_wake_after(NODE_TIMEOUT_MS)
        .reply("b0", Reply::Int(1))
        .expect(Outcome::Unknown)
        .expect_no_quorum_attempts(0);
}

#[test]
fn each_attempt_brings_a_token_and_calls_of_its_own_and_old_replies_do_not_count() {
    asking(every_10_ms())
        .replies(&["a0", "a1"], Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
        .expect_pause(0..=10)
        .sleep()
        .expect_sets(&["c0", "c1", "c2"])
        .replies(&["a0", "a1", "a2"], Reply::Ok)
        .expect_nothing()
        .replies(&["b0", "b1", "b2"], Reply::Int(1))
        .expect_nothing()
        .at(20)
        .reply("c0", Reply::Ok)
        .expect_nothing()
        .reply("c0", Reply::Ok)
        .lose("a1")
        .expect_nothing();
}

#[test]
fn a_refusal_releases_what_was_granted_before_the_next_attempt() {
    let refused = || {
        on(5, "redlock", every_10_ms())
            .acquire()
            .expect_sets(&["a0", "a1", "a2", "a3", "a4"])
            .reply("a0", Reply::Ok)
            .expect_nothing()
            .replies(&["a1", "a2", "a3"], Reply::Nil)
            // The last server has not replied: what it may take is released behind it.
            .expect_deletes(
                "a0",
                &[("b0", Sha), ("b1", Sha), ("b2", Sha), ("b3", Sha), ("b4", Source)],
            )
            .expect_wake_after(NODE_TIMEOUT_MS)
    };
    // Neither the servers that refused nor the silent one are waited for.
    refused().reply("b0", Reply::Int(1)).expect_pause(0..=10);
    refused().reply("b0", Reply::Int(0)).expect_pause(0..=10);
    // It granted after all; then its release is awaited too.
    refused()
        .reply("a4", Reply::Ok)
        .expect_nothing()
        .reply("b0", Reply::Int(1))
        .expect_nothing()
        .reply("b4", Reply::Int(1))
        .expect_pause(0..=10)
        .expect_no_quorum_attempts(1);
    // It died with the grant: awaited no longer than the node timeout, and one of five is no quorum.
    refused().lose("b0").expect_pause(0..=10);
    refused().sleep().expect_pause(0..=10);
    refused()
        .reply("b0", Reply::Error(ErrorKind::NoScript))
        .expect_delete_on("again", 0, "a0", Source)
        .reply("again", Reply::Int(1))
        .expect_pause(0..=10);
}

#[test]
fn errors_of_a_minority_are_invisible_and_those_of_more_are_the_outcome() {
    asking(one_attempt())
        .reply("a1", LOADING)
        .expect_nothing()
        .replies(&["a0", "a2"], Reply::Ok)
        .expect_held_until(BELIEF_MS);
    asking(every_10_ms())
        .reply("a2", LOADING)
        .expect_nothing()
        .reply("a0", Reply::Ok)
        .expect_nothing()
        .reply("a1", Reply::Error(ErrorKind::ReadOnly))
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Sha)])
        .expect(Outcome::Failed(ErrorKind::ReadOnly))
        // Nobody waits for it, but it is still carried out.
        .reply("b0", Reply::Error(ErrorKind::NoScript))
        .expect_delete_on("again", 0, "a0", Source);
    for odd in [Reply::Int(1), Reply::Other, Reply::Error(ErrorKind::NoScript)] {
        asking(every_10_ms())
            .replies(&["a0", "a1"], odd)
            .expect_deletes("a0", &[("b0", Sha), ("b1", Sha), ("b2", Source)])
            .expect(Outcome::Failed(match odd {
                Reply::Error(kind) => kind,
                _ => ErrorKind::Unexpected,
            }));
    }
}

#[test]
fn the_node_timeout_is_far_below_the_lease_and_capped() {
    let timeouts = [(3, 1), (10, 1), (100, 10), (499, 49), (500, 50), (1 << 53, 50)];
    for (lease, timeout) in timeouts {
        on(3, "redlock", with_lease(lease, one_attempt()))
            .acquire()
            .expect_sets_within(&["a0", "a1", "a2"], timeout);
    }
    let given = |ms| strategy("redlock", &[("node_timeout_ms", ArgValue::Int(ms))]);
    // It is never longer than the reply timeout.
    for (ms, timeout) in [(7, 7), (5_000, 1_000)] {
        crate::words::script(given(ms), over(3, one_attempt()))
            .acquire()
            .expect_sets_within(&["a0", "a1", "a2"], timeout);
    }
}

#[test]
fn a_lease_of_3_ms_works_and_a_shorter_one_is_refused_beforehand() {
    let asked = || {
        on(3, "redlock", with_lease(3, one_attempt()))
            .acquire()
            .expect_sets_within(&["a0", "a1", "a2"], 1)
            .reply("a0", Reply::Ok)
            .expect_nothing()
    };
    let until = Nanos::from_micros(970);
    asked().reply("a2", Reply::Ok).expect(Outcome::Held {
        lasts: locks::Lasts::Until(until),
        fence: None,
    });
    asked()
        .at(1)
        .reply("a2", Reply::Ok)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Source), ("b2", Sha)])
        .expect_wake_after(1)
        .replies(&["b0", "b2"], Reply::Int(1))
        .expect(Outcome::Refused(Refusal::TooLate));
    for name in ["redlock", "multilock"] {
        for (ms, good) in [(1, false), (2, false), (3, true)] {
            let most_drift = strategy(name, &[("drift_factor", ArgValue::Float(0.1))]);
            let checked = most_drift.check(&over(5, with_lease(ms, one_attempt())));
            assert_eq!(checked.is_ok(), good, "{name}: {ms} ms");
        }
    }
}

#[test]
fn the_clock_skew_margin_can_be_another() {
    let strategy = strategy("redlock", &[("drift_factor", ArgValue::Float(0.05))]);
    crate::words::script(strategy, over(1, one_attempt()))
        .acquire()
        .expect_sets(&["a0"])
        .reply("a0", Reply::Ok)
        .expect_held_until(10_000 - 500 - 2);
}

#[test]
fn one_after_another_asks_all_servers_and_goes_on_after_a_node_timeout() {
    let sequential = strategy("redlock", &[("fanout", ArgValue::Text("sequential".into()))]);
    let first = || {
        let script = crate::words::script(sequential, over(3, one_attempt()));
        script.acquire().expect_sets(&["a0"])
    };
    let second = |script: Script| {
        let token = script.token("a0");
        let script = script.expect_set_on("a1", 1, crate::words::KEY, Some(token));
        script.expect_wake_after(NODE_TIMEOUT_MS)
    };
    let third = |script: Script| {
        let token = script.token("a0");
        let script = script.expect_set_on("a2", 2, crate::words::KEY, Some(token));
        script.expect_wake_after(NODE_TIMEOUT_MS)
    };
    // Two grants are a quorum; the third server is asked all the same. The lease counts from before the first send.
    let both = third(
        second(first().at(10).reply("a0", Reply::Ok))
            .at(20)
            .reply("a1", Reply::Ok),
    );
    both.at(30).reply("a2", Reply::Nil).expect_held_until(BELIEF_MS);
    // The first server is silent for its 50 ms, and replies later: the reply counts.
    let late = third(second(first().sleep()).reply("a1", Reply::Ok)).reply("a0", Reply::Ok);
    late.expect_nothing().sleep().expect_held_until(BELIEF_MS);
    // Two refusals: the third server is not asked, and gets no release.
    second(first().reply("a0", Reply::Nil))
        .reply("a1", Reply::Nil)
        .expect_deletes("a0", &[("b0", Sha), ("b1", Sha)])
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn the_arguments_have_bounds_and_the_servers_are_counted() {
    let named = |argument: &str, value| Strategy::named("redlock", &[(argument.to_owned(), value)]);
    for nodes in [0, 33, -1] {
        let refused = named("nodes", ArgValue::Int(nodes)).expect_err("out of range");
        let message = "the `nodes` of `redlock` must be a whole number from 1 to 32";
        assert_eq!(refused.to_string(), message);
    }
    assert!(named("drift_factor", ArgValue::Float(0.11)).is_err());
    assert!(named("drift_factor", ArgValue::Float(f64::NAN)).is_err());
    assert!(named("fanout", ArgValue::Text("both".into())).is_err());
    for name in ["redlock", "multilock", "redisson-redlock", "redisson-multilock"] {
        let four = strategy(name, &[("nodes", ArgValue::Int(4))]);
        assert_eq!(four.nodes(), Some(4));
        assert_eq!(four.check(&over(4, one_attempt())), Ok(()));
        let refused = four.check(&over(3, one_attempt())).expect_err("three are not four");
        assert!(matches!(refused, SpecError::OtherServers { .. }));
        let message = format!("`{name}` needs 4 servers, and was given 3");
        assert_eq!(refused.to_string(), message);
    }
}
