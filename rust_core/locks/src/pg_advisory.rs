//! `pg-advisory`: an advisory lock of the database, of a session or of a transaction. A client waits in the server's
//! queue, or retries.
//!
//! ```text
//!    scope      Idle ──▶ Asking ──────────────────────▶ Held ──▶ GivingBack ──▶ Idle
//!    session            pg_[try_]advisory_lock                  pg_advisory_unlock
//!                        └── an error ──▶ Undoing: pg_advisory_unlock, in case that it came with the grant
//!    transaction        BEGIN; pg_[try_]advisory_xact_lock      COMMIT
//!                        └── false, an error ──▶ Undoing: ROLLBACK, before any pause
//! ```
//! `SessionLock` has the states and the rest of the algorithm. Promises what it does. In a session that other clients
//! use too, it promises nothing: the database counts two locks of one session as one holder, so such a lock excludes
//! nobody.

use crate::postgres::{Scope, Session, Wait};
use crate::recipe::{Answer, Was};
use crate::session::InSession;
use crate::{ErrorKind, Lane, Mode, Reply, Statement};

#[derive(Debug)]
pub(crate) struct PgAdvisory {
    pub(crate) scope: Scope,
    pub(crate) wait: Wait,
    pub(crate) session: Session,
}

impl InSession for PgAdvisory {
    fn lane(&self) -> Lane {
        match self.session {
            Session::Own => Lane::Own,
            Session::Shared => Lane::Shared,
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
        unreachable!("it takes one key")
    }

    fn taken(&self, reply: Reply) -> Answer {
        match (self.wait, reply) {
            // The functions that wait return nothing.
            (Wait::Block, Reply::Ok) | (Wait::Try | Wait::SkipLocked, Reply::Int(1)) => Answer::Granted(None),
            (Wait::Try | Wait::SkipLocked, Reply::Int(0)) => Answer::Busy,
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
            ) => Answer::Odd,
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

    fn give_back(&self, mode: Mode) -> Statement {
        match self.scope {
            Scope::Session => unlock(mode),
            Scope::Transaction => Statement::Commit,
        }
    }

    fn given_back(&self, reply: Reply) -> Option<Was> {
        match self.scope {
            Scope::Session => Was::of_unlock(reply),
            Scope::Transaction => Was::of_commit(reply),
        }
    }
}

const fn unlock(mode: Mode) -> Statement {
    match mode {
        Mode::Exclusive => Statement::AdvisoryUnlock,
        Mode::Shared => Statement::AdvisoryUnlockShared,
    }
}

impl Was {
    /// The reply to an unlock; false means that the lock was not held.
    const fn of_unlock(reply: Reply) -> Option<Self> {
        match reply {
            Reply::Int(1) => Some(Self::Ours),
            Reply::Int(0) => Some(Self::NotOurs),
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
            Reply::Ok => Some(Self::Ours),
            Reply::Error(ErrorKind::InFailedTransaction) => Some(Self::NotOurs),
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
