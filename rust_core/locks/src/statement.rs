//! The SQL statements, their parameters and their results.
//!
//! A command is one *block* of the extended protocol, from its first message to its `Sync`: it may open a transaction
//! before its statement, and end one after it. If any part of a block fails, the server skips the rest of it.

use crate::{Command, Key, Token};

macro_rules! statements {
    ($($(#[$about:meta])* $name:ident = $opens:ident, [$($parameter:ident),*], $sql:literal, $ends:literal;)*) => {
        /// A statement about the row, or the advisory lock, of one key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Statement { $($(#[$about])* $name),* }

        impl Statement {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The SQL text, with `$1` and so on for its parameters and `{locks}` for the table; empty for a block that
            /// only ends a transaction.
            #[cfg(not(feature = "mutants"))]
            pub const fn sql(self) -> &'static str {
                self.honest_sql()
            }

            #[cfg(feature = "mutants")]
            pub fn sql(self) -> &'static str {
                crate::mutants::statement(self, self.honest_sql())
            }

            pub(crate) const fn honest_sql(self) -> &'static str {
                match self { $(Self::$name => $sql),* }
            }

            /// The meaning of `$1` and so on.
            pub const fn parameters(self) -> &'static [Parameter] {
                match self { $(Self::$name => &[$(Parameter::$parameter),*]),* }
            }

            /// The transaction that the block opens before the statement.
            pub const fn opens(self) -> Opens {
                match self { $(Self::$name => Opens::$opens),* }
            }

            /// Whether the block ends the transaction after the statement: `COMMIT`.
            pub const fn commits(self) -> bool {
                match self { $(Self::$name => $ends),* }
            }
        }
    };
}

impl Statement {
    /// Whether the token is among the parameters.
    pub const fn takes_token(self) -> bool {
        matches!(self, Self::LeaseTake | Self::LeaseRelease)
    }

    /// The command with this statement about this key, without an owner: the session is the owner.
    pub(crate) const fn about(self, key: Key, numbers: [u64; 2]) -> Command {
        Command::Sql {
            statement: self,
            key,
            token: Token::NONE,
            numbers,
        }
    }

    pub(crate) const fn for_owner(self, key: Key, token: Token, numbers: [u64; 2]) -> Command {
        Command::Sql {
            statement: self,
            key,
            token,
            numbers,
        }
    }
}

/// What follows when a statement meets another transaction: a serialization failure (40001), a deadlock (40P01), or a
/// lock for which the statement may not wait, or no longer (55P03). The server has undone what the statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The attempt is over. The retry policy says whether another one follows.
    NextAttempt,
    /// The same statement is sent again at once, until the reply timeout has passed since it was first sent.
    SentAgain,
    /// The transaction has ended, and the lock with it: nothing is left to do.
    EndsTheLock,
    /// The statement touches no row and waits for no lock, or it is a guarded work's, which sends nothing again. If it
    /// still fails, a lock closes the session.
    NotExpected,
}

impl Statement {
    /// The same for each statement in every lock that uses it.
    pub const fn on_conflict(self) -> OnConflict {
        match self {
            Self::AdvisoryLock
            | Self::AdvisoryLockShared
            | Self::AdvisoryTry
            | Self::AdvisoryTryShared
            | Self::TransactionLock
            | Self::TransactionLockShared
            | Self::TransactionTry
            | Self::TransactionTryShared
            | Self::RowLock
            | Self::RowLockAlso
            | Self::RowLockShared
            | Self::RowLockSharedAlso
            | Self::RowNowait
            | Self::RowNowaitAlso
            | Self::RowNowaitShared
            | Self::RowNowaitSharedAlso
            | Self::RowSkip
            | Self::RowSkipAlso
            | Self::RowSkipShared
            | Self::RowSkipSharedAlso
            | Self::LeaseTake
            | Self::VersionRead
            | Self::VersionWrite
            | Self::SerializableRead
            | Self::SerializableWrite => OnConflict::NextAttempt,
            Self::LeaseRelease | Self::FenceTake | Self::ValueRead | Self::FencedWrite => OnConflict::SentAgain,
            Self::Commit => OnConflict::EndsTheLock,
            Self::AdvisoryUnlock
            | Self::AdvisoryUnlockShared
            | Self::Rollback
            | Self::GuardWrite
            | Self::GuardCount
            | Self::GuardTake
            | Self::GuardBuy
            | Self::GuardFencedRead
            | Self::GuardFencedWrite => OnConflict::NotExpected,
        }
    }
}

/// The meaning of a statement's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// `bigint`: the first 8 bytes of SHA-256 over the name of the key.
    Hash,
    /// `int`: the index of the key, which is the `id` of its row.
    Row,
    /// `uuid`: the token.
    Token,
    /// `bigint`: the first of the command's numbers.
    First,
    /// `bigint`: the second of the command's numbers.
    Second,
}

/// The transaction that a block opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opens {
    /// None: the statement is a transaction of its own, or part of one that is open.
    Nothing,
    /// `BEGIN`
    Transaction,
    /// `BEGIN ISOLATION LEVEL SERIALIZABLE`
    Serializable,
}

