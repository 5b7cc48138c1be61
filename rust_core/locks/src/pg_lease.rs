//! `pg-lease`: a row with an owner and an end, taken and given back by one statement each, in no transaction that stays
//! open: so it lives behind a pooler, and needs no session of its own.
//!
//! ```text
//!          Acquire           a fence, in time      Release, Cancel
//!    Idle ─────────▶ Asking ────────────────▶ Held ───────────────▶ GivingBack ──▶ Idle
//!                    │ ▲ │                                           ▲
//!             no row │ │ └── a fence, too late ──────────────────────┘
//!                    ▼ │ Woke
//!                   Pausing
//! ```
//! The states are those of `Leased`, which tells the rest. Promises what it does, on the clock of the database: exclusion
//! while nobody outlives the lease, and fences that grow with every grant. A release that meets another transaction is sent
//! again until the reply timeout has passed. A row is never deleted, so its fence never goes
//! back.

use std::num::NonZeroU64;

use crate::calls::is_conflict;
use crate::recipe::{Answer, Claim, Recipe, Was};
use crate::{Command, ErrorKind, Fence, Reply, Statement};

#[derive(Debug)]
pub(crate) struct PgLease;

impl Recipe for PgLease {
    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        Statement::LeaseTake.for_owner(claim.key, claim.token, [lease_ms, 0])
    }

    fn taken(&self, reply: Reply) -> Answer {
        match reply {
            Reply::Int(count) => match fence(count) {
                Some(fence) => Answer::Granted(Some(fence)),
                // Somebody else has written the column.
                None => Answer::Odd,
            },
            Reply::Nil => Answer::Busy,
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Answer::Odd
            }
        }
    }

    /// The statement waits for others that write the row at this moment. Where the server lets it wait no longer, or, at
    /// a level of isolation that is not the usual one, not win, one of them has the row.
    fn refuses_by(&self, kind: ErrorKind) -> bool {
        is_conflict(kind)
    }

    /// Whoever tries to take the row reads it, which is enough to fail at the stricter levels of isolation. Left as it is,
    /// the row would stay taken until its lease ends.
    fn is_given_back_again(&self, kind: ErrorKind) -> bool {
        is_conflict(kind)
    }

    fn give_back(&self, claim: Claim) -> Command {
        Statement::LeaseGiveBack.for_owner(claim.key, claim.token, [0, 0])
    }

    fn given_back(&self, reply: Reply) -> Option<Was> {
        match reply {
            Reply::Int(_) => Some(Was::Ours),
            Reply::Nil => Some(Was::NotOurs),
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => None,
        }
    }
}

/// Of a column that counts up from 0: what it holds after the first grant is 1.
pub(crate) fn fence(count: i64) -> Option<Fence> {
    u64::try_from(count).ok().and_then(NonZeroU64::new).map(Fence)
}
