//! `pg-advisory`: an advisory lock of the database, of the session or of a transaction, waited for in the server's queue
//! or tried again and again.
//!
//! ```text
//!    scope      Idle ──▶ Asking ──────────────────────▶ Held ──▶ GivingBack ──▶ Idle
//!    session            pg_[try_]advisory_lock                  pg_advisory_unlock
//!                        └── an error ──▶ Undoing: pg_advisory_unlock, in case that it came with the grant
//!    transaction        BEGIN; pg_[try_]advisory_xact_lock      COMMIT
//!                        └── false, an error ──▶ Undoing: ROLLBACK, before any pause
//! ```
//! The states are those of `BySession`, which tells the rest. Promises what it does. In a session that others use, too,
//! it promises nothing: the database counts what one session takes twice as one holder, so it excludes nobody.

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
    /// Of an unlock: false when it was not held.
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

    /// Of a `COMMIT`. One that was answered with `ROLLBACK` ends a transaction that had failed before, and with that its
    /// locks.
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
