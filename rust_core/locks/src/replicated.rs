//! `replicated`: a `mutex` that counts as granted only once enough replicas have it: `SET key token NX PX ttl`, then
//! `WAIT replicas timeout`. If too few replicas confirmed in time, the lock is released and tried again as the policy
//! says.
//!
//! `Leased` has its states; two commands lie between `Asking` and `Held`. All commands use the client's own connection,
//! because `WAIT` blocks it and counts only what was written over it.
//!
//! Promises what `mutex` does. A server that fails over loses fewer locks, but may lose some: a replica without the key
//! may be promoted, and a replica with the key may not have it on disk.

use crate::recipe::{Answer, Claim, Recipe};
use crate::{Command, Lane, Reply};

#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) replicas: u32,
    pub(crate) timeout_ms: u32,
}

impl Recipe for Replicated {
    const LANE: Lane = Lane::Own;

    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        claim.set_if_absent(lease_ms)
    }

    fn taken(&self, reply: Reply) -> Answer {
        Answer::of_set(reply)
    }

    fn confirm(&self) -> Option<Command> {
        Some(Command::Wait {
            replicas: self.replicas.into(),
            timeout_ms: self.timeout_ms.into(),
        })
    }

    fn confirmed(&self, reply: Reply) -> Answer {
        match reply {
            Reply::Int(count) if count >= i64::from(self.replicas) => Answer::Granted(None),
            Reply::Int(0..) => Answer::Busy,
            Reply::Int(_)
            | Reply::Ok
            | Reply::Nil
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => Answer::Odd,
        }
    }

    fn give_back(&self, claim: Claim) -> Command {
        claim.compare_and_delete()
    }
}
