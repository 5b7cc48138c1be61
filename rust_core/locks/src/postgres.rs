//! What the locks of a database have in common: the words of their arguments, and the statements of each.

use crate::Statement;

/// How long a lock of the database lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Until it is unlocked, or the session ends.
    Session,
    /// Until the transaction ends: safe behind a pooler that lends sessions by the transaction.
    Transaction,
}

/// What a client does when another holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// It waits in the server's queue.
    Block,
    /// The server refuses at once, and the retry policy decides.
    Try,
    /// The server answers as though the row did not exist, and the retry policy decides.
    SkipLocked,
}

/// Whose session a lock is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Session {
    /// This client's own.
    Own,
    /// One that other clients use, too. The database counts what one session takes twice as one holder, so this excludes
    /// nobody: a classic mistake, here to be seen.
    Shared,
}

pub(crate) const fn advisory_statements(scope: Scope, wait: Wait) -> &'static [Statement] {
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

pub(crate) const fn row_statements(wait: Wait) -> &'static [Statement] {
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
