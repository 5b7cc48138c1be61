//! Whether the clients of a scene get on: a lock that is free and wanted is granted again.
//!
//! At its end a scene goes on if clients wait and nobody holds the lock, without further faults, until there is a grant.
//! The bound is generous: the lease of a holder that was lost, the waits and timeouts of those that ask, and what the
//! last faults delay. A lock that is wanted for longer stays lost for ever, or nearly so.

use std::cell::RefCell;
use std::rc::Rc;

use load::rules;
use locks::{Nanos, Strategy};

use super::Run;
use crate::machine::Tally;
use crate::scene::Scene;

/// What is waited for after the end of a scene.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// How long a wanted lock may be free; `None` in a world that is no scene.
    pub(super) bound: Option<Nanos>,
    /// Since when no fault is left, and the grants by then. `None` before the end of the scene.
    since: Option<(Nanos, u64)>,
    pub(super) stuck: Option<String>,
}

/// Whether each release of this lock wakes a waiter, who then need not wait for the end of any lease.
const fn wakes(strategy: Strategy) -> bool {
    strategy.has_lease() && (strategy.subscribes() || strategy.owns_connection())
}

impl Run {
    /// Says what the clients of the scene can expect.
    pub(super) fn watch_progress(&mut self, scene: &Scene) {
        let within = rules(&self.asked.trial(&scene.conditions)).granted_within;
        let longest_wait = scene.conditions.spec.retry.max_wait;
        self.quiet.bound = Some(within.after(within).after(longest_wait).after(deadlock(scene)));
        self.expects_wakeups = scene.faults.is_empty() && wakes(scene.strategy);
        if self.expects_wakeups {
            self.checker.begin_window(Nanos::ZERO);
        }
    }

    /// Whether the world goes on, although what happens next, at `at`, is after its end.
    pub(super) fn goes_on(&mut self, at: Nanos) -> bool {
        let Some(bound) = self.quiet.bound else { return false };
        let grants = self.tallies().map(|tally| held(&tally.borrow())).sum();
        let (since, before) = match self.quiet.since {
            Some(known) => known,
            None if !self.is_wanted() => return false,
            None => {
                let since = self.end.max(self.network.borrow().calm_from());
                *self.quiet.since.insert((since, grants))
            }
        };
        if grants > before {
            return false;
        }
        if at <= since.after(bound) {
            return true;
        }
        if self.is_wanted() {
            let waited = bound.0 as f64 / 1e9;
            self.quiet.stuck = Some(format!(
                "nobody was granted the lock within {waited:.2} s in which no fault was left, although a client waited"
            ));
        }
        false
    }

    fn tallies(&self) -> impl Iterator<Item = &Rc<RefCell<Tally>>> {
        self.processes.iter().flat_map(|process| &process.tallies)
    }

    /// Whether a client waits, and no client holds anything.
    fn is_wanted(&self) -> bool {
        let waits = |tally: &Rc<RefCell<Tally>>| {
            let tally = tally.borrow();
            tally.acquires > 0 && !tally.is_idle
        };
        self.tallies().all(|tally| !tally.borrow().holds) && self.tallies().any(waits)
    }
}

/// How a client did not get on in a scene without faults whose releases wake the waiters: it was granted the lock only
/// because the lease ended of a holder that had released it.
pub(super) fn freed_by_lease(expects_wakeups: bool, grants: u64) -> Option<String> {
    let waited = expects_wakeups && grants > 0;
    waited
        .then(|| "no release woke a client, which got the lock only when the lease of its last holder ended".to_owned())
}

/// How long a deadlock lasts. Only the locks of Redisson have one: they take several keys or servers one after another,
/// with leases of twice their wait budget.
const fn deadlock(scene: &Scene) -> Nanos {
    match scene.strategy {
        Strategy::RedissonRedlock(rules) | Strategy::RedissonMultilock(rules) => {
            let children = if rules.nodes > 2 { rules.nodes as u64 } else { 2 };
            Nanos::from_millis(rules.wait_budget_ms * children * 4)
        }
        _ => Nanos::ZERO,
    }
}

fn held(tally: &Tally) -> u64 {
    tally.outcomes.get("held").copied().unwrap_or(0)
}
