//! The catalogue: names, arguments, and what a driver asks of a strategy.

use locks::{ArgValue, Count, Millis, Nanos, Prefer, Script, SpecError, Strategy};

use crate::every_lock::all_but_none;
use crate::words::{lease, one_attempt};

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
        assert_eq!(
            strategy.owns_connection(),
            ["fair", "fair-queue", "replicated"].contains(&strategy.name())
        );
        assert_eq!(strategy.subscribes(), strategy.name() == "notify");
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
        for strategy in all_but_none().filter(|&strategy| strategy != Strategy::Naive) {
            // 3 ms are too short to wait for a replica as well.
            let good = good && (strategy.name() != "replicated" || ms > 100);
            // Its caller is told of the whole lease, with nothing taken off.
            let good = good || strategy.name() == "redisson-redlock";
            let servers = strategy.nodes().unwrap_or(1);
            let spec = locks::Spec { servers, ..spec };
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
