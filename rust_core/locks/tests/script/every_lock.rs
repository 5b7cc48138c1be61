//! What holds for each strategy alike.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, ArgValue, CallId, Chance, Command, Count, ErrorKind, Event, Key, Keys, LockMachine,
    Millis, Mode, Nanos, Outcome, Prefer, Reply, Script, SpecError, Strategy,
};

use crate::words::{KEY, PATIENCE_MS, every_10_ms, lease, one_attempt, script};

#[test]
fn a_wake_up_when_nothing_was_asked_for_is_harmless() {
    for strategy in Strategy::ALL {
        script(strategy, one_attempt())
            .wake()
            .expect_nothing()
            .wake()
            .expect_nothing();
    }
}

/// All that ask a server, each with the answer that says that somebody else has the lock.
fn refusals() -> impl Iterator<Item = (Strategy, Reply)> {
    Strategy::ALL.into_iter().filter_map(|strategy| match strategy {
        Strategy::None => None,
        Strategy::Naive => Some((strategy, Reply::Int(0))),
        Strategy::Mutex
        | Strategy::Watchdog { .. }
        | Strategy::Reentrant { .. }
        | Strategy::ReadWrite { .. }
        | Strategy::Semaphore { .. }
        | Strategy::Fenced { .. }
        | Strategy::Replicated { .. } => Some((strategy, Reply::Nil)),
    })
}

#[test]
fn an_early_wake_up_asks_for_the_point_again() {
    for (strategy, busy) in refusals() {
        let guard = Nanos::from_millis(PATIENCE_MS);
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
    for strategy in Strategy::ALL {
        script(strategy, one_attempt())
            .cancel()
            .expect(Outcome::Released)
            .expect_attempts(0);
    }
}

#[test]
fn a_driver_that_breaks_the_contract_is_told_so() {
    let acquire = Event::Acquire {
        keys: KEY.into(),
        mode: Mode::Exclusive,
    };
    for strategy in Strategy::ALL {
        assert!(panics(strategy, &[Event::Release]), "{strategy:?}: Release when idle");
        assert!(panics(strategy, &[acquire, acquire]), "{strategy:?}: Acquire twice");
    }
    for strategy in Strategy::ALL.into_iter().filter(|&strategy| strategy != Strategy::None) {
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
        keys: Keys::new(&[KEY, Key(8)]).expect("two are few"),
        mode: Mode::Exclusive,
    };
    for (strategy, _) in refusals() {
        assert_eq!(panics(strategy, &[shared]), !strategy.shares(), "{strategy:?}: shared");
        assert_eq!(
            panics(strategy, &[both]),
            !strategy.takes_many_keys(),
            "{strategy:?}: two keys"
        );
    }
}

#[test]
fn a_call_lost_or_answered_that_was_never_made_changes_nothing() {
    for strategy in Strategy::ALL {
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
fn a_strategy_is_found_by_its_name_and_an_unknown_one_names_those_known() {
    for strategy in Strategy::ALL {
        assert_eq!(Strategy::named(strategy.name(), &[]), Ok(strategy));
    }
    let unknown = Strategy::named("mutx", &[]).expect_err("a name that does not exist");
    assert_eq!(
        unknown.to_string(),
        "there is no strategy `mutx`; known are none, naive, mutex, watchdog, reentrant, read-write, fair, fair-queue, \
         notify, semaphore, fenced, replicated, redlock, redisson-redlock, multilock, redisson-multilock"
    );
    let nodes = [("nodes".to_owned(), ArgValue::Int(5))];
    let unknown = Strategy::named("mutex", &nodes).expect_err("an argument that does not exist");
    assert_eq!(unknown.to_string(), "`mutex` takes no arguments, and was given `nodes`");
}

#[test]
fn arguments_are_taken_within_their_ranges_and_refused_with_them() {
    let named = |name: &str, argument: &str, value: ArgValue| Strategy::named(name, &[(argument.to_owned(), value)]);
    let word = |word: &str| ArgValue::Text(word.to_owned());
    let int = ArgValue::Int;
    let kept = |renewals_per_ttl, max_hold| Strategy::Watchdog {
        renewals_per_ttl,
        max_hold,
    };
    let good = [
        (named("watchdog", "renewals_per_ttl", int(20)), kept(20, None)),
        (named("watchdog", "max_hold_ms", int(0)), kept(3, None)),
        (named("watchdog", "max_hold_ms", int(9)), kept(3, Some(Millis(9)))),
        (
            named("reentrant", "count", word("local")),
            Strategy::Reentrant { count: Count::Local },
        ),
        (
            named("read-write", "prefer", word("writers")),
            Strategy::ReadWrite {
                prefer: Prefer::Writers,
            },
        ),
        (
            named("semaphore", "permits", int(1_000)),
            Strategy::Semaphore { permits: 1_000 },
        ),
        (
            named("fenced", "renew", word("off")),
            Strategy::Fenced { renews: false },
        ),
        (
            named("replicated", "replicas", int(2)),
            Strategy::Replicated {
                replicas: 2,
                timeout_ms: 100,
            },
        ),
    ];
    for (given, wanted) in good {
        assert_eq!(given, Ok(wanted));
    }
    let bad = [
        (
            named("watchdog", "renewals_per_ttl", int(1)),
            "a whole number from 2 to 20",
        ),
        (named("watchdog", "max_hold_ms", int(-1)), "from 0 to 9007199254740992"),
        (named("reentrant", "count", word("both")), "one of server, local"),
        (named("read-write", "prefer", int(1)), "one of readers, writers"),
        (named("semaphore", "permits", int(0)), "a whole number from 1 to 1000"),
        (named("fenced", "renew", word("on")), "one of ttl/3, off"),
        (
            named("replicated", "timeout_ms", int(0)),
            "a whole number from 1 to 60000",
        ),
    ];
    for (given, wanted) in bad {
        let refused = given.expect_err(wanted).to_string();
        assert!(refused.ends_with(wanted), "{refused}");
    }
}

#[test]
fn a_strategy_says_what_a_driver_has_to_know() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.shares(), strategy.name() == "read-write");
        assert_eq!(strategy.nests(), strategy.name() == "reentrant");
        assert_eq!(strategy.owns_connection(), strategy.name() == "replicated");
        assert_eq!(strategy.permits(), if strategy.name() == "semaphore" { 4 } else { 1 });
    }
}

