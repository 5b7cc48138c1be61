//! By which rules the grants of a trial are judged.

use check::{Order, Rules};
use locks::Nanos;

use crate::recorder::LONG_STALL;
use crate::spec::TrialSpec;

/// The most calls to one server, one after another, that a waiter of a free key needs until it is granted. Each further
/// server is one more.
const CALLS_OF_A_GRANT: u64 = 4;
/// How long a database may take to notice that a client has gone and to grant its locks to the next one.
const SESSION_GONE_WITHIN: Nanos = Nanos::from_secs(10);
/// After this time a client that waits for a wake-up asks by itself.
const ASKS_AGAIN_WITHIN: Nanos = Nanos::from_secs(3);

/// The rules for the grants of a trial.
pub fn rules(spec: &TrialSpec) -> Rules {
    let strategy = spec.strategy;
    Rules {
        permits: strategy.permits(),
        fences: strategy.fences(),
        order: if strategy.is_fifo() {
            Order::Promised
        } else if strategy.acknowledges_places() {
            Order::Counted
        } else {
            Order::Ignored
        },
        sessions: strategy.holds_by_session(),
        // The driver reports no shorter standstill.
        session_end_seen_within: spec.lock.reply_timeout.after(LONG_STALL),
        least_belief: spec.least_belief,
        // After the pause the request crosses the added network, and so did the release.
        release_seen_within: spec.lock.retry.cap.after(added(spec, 2)),
        granted_within: granted_within(spec),
    }
}

/// The longest time that so many round trips are delayed. A reply that takes longer than its timeout is lost.
fn added(spec: &TrialSpec, round_trips: u64) -> Nanos {
    let longest = spec.servers.iter().map(|server| server.rtt.longest()).max();
    let longest = longest.unwrap_or(Nanos::ZERO).min(spec.lock.reply_timeout);
    Nanos(longest.0.saturating_mul(round_trips))
}

/// How long a key that clients wait for may go without a grant: the lease of the last holder, then the longest pause of
/// the waiters, then their reply timeout, and the delay of the calls of a grant.
fn granted_within(spec: &TrialSpec) -> Nanos {
    let lease = if spec.strategy.has_lease() {
        Nanos::from_millis(spec.lock.lease.ttl().0)
    } else {
        SESSION_GONE_WITHIN
    };
    // A client that waits for a wake-up asks by itself now and then, because a message may be lost.
    let waits_for_wakeup = spec.strategy.owns_connection() || spec.strategy.subscribes();
    let asks_again = if waits_for_wakeup {
        ASKS_AGAIN_WITHIN
    } else {
        Nanos::ZERO
    };
    lease
        .after(spec.lock.retry.cap)
        .after(spec.lock.reply_timeout)
        .after(asks_again)
        .after(added(spec, CALLS_OF_A_GRANT + spec.servers.len() as u64))
}
