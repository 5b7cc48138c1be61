//! `pg-advisory`: an advisory lock of the database, of a session or of a transaction. A client waits in the server's
//! queue, or retries.
//!
//! ```text
//!    scope      Idle ──▶ Take ────────────────────────▶ Held ──▶ Release ─────▶ Idle
//!    session            pg_[try_]advisory_lock                  pg_advisory_unlock
//!                        └── an error ──▶ Undo: pg_advisory_unlock, in case that it came with the grant
//!    transaction        BEGIN; pg_[try_]advisory_xact_lock      COMMIT
//!                        └── false, an error ──▶ Undo: ROLLBACK, before any pause
//! ```
//! `SessionLock` has the states and the rest of the algorithm. Promises what it does. In a session that other clients
//! use too, it promises nothing: the database counts two locks of one session as one holder, so such a lock excludes
//! nobody.

use crate::args::Args;
use crate::calls::Taken;
use crate::postgres::{Scope, SessionOwner, Wait};
use crate::session_lock::{SessionStatements, Step};
use crate::shell::Undone;
use crate::{ConnectionKind, Mode, Reply, SpecError, Statement, Strategy, Traits};

pub(crate) const fn traits(scope: Scope, wait: Wait, session: SessionOwner) -> Traits {
    Traits {
        name: "pg-advisory",
        owns_connection: matches!(session, SessionOwner::ThisClient),
        statements: statements(scope, wait),
        ..Traits::SESSION
    }
}

const fn statements(scope: Scope, wait: Wait) -> &'static [Statement] {
    match (scope, wait) {
        (Scope::Session, Wait::Block) => &[
            Statement::AdvisoryLock,
            Statement::AdvisoryLockShared,
            Statement::AdvisoryUnlock,
            Statement::AdvisoryUnlockShared,
        ],
        (Scope::Session, Wait::Try | Wait::SkipLocked) => &[
            Statement::AdvisoryTry,
            Statement::AdvisoryTryShared,
            Statement::AdvisoryUnlock,
            Statement::AdvisoryUnlockShared,
        ],
        (Scope::Transaction, Wait::Block) => &[
            Statement::TransactionLock,
            Statement::TransactionLockShared,
            Statement::Commit,
            Statement::Rollback,
        ],
        (Scope::Transaction, Wait::Try | Wait::SkipLocked) => &[
            Statement::TransactionTry,
            Statement::TransactionTryShared,
            Statement::Commit,
            Statement::Rollback,
        ],
    }
}

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    Ok(Strategy::PgAdvisory {
        scope: args.choice(
            "scope",
            &[("session", Scope::Session), ("transaction", Scope::Transaction)],
        )?,
        wait: args.choice("wait", &[("block", Wait::Block), ("try", Wait::Try)])?,
        session: args.choice(
            "session",
            &[("own", SessionOwner::ThisClient), ("shared", SessionOwner::AllClients)],
        )?,
    })
}

pub(crate) fn check(scope: Scope, wait: Wait, session: SessionOwner) -> Result<(), SpecError> {
    if session == SessionOwner::AllClients && (scope, wait) != (Scope::Session, Wait::Try) {
        return Err(SpecError::BadArgument {
            strategy: "pg-advisory",
            argument: "session",
            wanted: "`own` unless it is given `scope=session` and `wait=try`: what waits in a session, or opens a \
                     transaction there, stops or mixes up all others that use it"
                .to_owned(),
        });
    }
    Ok(())
}

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

    fn take_reply(&self, reply: Reply) -> Option<Taken> {
        match (self.wait, reply) {
            // The functions that wait return nothing.
            (Wait::Block, Reply::Ok) | (Wait::Try | Wait::SkipLocked, Reply::Int(1)) => Some(Taken::Mine),
            (Wait::Try | Wait::SkipLocked, Reply::Int(0)) => Some(Taken::Theirs),
            (Wait::Block | Wait::Try | Wait::SkipLocked, _) => None,
        }
    }

    fn refusal_leaves_something(&self) -> bool {
        self.scope == Scope::Transaction
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

    fn released(&self, reply: Reply) -> Undone<Step> {
        match self.scope {
            // False means that the lock was not held.
            Scope::Session => Undone::of_script(reply),
            Scope::Transaction => Undone::of_commit(reply),
        }
    }
}

const fn unlock(mode: Mode) -> Statement {
    match mode {
        Mode::Exclusive => Statement::AdvisoryUnlock,
        Mode::Shared => Statement::AdvisoryUnlockShared,
    }
}
