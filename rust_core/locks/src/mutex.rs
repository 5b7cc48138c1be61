//! `mutex`: takes with `SET key token NX PX ttl`, releases with a compare-and-delete.
//!
//! `Leased` has its states and its promises: exclusion while no work outlives the lease and the server keeps its data;
//! a dead holder's lock is free again after one lease.

use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, TakeReply};
use crate::{Command, Reply};

/// Zero-sized, so that a client of a mutex stays as small as possible.
#[derive(Debug, Default)]
pub(crate) struct Mutex;

impl LeaseProtocol for Mutex {
    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        attempt.set_if_absent(lease_ms)
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        TakeReply::of_set(reply)
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        attempt.compare_and_delete()
    }
}
