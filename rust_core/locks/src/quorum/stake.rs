//! What a lock over several servers takes on each of them.

use std::fmt::Debug;

use crate::{Command, Keys, Reply, ScriptForm, Token};

/// What a client takes on each of the servers.
pub(crate) trait Stake: Copy + Debug {
    fn of(keys: Keys) -> Self;
    fn take(self, token: Token, lease_ms: u64, form: ScriptForm) -> Command;
    /// Deletes what holds the token, and answers 1 when all of it still did, else 0.
    fn give_back(self, token: Token, form: ScriptForm) -> Command;
    /// What the answer to `take` says; `None` for one that it never gives.
    fn taken(reply: Reply) -> Option<Taken>;
}

pub(crate) enum Taken {
    Mine,
    /// Somebody else's.
    Theirs,
}
