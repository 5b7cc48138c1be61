//! The catalogue: names, arguments, and what a driver asks of a strategy.

use locks::{
    ArgValue, Count, Millis, Nanos, Parameter, Prefer, Scope, Script, ServerId, SessionOwner, SpecError, Statement,
    Strategy, Wait,
};

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
        "there is no strategy `mutx`; known are none, atomic, naive, mutex, watchdog, reentrant, read-write, fair, \
         fair-queue, notify, semaphore, fenced, replicated, redlock, redisson-redlock, multilock, redisson-multilock, \
         pg-advisory, pg-row, pg-lease, pg-optimistic, pg-serializable, layered"
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
        (named("notify", "renew", word("on")), "one of off, ttl/3"),
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
        let name = strategy.name();
        assert_eq!(
            strategy.shares(),
            ["read-write", "pg-advisory", "pg-row"].contains(&name)
        );
        assert_eq!(strategy.nests(), strategy.name() == "reentrant");
        assert_eq!(
            strategy.owns_connection(),
            [
                "fair",
                "fair-queue",
                "replicated",
                "pg-advisory",
                "pg-row",
                "pg-serializable"
            ]
            .contains(&name)
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
            // 3 ms are too short to also wait for a replica.
            let good = good && (strategy.name() != "replicated" || ms > 100);
            // Its caller gets the whole lease, without a margin; the others know no lease.
            let without = [
                "redisson-redlock",
                "pg-advisory",
                "pg-row",
                "pg-optimistic",
                "pg-serializable",
            ];
            let good = good || without.contains(&strategy.name());
            let servers = strategy.nodes().unwrap_or(1);
            let spec = locks::Spec { servers, ..spec };
            assert_eq!(strategy.check(&spec).is_ok(), good, "{strategy:?}: {ms} ms");
        }
        assert_eq!(Strategy::Naive.check(&spec), Ok(()));
    }
    let spec = locks::Spec {
        reply_timeout: Nanos::ZERO,
        ..one_attempt()
    };
    assert_eq!(Strategy::None.check(&spec), Err(SpecError::ZeroReplyTimeout));
}

#[test]
fn a_strategy_says_which_scripts_it_sends() {
    assert_eq!(Strategy::Naive.scripts(), []);
    assert_eq!(Strategy::Mutex.scripts(), [Script::CompareAndDelete]);
    assert_eq!(Strategy::Fair.scripts(), [Script::CompareAndDelete]);
    assert_eq!(
        Strategy::Notify { renews: false }.scripts(),
        [Script::NotifyAcquire, Script::NotifyRelease]
    );
    assert_eq!(
        Strategy::Notify { renews: true }.scripts(),
        [Script::NotifyAcquire, Script::NotifyRelease, Script::CompareAndExpire]
    );
    let beat = Millis(2_000);
    assert_eq!(
        Strategy::FairQueue { beat }.scripts(),
        [Script::QueueTake, Script::QueueConfirm, Script::QueueLeave]
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

fn advisory(given: &[(&str, &str)]) -> Result<Strategy, SpecError> {
    let text = |&(name, word): &(&str, &str)| (name.to_owned(), ArgValue::Text(word.to_owned()));
    Strategy::named("pg-advisory", &given.iter().map(text).collect::<Vec<_>>())
}

#[test]
fn the_words_of_the_locks_of_a_database_are_taken() {
    let given = [("scope", "transaction"), ("wait", "try")];
    let (scope, wait, session) = (Scope::Transaction, Wait::Try, SessionOwner::ThisClient);
    assert_eq!(advisory(&given), Ok(Strategy::PgAdvisory { scope, wait, session }));
    let refused = advisory(&[("wait", "skip-locked")]).expect_err("rows are skipped");
    assert_eq!(
        refused.to_string(),
        "the `wait` of `pg-advisory` must be one of block, try"
    );
    for (word, wait) in [
        ("block", Wait::Block),
        ("nowait", Wait::Try),
        ("skip-locked", Wait::SkipLocked),
    ] {
        let given = [("wait".to_owned(), ArgValue::Text(word.to_owned()))];
        assert_eq!(Strategy::named("pg-row", &given), Ok(Strategy::PgRow { wait }));
    }
}

#[test]
fn a_session_of_others_is_refused_where_it_would_hold_them_up() {
    let check = |scope, wait| {
        let given = [("session", "shared"), ("scope", scope), ("wait", wait)];
        advisory(&given).expect("known words").check(&one_attempt())
    };
    assert_eq!(check("session", "try"), Ok(()));
    for (scope, wait) in [("session", "block"), ("transaction", "try"), ("transaction", "block")] {
        let refused = check(scope, wait)
            .expect_err("it would stop or mix up the others")
            .to_string();
        let begins = "the `session` of `pg-advisory` must be `own` unless it is given `scope=session` and `wait=try`";
        assert!(refused.starts_with(begins), "{refused}");
    }
}

#[test]
fn places_are_acknowledged_by_queues_and_kept_by_one_of_them() {
    let names = |is: fn(Strategy) -> bool| {
        let found = Strategy::ALL.into_iter().filter(|&strategy| is(strategy));
        found.map(Strategy::name).collect::<Vec<_>>()
    };
    assert_eq!(names(Strategy::acknowledges_places), ["fair", "fair-queue"]);
    assert_eq!(names(Strategy::is_fifo), ["fair-queue"]);
}

#[test]
fn a_strategy_says_what_it_asks_of_a_database() {
    for strategy in Strategy::ALL {
        let statements = strategy.statements();
        assert_eq!(strategy.database().is_some(), !statements.is_empty(), "{strategy:?}");
        // All optimistic locks write, and all session locks own a session.
        assert!(strategy.writes() || !strategy.is_optimistic());
        assert!(strategy.owns_connection() || !strategy.holds_by_session());
    }
    assert_eq!(Strategy::Layered.database(), Some(ServerId(1)));
    assert_eq!(Strategy::PgLease.database(), Some(ServerId(0)));
    let shared = advisory(&[("session", "shared"), ("wait", "try")]).expect("known words");
    assert!(shared.shares_connections() && !shared.owns_connection());
}

#[test]
fn a_statement_has_a_place_for_each_of_its_parameters() {
    for &statement in Statement::ALL {
        let parameters = statement.parameters();
        for number in 1..9 {
            let has_place = statement.sql().contains(&format!("${number}"));
            assert_eq!(has_place, number <= parameters.len(), "${number} of {statement:?}");
        }
        assert_eq!(
            statement.takes_token(),
            parameters.contains(&Parameter::Token),
            "{statement:?}"
        );
    }
}
