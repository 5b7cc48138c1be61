//! The kinds of guarded works, and what each sends.

use crate::{Command, Fence, Key, Nanos, Script, ServerId, Statement, Token};

/// What the work does to the resource of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// Reads a number and writes the next one, as an absolute value.
    Counter,
    /// Reads how much is left and takes one, if there is one.
    Stock,
    /// Reads the balances of two accounts and writes both, as absolute values: moves some from the larger to the smaller.
    Transfer,
    /// As `Counter`, with the fence of the lock in both. The resource refuses a lower fence than any before: once the
    /// next holder has read, no earlier holder writes.
    FencedWrite,
}

/// The rules of all works of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardRules {
    pub kind: GuardKind,
    /// The whole work is one step on the server, without a read before it; only `Counter` and `Stock`.
    pub is_atomic: bool,
    /// The server of the resource: it comes after the servers of the lock.
    pub server: ServerId,
    /// Whether that server is a database.
    pub is_database: bool,
    pub reply_timeout: Nanos,
}

impl GuardKind {
    /// The scripts of its works on a Redis server.
    pub const fn scripts(self) -> &'static [Script] {
        match self {
            Self::Counter => &[Script::GuardRead, Script::GuardWrite, Script::GuardCount],
            Self::Stock => &[Script::GuardRead, Script::GuardTake, Script::GuardBuy],
            Self::Transfer => &[Script::GuardRead, Script::GuardWrite],
            Self::FencedWrite => &[Script::GuardFencedRead, Script::GuardFencedWrite],
        }
    }

    /// The statements of its works on a database.
    pub const fn statements(self) -> &'static [Statement] {
        match self {
            Self::Counter => &[Statement::ValueRead, Statement::GuardWrite, Statement::GuardCount],
            Self::Stock => &[Statement::ValueRead, Statement::GuardTake, Statement::GuardBuy],
            Self::Transfer => &[Statement::ValueRead, Statement::GuardWrite],
            Self::FencedWrite => &[Statement::GuardFencedRead, Statement::GuardFencedWrite],
        }
    }

    /// How many keys a work concerns.
    pub const fn keys(self) -> usize {
        match self {
            Self::Transfer => 2,
            Self::Counter | Self::Stock | Self::FencedWrite => 1,
        }
    }
}

impl GuardRules {
    /// The command that reads the resource of a key.
    pub(super) const fn read(&self, key: Key, fence: u64) -> Command {
        match self.kind {
            GuardKind::FencedWrite => {
                self.command(Script::GuardFencedRead, Statement::GuardFencedRead, key, [fence, 0])
            }
            GuardKind::Counter | GuardKind::Stock | GuardKind::Transfer => {
                self.command(Script::GuardRead, Statement::ValueRead, key, [0, 0])
            }
        }
    }

    /// The command that writes it: absolute writes set it to `value`.
    pub(super) const fn write(&self, key: Key, fence: u64, value: u64) -> Command {
        let (script, statement, numbers) = match (self.kind, self.is_atomic) {
            (GuardKind::Counter, true) => (Script::GuardCount, Statement::GuardCount, [0, 0]),
            (GuardKind::Stock, true) => (Script::GuardBuy, Statement::GuardBuy, [0, 0]),
            (GuardKind::Stock, false) => (Script::GuardTake, Statement::GuardTake, [0, 0]),
            (GuardKind::Counter, false) | (GuardKind::Transfer, _) => {
                (Script::GuardWrite, Statement::GuardWrite, [value, 0])
            }
            (GuardKind::FencedWrite, _) => (Script::GuardFencedWrite, Statement::GuardFencedWrite, [fence, value]),
        };
        self.command(script, statement, key, numbers)
    }

    const fn command(&self, script: Script, statement: Statement, key: Key, numbers: [u64; 2]) -> Command {
        if self.is_database {
            statement.about(key, numbers)
        } else {
            Command::by_sha(script, key, Token::NONE, numbers)
        }
    }
}

/// The fence as a number of a command; 0 without one.
pub(super) fn number_of(fence: Option<Fence>) -> u64 {
    fence.map_or(0, |fence| fence.0.get())
}
