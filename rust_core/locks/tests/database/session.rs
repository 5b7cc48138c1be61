//! What a client's own session may have open, as far as its commands and replies show.

use locks::{CallId, Command, ConnectionKind, ErrorKind, Opens, Reply, Statement};

#[derive(Debug, Default)]
pub(crate) struct Open {
    pub(crate) transaction: bool,
    /// An advisory lock of the session may be held.
    pub(crate) lock: bool,
}

impl Open {
    pub(crate) fn nothing(&self) -> bool {
        !self.transaction && !self.lock
    }

    pub(crate) fn sent(&mut self, statement: Statement) {
        if statement.opens() != Opens::Nothing {
            assert!(self.nothing(), "{statement:?} while there is {self:?}");
            self.transaction = true;
        }
        if takes_for_session(statement) {
            assert!(self.nothing(), "{statement:?} while there is {self:?}");
            self.lock = true;
        }
    }

    pub(crate) fn answered(&mut self, statement: Statement, reply: Reply) {
        match (statement, reply) {
            (Statement::Rollback, Reply::Ok)
            | (Statement::Commit, Reply::Ok | Reply::Error(ErrorKind::InFailedTransaction))
            | (Statement::SerializableWrite, Reply::Int(_)) => self.transaction = false,
            // A transaction that cannot be committed is rolled back.
            (Statement::Commit, Reply::Error(kind)) if kind.is_contention() => self.transaction = false,
            (Statement::AdvisoryTry | Statement::AdvisoryTryShared, Reply::Int(0))
            | (Statement::AdvisoryUnlock | Statement::AdvisoryUnlockShared, Reply::Int(0 | 1)) => self.lock = false,
            _ => {}
        }
    }

    /// The end of the session ends both.
    pub(crate) fn closed(&mut self) {
        *self = Self::default();
    }
}

fn takes_for_session(statement: Statement) -> bool {
    matches!(
        statement,
        Statement::AdvisoryLock | Statement::AdvisoryLockShared | Statement::AdvisoryTry | Statement::AdvisoryTryShared
    )
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) over: ConnectionKind,
    pub(crate) command: Command,
    /// The client's own connection that the call went over.
    pub(crate) connection: u64,
    pub(crate) reply: Option<Reply>,
}

/// Whether a call met another transaction, or read a value that may be old since then, and was sent again (it is among
/// `later`).
pub(crate) fn was_sent_again(asked: Command, reply: Option<Reply>, later: impl IntoIterator<Item = Command>) -> bool {
    let Command::Sql { statement, .. } = asked else {
        return false;
    };
    let undone = matches!(reply, Some(Reply::Error(kind)) if kind.is_contention());
    (undone || statement == Statement::ValueRead)
        && later
            .into_iter()
            .any(|command| matches!(command, Command::Sql { statement: again, .. } if again == statement))
}

/// Whether this reply grants what the command asks for.
pub(crate) fn grants(command: Command, reply: Reply) -> bool {
    let Command::Sql { statement, .. } = command else {
        return false;
    };
    match (good(command), reply) {
        (Reply::Ok, reply) => reply == Reply::Ok,
        // A row of any id; a version or a value of at least 0.
        (_, Reply::Int(_)) if statement.sql().contains("FOR ") => true,
        (_, Reply::Int(number)) if reads(statement) => number >= 0,
        (_, Reply::Int(number)) if statement == Statement::FenceTake => number > 0,
        (_, reply) => reply == Reply::Int(1),
    }
}

fn reads(statement: Statement) -> bool {
    matches!(
        statement,
        Statement::VersionRead | Statement::SerializableRead | Statement::ValueRead
    )
}

/// The reply that lets the request succeed.
pub(crate) fn good(command: Command) -> Reply {
    match command {
        Command::SetNxPx { .. } => Reply::Ok,
        Command::CompareAndDelete { .. } => Reply::Int(1),
        Command::Sql { statement, .. } => match statement {
            Statement::AdvisoryLock
            | Statement::AdvisoryLockShared
            | Statement::TransactionLock
            | Statement::TransactionLockShared
            | Statement::Commit
            | Statement::Rollback => Reply::Ok,
            _ => Reply::Int(1),
        },
        other => panic!("no lock of a database sends {other:?}"),
    }
}

/// Whether the command is the first of an attempt.
pub(crate) fn begins(command: Command) -> bool {
    match command {
        Command::SetNxPx { .. } => true,
        Command::Sql { statement, .. } => {
            let opens = statement.opens() != Opens::Nothing;
            opens || takes_for_session(statement) || statement == Statement::VersionRead
        }
        _ => false,
    }
}
