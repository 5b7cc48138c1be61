//! `mutex`: takes with `SET key token NX PX ttl`, releases with a compare-and-delete.
//!
//! `Leased` has its states and its promises: exclusion while no work outlives the lease and the server keeps its data;
//! a dead holder's lock is free again after one lease.

use crate::recipe::{Answer, Claim, Recipe};
use crate::{Command, Reply};

/// Zero-sized, so that a client of a mutex stays as small as possible.
#[derive(Debug, Default)]
pub(crate) struct Mutex;

impl Recipe for Mutex {
    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        claim.set_if_absent(lease_ms)
    }

    fn taken(&self, reply: Reply) -> Answer {
        Answer::of_set(reply)
    }

    fn give_back(&self, claim: Claim) -> Command {
        claim.compare_and_delete()
    }
}
