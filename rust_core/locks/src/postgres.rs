//! The types of the arguments of database locks.

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
