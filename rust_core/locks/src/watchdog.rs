//! `watchdog`: a `mutex` whose lease is renewed while it is held, by a script that compares the token before it sets
//! the expiry.
//!
//! `Leased` has its states while it is taken and released, `AutoRenewal` those while it is held. Promises what they do:
//! exclusion also for work that outlives the first lease, as long as renewals get replies; a dead holder's lock is free
//! again after one lease. `max_hold` limits the renewals: then the lock is free at the latest one lease after the
//! longest hold, even if its holder lives.

use std::sync::Arc;

use crate::auto_renewal::AutoRenewal;
use crate::leased::Leased;
use crate::mutex::Mutex;
use crate::{Chance, Nanos, Spec};

pub(crate) fn watchdog(
    spec: Arc<Spec>,
    chance: Chance,
    per_ttl: u32,
    longest_hold: Nanos,
) -> AutoRenewal<Leased<Mutex>> {
    AutoRenewal::new(Leased::new(spec, chance, Mutex), Some(per_ttl), longest_hold)
}
