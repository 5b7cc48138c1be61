//! `replicated`: a `mutex` that counts as granted only once enough replicas have it: `SET key token NX PX ttl`, then
//! `WAIT replicas timeout`. Where too few answered in time it is given back, and tried again as the policy says.
//!
//! Its states are those of `Leased`; between `Asking` and `Held` it is asked twice. All goes over the client's own
//! connection, since `WAIT` blocks it, and speaks of what was written over it.
//!
//! Promises what `mutex` does. A server that fails over loses fewer locks, not none: a replica without the key may still
//! be the one that is promoted, and a replica that has it may not have it on disk.

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
