//! `pg-lease`: a row with an owner and an expiry, taken and released by one statement each. No transaction stays open,
//! so it works behind a pooler and needs no session of its own.
//!
//! ```text
//!          Acquire           a fence, in time      Release, Cancel
//!    Idle ─────────▶ Asking ────────────────▶ Held ───────────────▶ Releasing ───▶ Idle
//!                    │ ▲ │                                           ▲
//!             no row │ │ └── a fence, too late ──────────────────────┘
//!                    ▼ │ Woke
//!                   Pausing
//! ```
//! `Leased` has the states and the rest of the algorithm. Promises what it does, on the clock of the database:
//! exclusion while no work outlives the lease, and fences that grow with every grant. A release that meets another
//! transaction is sent again until the reply timeout has passed. A row is never deleted, so its fence never decreases.

use std::num::NonZeroU64;

use crate::calls::is_conflict;
use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, ReleaseReply, TakeReply};
use crate::{Command, ErrorKind, Fence, Reply, Statement};

#[derive(Debug)]
pub(crate) struct PgLease;

impl LeaseProtocol for PgLease {
    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        Statement::LeaseTake.for_owner(attempt.key, attempt.token, [lease_ms, 0])
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        match reply {
            Reply::Int(count) => match fence(count) {
                Some(fence) => TakeReply::Granted(Some(fence)),
                // Another program has written the column.
                None => TakeReply::Unexpected,
            },
            Reply::Nil => TakeReply::Busy,
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                TakeReply::Unexpected
            }
        }
    }

    /// The statement waits for transactions that write the row at this moment. If the server ends that wait, or, at a
    /// stricter isolation level, ends the statement, one of those transactions has the row.
    fn is_refusal(&self, kind: ErrorKind) -> bool {
        is_conflict(kind)
    }

    /// A client that tries to take the row reads it, which is enough to make this statement fail at the stricter
    /// isolation levels. Without a retry the row would stay taken until its lease ends.
    fn retries_release(&self, kind: ErrorKind) -> bool {
        is_conflict(kind)
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        Statement::LeaseRelease.for_owner(attempt.key, attempt.token, [0, 0])
    }

    fn release_reply(&self, reply: Reply) -> Option<ReleaseReply> {
        match reply {
            Reply::Int(_) => Some(ReleaseReply::WasHeld),
            Reply::Nil => Some(ReleaseReply::WasLost),
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => None,
        }
    }
}

/// The fence in a column that counts up from 0: after the first grant it is 1.
pub(crate) fn fence(count: i64) -> Option<Fence> {
    u64::try_from(count).ok().and_then(NonZeroU64::new).map(Fence)
}
