//! What the database locks have in common: the types of their arguments, and the statements of each lock.

use crate::Statement;

/// How long a lock of the database lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Until it is unlocked or the session ends.
    Session,
    /// Until the transaction ends: safe behind a pooler that assigns sessions per transaction.
    Transaction,
}

/// What a client does when another client holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// The client waits in the server's queue.
    Block,
    /// The server refuses at once, and the retry policy decides.
    Try,
    /// The server replies as if the row did not exist, and the retry policy decides.
    SkipLocked,
}

/// Which clients use the session that takes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionOwner {
    /// This client alone.
    ThisClient,
    /// All clients. The database counts two locks of one session as one holder, so this excludes nobody: a classic
    /// mistake, here to be demonstrated.
    AllClients,
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
