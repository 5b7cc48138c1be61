//! The database locks in worlds with delays, lost connections, sessions that are ended from outside, and waits that end
//! just as the lock is granted.
//!
//! Properties: no two clients believe at once, as long as their sessions live; no acknowledged update is lost; after
//! the faults each client is served, so no session has kept a lock.

use locks::{Scope, SessionOwner, Strategy, Wait};
use proptest::prelude::*;
use proptest::sample::select;

use sim::{Mistake, World};

use crate::{config, is_caught_among, reached_among};

const fn advisory(scope: Scope, wait: Wait, session: SessionOwner) -> Strategy {
    Strategy::PgAdvisory { scope, wait, session }
}

const ROWS: Strategy = Strategy::PgRow { wait: Wait::Block };
const ADVISORY: Strategy = advisory(Scope::Session, Wait::Block, SessionOwner::ThisClient);
const SHARED_SESSION: Strategy = advisory(Scope::Session, Wait::Try, SessionOwner::AllClients);

const LOCKS: [Strategy; 12] = [
    ADVISORY,
    advisory(Scope::Session, Wait::Try, SessionOwner::ThisClient),
    advisory(Scope::Transaction, Wait::Block, SessionOwner::ThisClient),
    advisory(Scope::Transaction, Wait::Try, SessionOwner::ThisClient),
    ROWS,
    ROWS,
    Strategy::PgRow { wait: Wait::Try },
    Strategy::PgRow { wait: Wait::SkipLocked },
    Strategy::PgLease,
    Strategy::PgOptimistic,
    Strategy::PgSerializable,
    Strategy::Layered,
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_two_believe_no_update_is_lost_and_all_are_served_once_the_faults_end(
        strategy in select(&LOCKS[..]),
        seed: u64,
    ) {
        let world = World::run(strategy, Mistake::None, seed);
        prop_assert_eq!(world.violation, None, "{:?}", strategy);
        prop_assert_eq!(world.lost_update, None, "{:?}", strategy);
        prop_assert_eq!(world.unserved, Vec::<usize>::new(), "{:?}, seed {}", strategy, seed);
    }

    #[test]
    fn a_fence_of_the_row_loses_no_update_also_when_the_server_in_front_loses_everything(seed: u64) {
        let world = World::run(Strategy::Layered, Mistake::RestartWithoutData, seed);
        prop_assert_eq!(world.lost_update, None);
    }
}

/// How many of the first 40 seeds lose an update.
fn loses(strategy: Strategy, mistake: Mistake) -> usize {
    let loses = |&seed: &u64| World::run(strategy, mistake, seed).lost_update.is_some();
    (0..40).filter(loses).count()
}

#[test]
fn two_clients_in_one_session_are_caught() {
    assert!(is_caught_among(40, 21, SHARED_SESSION, Mistake::None));
}

#[test]
fn writes_that_do_not_look_at_what_has_changed_are_caught() {
    for strategy in [Strategy::PgOptimistic, Strategy::PgSerializable] {
        let found = loses(strategy, Mistake::UnguardedWrite);
        assert!(found > 10, "{}: in {found} worlds", strategy.name());
    }
}

#[test]
fn mistakes_in_the_locks_of_a_database_are_caught() {
    for (strategy, mistake) in [
        (ADVISORY, Mistake::NotTold),
        (ROWS, Mistake::NotTold),
        (Strategy::PgLease, Mistake::DeleteWithoutCompare),
        (Strategy::PgLease, Mistake::LeaseFromReply),
        (Strategy::PgLease, Mistake::FenceComesAgain),
        (Strategy::Layered, Mistake::LeaseFromReply),
        (Strategy::PgLease, Mistake::ReusedCallIds),
    ] {
        assert!(
            is_caught_among(200, 1, strategy, mistake),
            "{mistake:?} of {strategy:?}: in none of the worlds"
        );
    }
}

/// In the world of this seed the last client is served beside a holder that is about to find its session gone.
#[test]
fn a_world_does_not_end_before_a_holder_had_time_to_find_its_session_gone() {
    let world = World::run(ROWS, Mistake::None, 7_505_020_925_161_636_524);
    assert_eq!(world.violation, None);
    assert!(world.report.counts.sessions_lost > 0);
}

#[test]
fn the_worlds_reach_what_is_special_about_a_database() {
    for (strategy, special) in [
        (
            ADVISORY,
            &["queued in the database", "terminated", "lapsed", "hung up", "timed out"][..],
        ),
        (ROWS, &["queued in the database", "terminated", "lapsed", "timed out"]),
        (Strategy::PgLease, &["busy", "too late", "expired"]),
        (Strategy::PgOptimistic, &["conflict", "unknown"]),
        (
            Strategy::PgSerializable,
            &["conflict", "expired", "unknown", "terminated"],
        ),
        (Strategy::Layered, &["too late", "unknown", "busy"]),
    ] {
        let reached = reached_among(60, strategy);
        for outcome in special.iter().chain(&["held", "released"]) {
            let times = reached.get(*outcome).copied().unwrap_or(0);
            assert!(times > 5, "{outcome} of {}: {reached:?}", strategy.name());
        }
    }
}
