//! The commands that a lock can send to a server.

use crate::{EntryId, Key, KeyList, Script, ScriptForm, Statement, Token};

/// A command about the keys of a lock. Besides the key of its name, a lock may have companion keys, whose names begin
/// with that name: see `Companion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET key token NX PX lease_ms`
    SetNxPx { key: Key, token: Token, lease_ms: u64 },
    /// Deletes the key only if it holds `token`: by a Lua script, or by the server's own command where it has one.
    CompareAndDelete { key: Key, token: Token, form: ScriptForm },
    /// `SETNX key 1`
    SetNx { key: Key },
    /// `EXPIRE key seconds`
    Expire { key: Key, seconds: u64 },
    /// `DEL key`
    Del { key: Key },
    /// `PTTL key`: how long the key still exists. No machine sends it; a program asks for it that was refused the lock.
    TimeLeft { key: Key },
    /// A script about one lock. `KEYS`: the lock's name and the script's companions. `ARGV`: the token, then as many of
    /// `numbers` as the script takes.
    Run {
        script: Script,
        form: ScriptForm,
        key: Key,
        token: Token,
        numbers: [u64; 2],
    },
    /// A script about several locks. `KEYS`: their names. `ARGV`: the token, then the lease in ms.
    RunAll {
        script: Script,
        form: ScriptForm,
        keys: KeyList,
        token: Token,
        lease_ms: u64,
    },
    /// `WAIT replicas timeout_ms`. Blocks.
    Wait { replicas: u64, timeout_ms: u64 },
    /// `BLPOP list timeout` on the wake-up list of `token`, called `<name>:bell:<token>`, which only that waiter reads.
    /// The timeout is never 0, because 0 means no timeout. Blocks.
    AwaitWakeup { key: Key, token: Token, timeout_ms: u64 },
    /// `RENAME next list`: the list that was prepared for the holder's `token`, called `<name>:next:<token>`, becomes
    /// the wake-up list of `successor` and wakes it.
    HandOver { key: Key, token: Token, successor: Token },
    /// `SUBSCRIBE channel`, the channel of the key
    Subscribe { key: Key },
    /// `UNSUBSCRIBE channel`
    Unsubscribe { key: Key },
    /// `XGROUP CREATE stream group 0 MKSTREAM`
    CreateQueue { key: Key },
    /// `XADD stream * token token`
    AddTicket { key: Key, token: Token },
    /// `XREADGROUP GROUP group token COUNT 1 BLOCK timeout_ms STREAMS stream >`. Blocks.
    ReadTicket { key: Key, token: Token, timeout_ms: u64 },
    /// `XACK stream group entry`
    AckTicket { key: Key, entry: EntryId },
    /// `XDEL stream entry`
    DropTicket { key: Key, entry: EntryId },
    /// `XTRIM stream MAXLEN ~ length`
    TrimQueue { key: Key, length: u64 },
    /// A block of a database's protocol, with `token` and `numbers` if its statement has such parameters.
    Sql {
        statement: Statement,
        key: Key,
        token: Token,
        numbers: [u64; 2],
    },
}

impl Command {
    /// Whether this is how a lock whose servers vote asks one of them.
    pub const fn asks_for_vote(&self) -> bool {
        matches!(
            self,
            Self::SetNxPx { .. }
                | Self::RunAll {
                    script: Script::TakeAll,
                    ..
                }
        )
    }

    /// The command's token, if the command belongs to one attempt.
    pub const fn token(&self) -> Option<Token> {
        match *self {
            Self::SetNxPx { token, .. }
            | Self::CompareAndDelete { token, .. }
            | Self::Run { token, .. }
            | Self::RunAll { token, .. }
            | Self::AwaitWakeup { token, .. }
            | Self::HandOver { token, .. }
            | Self::AddTicket { token, .. }
            | Self::ReadTicket { token, .. } => Some(token),
            Self::Sql { statement, token, .. } if statement.takes_token() => Some(token),
            Self::Sql { .. }
            | Self::SetNx { .. }
            | Self::Expire { .. }
            | Self::Del { .. }
            | Self::TimeLeft { .. }
            | Self::Wait { .. }
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::CreateQueue { .. }
            | Self::AckTicket { .. }
            | Self::DropTicket { .. }
            | Self::TrimQueue { .. } => None,
        }
    }
}
