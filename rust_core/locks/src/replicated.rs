//! `replicated`: a `mutex` that counts as granted only once enough replicas have it: `SET key token NX PX ttl`, then
//! `WAIT replicas timeout`. If too few replicas confirmed in time, the lock is released and tried again as the policy
//! says.
//!
//! `Leased` has its states; two commands lie between `Asking` and `Held`. All commands use the client's own connection,
//! because `WAIT` blocks it and counts only what was written over it.
//!
//! Promises what `mutex` does. A server that fails over loses fewer locks, but may lose some: a replica without the key
//! may be promoted, and a replica with the key may not have it on disk.

use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, TakeReply};
use crate::{Command, ConnectionKind, Reply};

#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) replicas: u32,
    pub(crate) timeout_ms: u32,
}

impl LeaseProtocol for Replicated {
    const CONNECTION: ConnectionKind = ConnectionKind::Own;

    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        attempt.set_if_absent(lease_ms)
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        TakeReply::of_set(reply)
    }

    fn confirm(&self) -> Option<Command> {
        Some(Command::Wait {
            replicas: self.replicas.into(),
            timeout_ms: self.timeout_ms.into(),
        })
    }

    fn confirm_reply(&self, reply: Reply) -> TakeReply {
        match reply {
            Reply::Int(count) if count >= i64::from(self.replicas) => TakeReply::Granted(None),
            Reply::Int(0..) => TakeReply::Busy,
            Reply::Int(_)
            | Reply::Ok
            | Reply::Nil
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => TakeReply::Unexpected,
        }
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        attempt.compare_and_delete()
    }
}
