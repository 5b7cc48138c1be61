//! What holds for each strategy alike.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, ErrorKind, Event, Key, KeyList, LockMachine, Millis, Mode, Nanos,
    Outcome, Reply, Scope, SessionOwner, Strategy, Wait,
};

use crate::words::{KEY, REPLY_TIMEOUT_MS, every_10_ms, one_attempt, script};

#[test]
fn a_wake_up_when_nothing_was_asked_for_is_harmless() {
    for strategy in every() {
        script(strategy, one_attempt())
            .wake()
            .expect_nothing()
            .wake()
            .expect_nothing();
    }
}

/// Each strategy with its defaults, and with the argument that makes a larger machine.
fn every() -> impl Iterator<Item = Strategy> {
    Strategy::ALL.into_iter().chain([Strategy::Notify { renews: true }])
}

/// All strategies that use a server.
pub(crate) fn all_but_none() -> impl Iterator<Item = Strategy> {
    every().filter(|&strategy| !strategy.is_silent())
}

/// All strategies that retry after a pause, each with the reply that says that another client holds the lock.
fn refusals() -> impl Iterator<Item = (Strategy, Reply)> {
    let tries = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    Strategy::ALL
        .into_iter()
        .chain([tries])
        .filter_map(|strategy| match strategy {
            // The last four release something, or end a transaction, before they pause.
            Strategy::None
            | Strategy::Atomic
            | Strategy::Fair
            | Strategy::FairQueue { .. }
            | Strategy::Notify { .. }
            | Strategy::PgAdvisory { wait: Wait::Block, .. }
            | Strategy::Redlock(_)
            | Strategy::Multilock(_)
            | Strategy::PgRow { .. }
            | Strategy::PgSerializable => None,
            Strategy::PgOptimistic => Some((strategy, Reply::Error(ErrorKind::Serialization))),
            Strategy::Naive | Strategy::PgAdvisory { .. } => Some((strategy, Reply::Int(0))),
            Strategy::Mutex
            | Strategy::Watchdog { .. }
            | Strategy::Reentrant { .. }
            | Strategy::ReadWrite { .. }
            | Strategy::Semaphore { .. }
            | Strategy::Fenced { .. }
            | Strategy::Replicated { .. }
            | Strategy::RedissonRedlock(_)
            | Strategy::RedissonMultilock(_)
            | Strategy::PgLease
            | Strategy::Layered => Some((strategy, Reply::Nil)),
        })
}

#[test]
fn an_early_wake_up_asks_for_the_point_again() {
    for (strategy, busy) in refusals() {
        let guard = Nanos::from_millis(REPLY_TIMEOUT_MS);
        let mut pausing = script(strategy, every_10_ms())
            .acquire()
            .expect_send_over("ask", strategy.owns_connection())
            .expect_guard()
            .at(400)
            .wake()
            .expect_wake_at(guard)
            .wake()
            .expect_wake_at(guard)
            .reply("ask", busy)
            .expect_pause(0..=10);
        // Only a pause that was not over at once can be woken from early.
        pausing = pausing.wake();
        pausing.expect_pause(0..=10);
    }
}

#[test]
fn a_cancel_when_idle_settles_at_once() {
    for strategy in every() {
        script(strategy, one_attempt())
            .cancel()
            .expect(Outcome::Released)
            .expect_attempts(0);
    }
}

#[test]
fn a_driver_that_breaks_the_contract_causes_a_panic() {
    let acquire = Event::Acquire {
        keys: KEY.into(),
        mode: Mode::Exclusive,
    };
    for strategy in every() {
        assert!(panics(strategy, &[Event::Release]), "{strategy:?}: Release when idle");
        assert!(panics(strategy, &[acquire, acquire]), "{strategy:?}: Acquire twice");
    }
    for strategy in all_but_none() {
        assert!(
            panics(strategy, &[acquire, Event::Release]),
            "{strategy:?}: Release before it is held"
        );
        assert!(
            panics(strategy, &[acquire, Event::Enter]),
            "{strategy:?}: Enter before it is held"
        );
    }
    let shared = Event::Acquire {
        keys: KEY.into(),
        mode: Mode::Shared,
    };
    let both = Event::Acquire {
        keys: KeyList::new(&[KEY, Key(8)]).expect("two are few"),
        mode: Mode::Exclusive,
    };
    for strategy in all_but_none() {
        assert_eq!(panics(strategy, &[shared]), !strategy.shares(), "{strategy:?}: shared");
        assert_eq!(
            panics(strategy, &[both]),
            !strategy.takes_many_keys(),
            "{strategy:?}: two keys"
        );
    }
}