#[test]
fn a_lease_that_could_never_be_believed_is_refused_beforehand() {
    for (ms, good) in [(1, false), (2, false), (3, true), (1 << 53, true)] {
        let spec = locks::Spec {
            lease: lease(ms),
            ..one_attempt()
        };
        for (strategy, _) in refusals().filter(|&(strategy, _)| strategy != Strategy::Naive) {
            // 3 ms are too short to wait for a replica as well.
            let good = good && (strategy.name() != "replicated" || ms > 100);
            assert_eq!(strategy.check(&spec).is_ok(), good, "{strategy:?}: {ms} ms");
        }
        assert_eq!(Strategy::Naive.check(&spec), Ok(()));
    }
    let spec = locks::Spec {
        patience: Nanos::ZERO,
        ..one_attempt()
    };
    assert_eq!(Strategy::None.check(&spec), Err(SpecError::NoPatience));
}

#[test]
fn a_strategy_says_which_scripts_it_sends() {
    assert_eq!(Strategy::Naive.scripts(), []);
    assert_eq!(Strategy::Mutex.scripts(), [Script::CompareAndDelete]);
    assert_eq!(Strategy::Fair.scripts(), [Script::CompareAndDelete]);
    assert_eq!(
        Strategy::Notify.scripts(),
        [Script::NotifyAcquire, Script::NotifyRelease]
    );
    let beat = Millis(2_000);
    assert_eq!(
        Strategy::FairQueue { beat }.scripts(),
        [Script::QueueTake, Script::QueueLeave]
    );
}

#[test]
fn the_beat_of_a_queue_is_an_argument() {
    let beat_ms = |ms| Strategy::named("fair-queue", &[("beat_ms".to_owned(), ArgValue::Int(ms))]);
    assert_eq!(beat_ms(5_000), Ok(Strategy::FairQueue { beat: Millis(5_000) }));
    let refused = beat_ms(9).expect_err("too often");
    assert_eq!(
        refused.to_string(),
        "the `beat_ms` of `fair-queue` must be a whole number from 10 to 60000"
    );
}

#[test]
fn a_client_stays_small() {
    // Many thousand clients stand in one vector: two cache lines at most.
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
fn two_waiters_told_the_same_do_not_stay_in_step() {
    let beat = Millis(2_000);
    for (strategy, replies) in [
        (Strategy::FairQueue { beat }, &[Reply::Int(2)][..]),
        (Strategy::Notify, &[Reply::Int(900), Reply::Ok, Reply::Int(900)]),
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
    for strategy in Strategy::ALL {
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
        let events = if strategy == Strategy::None {
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
