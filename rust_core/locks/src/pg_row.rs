//! `pg-row`: rows locked by a transaction that stays open as long as they are held.
//!
//! ```text
//!    Idle ──▶ Take ─────────────────────────────────▶ Held ──▶ Release ─────▶ Idle
//!             BEGIN; SELECT .. FOR UPDATE | SHARE ..           COMMIT
//!             └── one of the rows not had ──▶ Undo: ROLLBACK, before any pause
//! ```
//! `SessionLock` has the states and the rest of the algorithm. All rows are requested in one write to the socket, in
//! the order in which the client named them: two clients that name them in opposite order can wait for each other, and
//! the server then ends one of the two transactions.
//!
//! Promises what `SessionLock` does; and that a row that does not exist is an error, because it locks nothing. With
//! `SKIP LOCKED` a missing row looks the same as a locked one.

use crate::args::Args;
use crate::calls::Taken;
use crate::postgres::Wait;
use crate::session_lock::{SessionStatements, Step};
use crate::shell::Undone;
use crate::{Mode, Reply, SpecError, Statement, Strategy, Traits};

pub(crate) const fn traits(wait: Wait) -> Traits {
    Traits {
        name: "pg-row",
        takes_many_keys: true,
        statements: statements(wait),
        ..Traits::SESSION
    }
}

const fn statements(wait: Wait) -> &'static [Statement] {
    match wait {
        Wait::Block => &[
            Statement::RowLock,
            Statement::RowLockAlso,
            Statement::RowLockShared,
            Statement::RowLockSharedAlso,
            Statement::Commit,
            Statement::Rollback,
        ],
        Wait::Try => &[
            Statement::RowNowait,
            Statement::RowNowaitAlso,
            Statement::RowNowaitShared,
            Statement::RowNowaitSharedAlso,
            Statement::Commit,
            Statement::Rollback,
        ],
        Wait::SkipLocked => &[
            Statement::RowSkip,
            Statement::RowSkipAlso,
            Statement::RowSkipShared,
            Statement::RowSkipSharedAlso,
            Statement::Commit,
            Statement::Rollback,
        ],
    }
}

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let wait = args.choice(
        "wait",
        &[
            ("block", Wait::Block),
            ("nowait", Wait::Try),
            ("skip-locked", Wait::SkipLocked),
        ],
    )?;
    Ok(Strategy::PgRow { wait })
}

#[derive(Debug)]
pub(crate) struct PgRow {
    pub(crate) wait: Wait,
}

impl SessionStatements for PgRow {
    const MANY_KEYS: bool = true;

    fn blocks(&self) -> bool {
        self.wait == Wait::Block
    }

    fn take(&self, mode: Mode) -> Statement {
        match (self.wait, mode) {
            (Wait::Block, Mode::Exclusive) => Statement::RowLock,
            (Wait::Block, Mode::Shared) => Statement::RowLockShared,
            (Wait::Try, Mode::Exclusive) => Statement::RowNowait,
            (Wait::Try, Mode::Shared) => Statement::RowNowaitShared,
            (Wait::SkipLocked, Mode::Exclusive) => Statement::RowSkip,
            (Wait::SkipLocked, Mode::Shared) => Statement::RowSkipShared,
        }
    }

    fn take_also(&self, mode: Mode) -> Statement {
        match (self.wait, mode) {
            (Wait::Block, Mode::Exclusive) => Statement::RowLockAlso,
            (Wait::Block, Mode::Shared) => Statement::RowLockSharedAlso,
            (Wait::Try, Mode::Exclusive) => Statement::RowNowaitAlso,
            (Wait::Try, Mode::Shared) => Statement::RowNowaitSharedAlso,
            (Wait::SkipLocked, Mode::Exclusive) => Statement::RowSkipAlso,
            (Wait::SkipLocked, Mode::Shared) => Statement::RowSkipSharedAlso,
        }
    }

    fn take_reply(&self, reply: Reply) -> Option<Taken> {
        match (self.wait, reply) {
            // The id of the row; its value does not matter.
            (_, Reply::Int(_)) => Some(Taken::Mine),
            (Wait::SkipLocked, Reply::Nil) => Some(Taken::Theirs),
            (Wait::Block | Wait::Try | Wait::SkipLocked, _) => None,
        }
    }

    fn refusal_leaves_something(&self) -> bool {
        true
    }

    fn undo(&self, _mode: Mode) -> Statement {
        Statement::Rollback
    }

    fn undone(&self, reply: Reply) -> bool {
        reply == Reply::Ok
    }

    fn release(&self, _mode: Mode) -> Statement {
        Statement::Commit
    }

    fn released(&self, reply: Reply) -> Undone<Step> {
        Undone::of_commit(reply)
    }
}
