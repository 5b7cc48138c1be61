//! What a lock can ask of a server.

use crate::{EntryId, Key, Keys, Script, Statement, Token};

/// A command about the keys of a lock. Besides its name a lock may have companions, keys whose names begin with its own:
/// see `Companion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET key token NX PX lease_ms`
    SetNxPx { key: Key, token: Token, lease_ms: u64 },
    /// Delete the key only when it holds `token`: Lua, or the server's own command where it has one.
    CompareAndDelete { key: Key, token: Token, form: ScriptForm },
    /// `SETNX key 1`
    SetNx { key: Key },
    /// `EXPIRE key seconds`
    Expire { key: Key, seconds: u64 },
    /// `DEL key`
    Del { key: Key },
    /// A script about one lock. `KEYS`: its name and the script's companions; `ARGV`: the token, then as many of
    /// `numbers` as the script takes.
    Run {
        script: Script,
        form: ScriptForm,
        key: Key,
        token: Token,
        numbers: [u64; 2],
    },
    /// A script about several locks. `KEYS`: their names; `ARGV`: the token, then the lease.
    RunAll {
        script: Script,
        form: ScriptForm,
        keys: Keys,
        token: Token,
        lease_ms: u64,
    },
    /// `WAIT replicas timeout_ms`. Blocks.
    Wait { replicas: u64, timeout_ms: u64 },
    /// `BLPOP bell timeout`, the bell of `token`: the doorbell list that only its waiter listens to, called
    /// `<name>:bell:<token>`. The timeout is never 0, which would be none. Blocks.
    AwaitBell { key: Key, token: Token, timeout_ms: u64 },
    /// `RENAME next bell`: what lies ready under the name of `token`, called `<name>:next:<token>`, becomes the bell of
    /// `heir`, and rings it.
    HandOver { key: Key, token: Token, heir: Token },
    /// `SUBSCRIBE channel`, the channel of the key.
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
    /// A block of a database's protocol; `token` and `numbers` where its statement has such parameters.
    Sql {
        statement: Statement,
        key: Key,
        token: Token,
        numbers: [u64; 2],
    },
}

/// How a script travels: by its SHA-1, or, after `NOSCRIPT`, as its whole text, which also caches it on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptForm {
    Sha,
    Source,
}

impl Command {
    /// The token that it carries, if it is a command of one attempt.
    pub const fn token(&self) -> Option<Token> {
        match *self {
            Self::SetNxPx { token, .. }
            | Self::CompareAndDelete { token, .. }
            | Self::Run { token, .. }
            | Self::RunAll { token, .. }
            | Self::AwaitBell { token, .. }
            | Self::HandOver { token, .. }
            | Self::AddTicket { token, .. }
            | Self::ReadTicket { token, .. } => Some(token),
            Self::Sql { statement, token, .. } if statement.takes_token() => Some(token),
            Self::Sql { .. }
            | Self::SetNx { .. }
            | Self::Expire { .. }
            | Self::Del { .. }
            | Self::Wait { .. }
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::CreateQueue { .. }
            | Self::AckTicket { .. }
            | Self::DropTicket { .. }
            | Self::TrimQueue { .. } => None,
        }
    }

    /// The same command as whole text, when it is a script that was sent by its SHA-1: what to send after `NOSCRIPT`.
    pub fn as_source(mut self) -> Option<Self> {
        match &mut self {
            Self::CompareAndDelete { form, .. } | Self::Run { form, .. } | Self::RunAll { form, .. }
                if *form == ScriptForm::Sha =>
            {
                *form = ScriptForm::Source;
                Some(self)
            }
            _ => None,
        }
    }
}
