//! Script steps for the database locks.

use locks::{Command, ConnectionKind, ErrorKind, Key, KeyList, Lasts, Outcome, Reply, ServerId, Statement, Token};

use crate::words::{KEY, Script};

/// The reply with a row.
pub(crate) const ROW: Reply = Reply::Int(0);

/// All kinds of error except conflicts and the end of the session.
pub(crate) const OTHER_ERRORS: [ErrorKind; 11] = [
    ErrorKind::NoScript,
    ErrorKind::ReadOnly,
    ErrorKind::Loading,
    ErrorKind::Moved,
    ErrorKind::OutOfMemory,
    ErrorKind::WrongType,
    ErrorKind::NoAuth,
    ErrorKind::InFailedTransaction,
    ErrorKind::TooManyConnections,
    ErrorKind::Other,
    ErrorKind::Unexpected,
];

/// The errors with which the server ends a wait: the usual one, and the one when its limit passed just as the lock was
/// granted.
pub(crate) const WAITED_OUT: [ErrorKind; 2] = [ErrorKind::LockNotAvailable, ErrorKind::Canceled];

pub(crate) const fn sql(statement: Statement, key: Key, numbers: [u64; 2]) -> Command {
    Command::Sql {
        statement,
        key,
        token: Token::NONE,
        numbers,
    }
}

pub(crate) fn keys(all: &[u32]) -> KeyList {
    let all: Vec<Key> = all.iter().map(|&key| Key(key)).collect();
    KeyList::new(&all).expect("few keys")
}

impl Script {
    /// A statement in the client's own session, guarded by the reply timeout.
    pub(crate) fn expect_own_sql(self, label: &'static str, statement: Statement, numbers: [u64; 2]) -> Self {
        self.expect_own(label, sql(statement, KEY, numbers)).expect_guard()
    }

    /// A statement in a shared session, guarded by the reply timeout.
    pub(crate) fn expect_sql(self, label: &'static str, statement: Statement, numbers: [u64; 2]) -> Self {
        self.expect_command(label, sql(statement, KEY, numbers))
    }

    /// A statement to the second server, guarded or not.
    pub(crate) fn expect_database(self, label: &'static str, statement: Statement, numbers: [u64; 2]) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(1), ConnectionKind::SharedByClients);
        assert_eq!(command, sql(statement, KEY, numbers), "{label}");
        script
    }

    pub(crate) fn expect_held_by_session(self) -> Self {
        self.expect(Outcome::Held {
            lasts: Lasts::Session,
            fence: None,
        })
    }

    /// Held by a lock that excludes nobody.
    pub(crate) fn expect_begun(self) -> Self {
        self.expect(Outcome::Held {
            lasts: Lasts::Unbounded,
            fence: None,
        })
    }

    pub(crate) fn error(self, label: &str, kind: ErrorKind) -> Self {
        self.reply(label, Reply::Error(kind))
    }
}
