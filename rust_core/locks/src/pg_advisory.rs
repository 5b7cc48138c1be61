//! `pg-advisory`: an advisory lock of the database, of a session or of a transaction. A client waits in the server's
//! queue, or retries.
//!
//! ```text
//!    scope      Idle ──▶ Asking ──────────────────────▶ Held ──▶ Releasing ───▶ Idle
//!    session            pg_[try_]advisory_lock                  pg_advisory_unlock
//!                        └── an error ──▶ Undoing: pg_advisory_unlock, in case that it came with the grant
//!    transaction        BEGIN; pg_[try_]advisory_xact_lock      COMMIT
//!                        └── false, an error ──▶ Undoing: ROLLBACK, before any pause
//! ```
//! `SessionLock` has the states and the rest of the algorithm. Promises what it does. In a session that other clients
//! use too, it promises nothing: the database counts two locks of one session as one holder, so such a lock excludes
//! nobody.

use crate::lease_protocol::{ReleaseReply, TakeReply};
use crate::postgres::{Scope, SessionOwner, Wait};
use crate::session_lock::SessionStatements;
use crate::{ConnectionKind, ErrorKind, Mode, Reply, Statement};

#[derive(Debug)]
pub(crate) struct PgAdvisory {
    pub(crate) scope: Scope,
    pub(crate) wait: Wait,
    pub(crate) session: SessionOwner,
}

impl SessionStatements for PgAdvisory {
    fn connection(&self) -> ConnectionKind {
        match self.session {
            SessionOwner::ThisClient => ConnectionKind::Own,
            SessionOwner::AllClients => ConnectionKind::SharedByClients,
        }
    }

    fn blocks(&self) -> bool {
        self.wait == Wait::Block
    }

    fn take(&self, mode: Mode) -> Statement {
        match (self.scope, self.wait, mode) {
            (Scope::Session, Wait::Block, Mode::Exclusive) => Statement::AdvisoryLock,
            (Scope::Session, Wait::Block, Mode::Shared) => Statement::AdvisoryLockShared,
            (Scope::Session, Wait::Try | Wait::SkipLocked, Mode::Exclusive) => Statement::AdvisoryTry,
            (Scope::Session, Wait::Try | Wait::SkipLocked, Mode::Shared) => Statement::AdvisoryTryShared,
            (Scope::Transaction, Wait::Block, Mode::Exclusive) => Statement::TransactionLock,
            (Scope::Transaction, Wait::Block, Mode::Shared) => Statement::TransactionLockShared,
            (Scope::Transaction, Wait::Try | Wait::SkipLocked, Mode::Exclusive) => Statement::TransactionTry,
            (Scope::Transaction, Wait::Try | Wait::SkipLocked, Mode::Shared) => Statement::TransactionTryShared,
        }
    }

    fn take_also(&self, _mode: Mode) -> Statement {
        unreachable!("an advisory lock takes one key")
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        match (self.wait, reply) {
            // The functions that wait return nothing.
            (Wait::Block, Reply::Ok) | (Wait::Try | Wait::SkipLocked, Reply::Int(1)) => TakeReply::Granted(None),
            (Wait::Try | Wait::SkipLocked, Reply::Int(0)) => TakeReply::Busy,
            (
                Wait::Block | Wait::Try | Wait::SkipLocked,
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Error(_)
                | Reply::Other,
            ) => TakeReply::Unexpected,
        }
    }

    fn undo_refusal(&self) -> Option<Statement> {
        match self.scope {
            Scope::Session => None,
            Scope::Transaction => Some(Statement::Rollback),
        }
    }

    fn undo(&self, mode: Mode) -> Statement {
        match self.scope {
            Scope::Session => unlock(mode),
            Scope::Transaction => Statement::Rollback,
        }
    }

    fn undone(&self, reply: Reply) -> bool {
        match self.scope {
            Scope::Session => matches!(reply, Reply::Int(0 | 1)),
            Scope::Transaction => reply == Reply::Ok,
        }
    }

    fn release(&self, mode: Mode) -> Statement {
        match self.scope {
            Scope::Session => unlock(mode),
            Scope::Transaction => Statement::Commit,
        }
    }

    fn release_reply(&self, reply: Reply) -> Option<ReleaseReply> {
        match self.scope {
            Scope::Session => ReleaseReply::of_unlock(reply),
            Scope::Transaction => ReleaseReply::of_commit(reply),
        }
    }
}

const fn unlock(mode: Mode) -> Statement {
    match mode {
        Mode::Exclusive => Statement::AdvisoryUnlock,
        Mode::Shared => Statement::AdvisoryUnlockShared,
    }
}

impl ReleaseReply {
    /// The reply to an unlock; false means that the lock was not held.
    const fn of_unlock(reply: Reply) -> Option<Self> {
        match reply {
            Reply::Int(1) => Some(Self::WasHeld),
            Reply::Int(0) => Some(Self::WasLost),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => None,
        }
    }

    /// The reply to a `COMMIT`. The answer `ROLLBACK` means that the transaction had failed earlier, and its locks
    /// ended then.
    pub(crate) const fn of_commit(reply: Reply) -> Option<Self> {
        match reply {
            Reply::Ok => Some(Self::WasHeld),
            Reply::Error(ErrorKind::InFailedTransaction) => Some(Self::WasLost),
            Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => None,
        }
    }
}