#[test]
fn the_loss_of_or_reply_to_a_call_that_was_never_made_changes_nothing() {
    for strategy in every() {
        let call = CallId(99);
        let stray = [Event::Lost { call }, Event::Replied { call, reply: Reply::Ok }];
        assert_eq!(drain(lock(strategy), &stray), []);
        let begun = drain(
            lock(strategy),
            &[Event::Acquire {
                keys: KEY.into(),
                mode: Mode::Exclusive,
            }],
        );
        let disturbed = drain(
            lock(strategy),
            &[
                Event::Acquire {
                    keys: KEY.into(),
                    mode: Mode::Exclusive,
                },
                stray[0],
                stray[1],
            ],
        );
        assert_eq!(begun, disturbed, "{strategy:?}");
    }
}

#[test]
fn a_client_stays_small() {
    // Many thousand clients are stored in one vector: at most two cache lines each.
    assert!(size_of::<AnyLock>() <= 104, "{}", size_of::<AnyLock>());
}

#[test]
fn two_clients_refused_together_do_not_stay_in_step() {
    for (strategy, busy) in refusals() {
        let pauses = Chance::streams(3).take(20).map(|chance| {
            let mut lock = AnyLock::new(strategy, Arc::new(every_10_ms()), chance);
            let mut out = Actions::default();
            lock.on(
                Nanos::ZERO,
                Event::Acquire {
                    keys: KEY.into(),
                    mode: Mode::Exclusive,
                },
                &mut out,
            );
            let call = out.drain().find_map(call_of).expect("an attempt sends something");
            lock.on(Nanos::ZERO, Event::Replied { call, reply: busy }, &mut out);
            out.drain().next().expect("a pause")
        });
        let mut points: Vec<String> = pauses.map(|pause| format!("{pause:?}")).collect();
        points.sort();
        points.dedup();
        assert_eq!(points.len(), 20, "{strategy:?}: {points:?}");
    }
}

#[test]
fn two_waiters_with_the_same_events_do_not_stay_in_step() {
    let beat = Millis(2_000);
    for (strategy, replies) in [
        (Strategy::FairQueue { beat }, &[Reply::Int(2)][..]),
        (
            Strategy::Notify { renews: false },
            &[Reply::Nil, Reply::Ok, Reply::Int(900)],
        ),
    ] {
        let points = Chance::streams(3).take(20).map(|chance| {
            let mut lock = AnyLock::new(strategy, Arc::new(every_10_ms()), chance);
            let mut out = Actions::default();
            let (keys, mode) = (KEY.into(), Mode::Exclusive);
            lock.on(Nanos::ZERO, Event::Acquire { keys, mode }, &mut out);
            for &reply in replies {
                let call = out.drain().find_map(call_of).expect("something to answer");
                lock.on(Nanos::ZERO, Event::Replied { call, reply }, &mut out);
            }
            let point = |action| matches!(action, Action::WakeAt(_)).then_some(action);
            format!("{:?}", out.drain().find_map(point).expect("a point"))
        });
        assert_eq!(
            points.collect::<std::collections::BTreeSet<_>>().len(),
            20,
            "{strategy:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_actions() {
    for strategy in every() {
        let call = CallId(1);
        let events = [
            Event::Acquire {
                keys: KEY.into(),
                mode: Mode::Exclusive,
            },
            Event::Replied {
                call,
                reply: Reply::Error(ErrorKind::Loading),
            },
            Event::Woke,
        ];
        let events = if strategy.is_silent() {
            &events[..1]
        } else {
            &events[..]
        };
        assert_eq!(drain(lock(strategy), events), drain(lock(strategy), events));
    }
}

fn lock(strategy: Strategy) -> AnyLock {
    AnyLock::new(strategy, Arc::new(every_10_ms()), Chance::seeded(1))
}

fn drain(mut lock: AnyLock, events: &[Event]) -> Vec<Action> {
    let mut out = Actions::default();
    for &event in events {
        lock.on(Nanos::ZERO, event, &mut out);
    }
    out.drain().collect()
}

fn call_of(action: Action) -> Option<CallId> {
    match action {
        Action::Send { call, .. } => Some(call),
        Action::WakeAt(_)
        | Action::HangUp
        | Action::Queued
        | Action::Renewed { .. }
        | Action::Lapsed
        | Action::Settle(_) => None,
    }
}

fn panics(strategy: Strategy, events: &[Event]) -> bool {
    catch_unwind(AssertUnwindSafe(|| drain(lock(strategy), events))).is_err()
}
