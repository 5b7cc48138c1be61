//! Properties of the quorum locks: they hold whatever happens, in whatever order, within the contract of the driver.
//!
//! A driver without knowledge of locks sends arbitrary events to a machine, on up to six servers, and a watcher checks
//! each action: call ids are used once, a grant rests on replies to its own attempt from a quorum of servers or from
//! all children, each release has a token that was sent to its server before, and every request settles once.

#[path = "../support/mod.rs"]
mod support;
mod watcher;

use locks::{Lease, Nanos, Reply, Spec, Strategy as Lock};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use support::{ERRORS, REPLY_TIMEOUT, config, retries};
use watcher::{Ending, Watcher};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `Acquire` when idle, `Release` while held.
    Request(Vec<u32>),
    Cancel,
    /// A reply to any call ever made, answered or not.
    Reply(Index, Reply),
    /// The most successful reply to an open call.
    ReplyWell(Index),
    /// The reply "another client holds it" to an open call.
    ReplyBusy(Index),
    Lose(Index),
    Wake,
    /// Moves to the time that was asked for, and wakes the machine.
    Sleep,
    Pass(Nanos),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reply = prop_oneof![
        4 => select(vec![Reply::Ok, Reply::Nil, Reply::Int(0), Reply::Int(1)]),
        1 => select(vec![Reply::Int(-1), Reply::Int(i64::MAX), Reply::Items, Reply::Other]),
        1 => select(ERRORS.to_vec()).prop_map(Reply::Error),
    ];
    let pass = prop_oneof![0..1_000_000_u64, 0..60_000_000_u64, 0..20_000_000_000_u64].prop_map(Nanos);
    let step = prop_oneof![
        6 => prop::collection::vec(0..3_u32, 1..4).prop_map(Step::Request),
        1 => Just(Step::Cancel),
        3 => (any::<Index>(), reply).prop_map(|(which, reply)| Step::Reply(which, reply)),
        16 => any::<Index>().prop_map(Step::ReplyWell),
        4 => any::<Index>().prop_map(Step::ReplyBusy),
        1 => any::<Index>().prop_map(Step::Lose),
        1 => Just(Step::Wake),
        3 => Just(Step::Sleep),
        4 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..200)
}

fn specs() -> impl Strategy<Value = Spec> {
    let retry = retries(vec![Nanos::ZERO, Nanos::from_millis(30), Nanos::from_millis(100)]);
    (1..=6_u16, select(vec![3, 50, 10_000, 1 << 53]), retry).prop_map(|(servers, lease, retry)| Spec {
        servers,
        lease: Lease::new(lease).expect("a good lease"),
        reply_timeout: REPLY_TIMEOUT,
        retry,
    })
}

fn locks_over_servers() -> Vec<Lock> {
    let mut locks: Vec<Lock> = Lock::ALL
        .into_iter()
        .filter(|lock| lock.nodes().is_some() && lock.database().is_none())
        .collect();
    let sequential = [("fanout".to_owned(), locks::ArgValue::Text("sequential".to_owned()))];
    locks.push(Lock::named("redlock", &sequential).expect("a way to ask"));
    locks
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_each_request_settles_once_and_by_a_quorum_of_its_own_calls(
        strategy in select(locks_over_servers()),
        spec in specs(),
        seed: u64,
        steps in steps(),
        ending in select(vec![Ending::Lost, Ending::Silence]),
    ) {
        let mut watcher = Watcher::new(strategy, spec, seed);
        for step in &steps {
            watcher.step(step);
        }
        watcher.come_to_rest(ending);
    }
}