// Each line: the statement, the transaction that its block opens, its parameters, its text, and whether its block
// commits. A row holds: id int, fence bigint, version bigint, value bigint, owner uuid, expires_at timestamptz.
statements! {
    AdvisoryLock = Nothing, [Hash], "SELECT pg_advisory_lock($1)", false;
    AdvisoryLockShared = Nothing, [Hash], "SELECT pg_advisory_lock_shared($1)", false;
    AdvisoryTry = Nothing, [Hash], "SELECT pg_try_advisory_lock($1)", false;
    AdvisoryTryShared = Nothing, [Hash], "SELECT pg_try_advisory_lock_shared($1)", false;
    /// Returns false when the lock was not held, which is an error.
    AdvisoryUnlock = Nothing, [Hash], "SELECT pg_advisory_unlock($1)", false;
    AdvisoryUnlockShared = Nothing, [Hash], "SELECT pg_advisory_unlock_shared($1)", false;
    TransactionLock = Transaction, [Hash], "SELECT pg_advisory_xact_lock($1)", false;
    TransactionLockShared = Transaction, [Hash], "SELECT pg_advisory_xact_lock_shared($1)", false;
    TransactionTry = Transaction, [Hash], "SELECT pg_try_advisory_xact_lock($1)", false;
    TransactionTryShared = Transaction, [Hash], "SELECT pg_try_advisory_xact_lock_shared($1)", false;
    /// Locks the first row of a transaction; the `Also` statements lock its further rows.
    RowLock = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE", false;
    RowLockAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE", false;
    RowLockShared = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE", false;
    RowLockSharedAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE", false;
    RowNowait = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE NOWAIT", false;
    RowNowaitAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE NOWAIT", false;
    RowNowaitShared = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE NOWAIT", false;
    RowNowaitSharedAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE NOWAIT", false;
    RowSkip = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE SKIP LOCKED", false;
    RowSkipAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE SKIP LOCKED", false;
    RowSkipShared = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE SKIP LOCKED", false;
    RowSkipSharedAlso = Nothing, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR SHARE SKIP LOCKED", false;
    /// One atomic step, on the database's clock at the time when the row is locked. The first number is the lease in
    /// ms. Returns the fence, or no row when another client holds the lease.
    LeaseTake = Nothing, [Row, Token, First],
        "INSERT INTO {locks} AS l (id, owner, fence, expires_at) \
         VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 ms') \
         ON CONFLICT (id) DO UPDATE SET owner = $2, fence = l.fence + 1, \
         expires_at = clock_timestamp() + $3 * interval '1 ms' \
         WHERE l.expires_at <= clock_timestamp() RETURNING fence", false;
    /// Keeps the row, so that its fence never decreases. Returns no row when this client no longer held the lease.
    LeaseRelease = Nothing, [Row, Token],
        "UPDATE {locks} SET owner = NULL, expires_at = '-infinity' WHERE id = $1 AND owner = $2 RETURNING id", false;
    VersionRead = Nothing, [Row], "SELECT version FROM {locks} WHERE id = $1", false;
    /// Takes the version that was read; the version also counts the writes. Returns no row when another client has
    /// written since.
    VersionWrite = Nothing, [Row, First],
        "UPDATE {locks} SET version = $2 + 1, value = $2 + 1 WHERE id = $1 AND version = $2 RETURNING id", false;
    SerializableRead = Serializable, [Row], "SELECT value FROM {locks} WHERE id = $1", false;
    /// Takes the value that was read.
    SerializableWrite = Nothing, [Row, First], "UPDATE {locks} SET value = $2 + 1 WHERE id = $1 RETURNING id", true;
    FenceTake = Nothing, [Row], "UPDATE {locks} SET fence = fence + 1 WHERE id = $1 RETURNING fence", false;
    ValueRead = Nothing, [Row], "SELECT value FROM {locks} WHERE id = $1", false;
    /// Takes the writer's fence and the value that it read. Returns no row when a later fence exists: the write is
    /// refused.
    FencedWrite = Nothing, [Row, First, Second],
        "UPDATE {locks} SET value = $3 + 1 WHERE id = $1 AND fence = $2 RETURNING id", false;
    Commit = Nothing, [], "", true;
    Rollback = Nothing, [], "ROLLBACK", false;
    /// The statements of guarded works, about the table of guarded values: see `guard`. Whatever the value is by now, it
    /// becomes the first number.
    GuardWrite = Nothing, [Row, First], "UPDATE {locks} SET value = $2 WHERE id = $1 RETURNING id", false;
    GuardCount = Nothing, [Row], "UPDATE {locks} SET value = value + 1 WHERE id = $1 RETURNING id", false;
    GuardTake = Nothing, [Row], "UPDATE {locks} SET value = value - 1 WHERE id = $1 RETURNING id", false;
    /// Returns no row when nothing is left.
    GuardBuy = Nothing, [Row],
        "UPDATE {locks} SET value = value - 1 WHERE id = $1 AND value >= 1 RETURNING id", false;
    /// Takes the fence of the work, and keeps it: from now on a lower one is refused. Returns no row when a higher fence
    /// came before.
    GuardFencedRead = Nothing, [Row, First],
        "UPDATE {locks} SET fence = $2 WHERE id = $1 AND fence <= $2 RETURNING value", false;
    /// Takes the fence and the value. Returns no row when a higher fence came before.
    GuardFencedWrite = Nothing, [Row, First, Second],
        "UPDATE {locks} SET value = $3 WHERE id = $1 AND fence <= $2 RETURNING id", false;
}
