//! Properties of the lease locks that do more than take and release: that renew, nest, share, number or confirm. They
//! hold whatever happens, in whatever order, within the contract of the driver.
//!
//! As in `properties.rs`: a driver without knowledge of locks sends arbitrary events to a machine, and a watcher checks
//! each action.

mod answers;
#[path = "../support/mod.rs"]
mod support;
mod watcher;

use locks::{Count, Lease, Millis, Nanos, Prefer, Reply, Retry, Spec, Strategy as Lock};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use support::{ERRORS, REPLY_TIMEOUT, config, retries};
use watcher::{Step, Watcher};

fn locks() -> Vec<Lock> {
    let kept = |renewals_per_ttl, max_hold| Lock::Watchdog {
        renewals_per_ttl,
        max_hold,
    };
    vec![
        kept(3, None),
        kept(20, None),
        kept(2, Some(Millis(40))),
        Lock::Fenced { renews: true },
        Lock::Fenced { renews: false },
        Lock::Notify { renews: true },
        Lock::Reentrant { count: Count::Server },
        Lock::Reentrant { count: Count::Local },
        Lock::ReadWrite {
            prefer: Prefer::Readers,
        },
        Lock::ReadWrite {
            prefer: Prefer::Writers,
        },
        Lock::Semaphore { permits: 2 },
        Lock::Replicated {
            replicas: 2,
            timeout_ms: 10,
        },
        Lock::PgLease,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reply = prop_oneof![
        4 => select(vec![Reply::Ok, Reply::Nil, Reply::Int(0), Reply::Int(1), Reply::Int(2)]),
        1 => select(vec![Reply::Int(-1), Reply::Int(i64::MAX), Reply::Items, Reply::Other]),
        1 => select(ERRORS.to_vec()).prop_map(Reply::Error),
    ];
    let pass = prop_oneof![0..3_000_000_u64, 0..200_000_000_u64, 0..20_000_000_000_u64].prop_map(Nanos);
    let step = prop_oneof![
        6 => (0..3_u32, any::<bool>()).prop_map(|(key, shared)| Step::Request { key, shared }),
        3 => Just(Step::Enter),
        1 => Just(Step::Cancel),
        5 => (any::<Index>(), reply).prop_map(|(which, reply)| Step::Reply(which, reply)),
        8 => Just(Step::ReplyWell),
        1 => any::<Index>().prop_map(Step::Lose),
        1 => any::<bool>().prop_map(Step::Publish),
        1 => Just(Step::Disconnect),
        1 => Just(Step::Wake),
        4 => Just(Step::Sleep),
        3 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..120)
}

fn specs() -> impl Strategy<Value = Spec> {
    let retry = retries(vec![Nanos::ZERO, Nanos::from_millis(100), Nanos::NEVER]);
    (select(vec![3, 50, 50, 10_000, 1 << 53]), retry).prop_map(|(lease, retry)| Spec {
        servers: 1,
        lease: Lease::new(lease).expect("a good lease"),
        reply_timeout: REPLY_TIMEOUT,
        retry,
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_each_request_settles_once_and_belief_never_outlives_the_lease(
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
fn each_lock_is_held_renewed_entered_and_lapses_where_it_can() {
    let spec = Spec {
        servers: 1,
        lease: Lease::new(100).expect("a good lease"),
        reply_timeout: Nanos::from_millis(20),
        retry: Retry::NONE,
    };
    let request = Step::Request { key: 1, shared: true };
    for strategy in locks() {
        let mut watcher = Watcher::new(strategy, spec, 1);
        for step in [&request, &Step::ReplyWell, &Step::ReplyWell] {
            watcher.step(step);
        }
        assert_eq!(watcher.seen.grants, 1, "{strategy:?}");
        for step in [Step::Enter, Step::ReplyWell, Step::Sleep, Step::ReplyWell, Step::Sleep] {
            watcher.step(&step);
        }
        let keeps = matches!(
            strategy,
            Lock::Watchdog { .. } | Lock::Fenced { renews: true } | Lock::Notify { renews: true }
        );
        let enters = u32::from(strategy.nests());
        assert_eq!(
            (watcher.seen.renewals > 0, watcher.seen.entries),
            (keeps, enters),
            "{strategy:?}"
        );
        for _ in 0..40 {
            watcher.step(&Step::Sleep);
        }
        assert_eq!(watcher.seen.lapses, u32::from(keeps), "{strategy:?}");
        watcher.come_to_rest(false);
    }
}
