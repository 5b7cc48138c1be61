//! Properties of the database locks: they hold whatever happens, in whatever order, within the contract of the driver.
//!
//! As in `properties.rs`: a driver without knowledge of locks sends arbitrary events to a machine, and a watcher checks
//! each action. Session events keep their order: a lost call means that all other calls of the connection are lost too,
//! and that the machine receives `Disconnected`.

mod session;
#[path = "../support/mod.rs"]
mod support;
mod watcher;

use locks::{ErrorKind, Lease, Nanos, Reply, Retry, Scope, SessionOwner, Spec, Strategy as Lock, Wait};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use support::{ERRORS, REPLY_TIMEOUT, config, retries};
use watcher::{Step, Watcher};

fn locks() -> Vec<Lock> {
    let advisory = |scope, wait, session| Lock::PgAdvisory { scope, wait, session };
    vec![
        advisory(Scope::Session, Wait::Block, SessionOwner::ThisClient),
        advisory(Scope::Session, Wait::Try, SessionOwner::ThisClient),
        advisory(Scope::Transaction, Wait::Block, SessionOwner::ThisClient),
        advisory(Scope::Transaction, Wait::Try, SessionOwner::ThisClient),
        advisory(Scope::Session, Wait::Try, SessionOwner::AllClients),
        Lock::PgRow { wait: Wait::Block },
        Lock::PgRow { wait: Wait::Try },
        Lock::PgRow { wait: Wait::SkipLocked },
        Lock::PgOptimistic,
        Lock::PgSerializable,
        Lock::Layered,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let errors = [
        ErrorKind::Serialization,
        ErrorKind::Deadlock,
        ErrorKind::LockNotAvailable,
        ErrorKind::Canceled,
        ErrorKind::InFailedTransaction,
        ErrorKind::SessionEnded,
    ];
    let errors: Vec<ErrorKind> = errors.into_iter().chain(ERRORS).collect();
    let reply = prop_oneof![
        4 => select(vec![Reply::Ok, Reply::Nil, Reply::Int(0), Reply::Int(1), Reply::Int(2)]),
        1 => select(vec![Reply::Int(-1), Reply::Int(i64::MAX), Reply::Items, Reply::Other]),
        3 => select(errors).prop_map(Reply::Error),
    ];
    let pass = prop_oneof![0..3_000_000_u64, 0..200_000_000_u64].prop_map(Nanos);
    let step = prop_oneof![
        6 => (0..3_u32, 1..4_usize, any::<bool>())
            .prop_map(|(key, keys, shared)| Step::Request { key, keys, shared }),
        1 => Just(Step::Cancel),
        4 => (any::<Index>(), reply).prop_map(|(which, reply)| Step::Reply(which, reply)),
        8 => Just(Step::ReplyWell),
        1 => any::<Index>().prop_map(Step::Lose),
        1 => Just(Step::Close),
        1 => Just(Step::Wake),
        4 => Just(Step::Sleep),
        3 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..120)
}

fn specs() -> impl Strategy<Value = Spec> {
    let retry = retries(vec![Nanos::ZERO, Nanos::from_millis(100), Nanos::from_secs(5)]);
    (select(vec![3, 50, 10_000]), retry).prop_map(|(lease, retry)| Spec {
        servers: 1,
        lease: Lease::new(lease).expect("a good lease"),
        reply_timeout: REPLY_TIMEOUT,
        retry,
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_each_request_settles_once_and_leaves_nothing_open(
        spec in specs(),
        seed: u64,
        steps in steps(),
        lost: bool,
    ) {
        for strategy in locks() {
            let mut watcher = Watcher::new(strategy, spec, seed);
            for step in &steps {
                watcher.step(step);
            }
            watcher.come_to_rest(lost);
        }
    }
}

/// The watcher alone would accept a machine that never makes progress.
#[test]
fn each_lock_is_held_and_released_and_lapses_where_it_can() {
    let spec = Spec {
        servers: 1,
        lease: Lease::new(100).expect("a good lease"),
        reply_timeout: REPLY_TIMEOUT,
        retry: Retry::NONE,
    };
    for strategy in locks() {
        let mut watcher = Watcher::new(strategy, spec, 1);
        let (key, keys, shared) = (1, 3, true);
        let request = Step::Request { key, keys, shared };
        watcher.step(&request);
        for _ in 0..3 {
            watcher.step(&Step::ReplyWell);
        }
        assert_eq!(watcher.grants, 1, "{strategy:?}");
        watcher.step(&request);
        watcher.step(&Step::ReplyWell);
        watcher.step(&Step::ReplyWell);
        assert_eq!(watcher.releases, 1, "{strategy:?}");
        watcher.step(&request);
        for _ in 0..3 {
            watcher.step(&Step::ReplyWell);
        }
        watcher.step(&Step::Close);
        let lapses = strategy.holds_by_session() && strategy.owns_connection();
        assert_eq!(watcher.lapses, u32::from(lapses), "{strategy:?}");
        watcher.come_to_rest(false);
    }
}
