//! What a request of a lock that waits on the server wants to own.

use crate::{Command, Key, Script, ScriptForm, Token};

/// The token is fresh for each attempt; in a queue it is also the place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) token: Token,
}

impl Claim {
    pub(crate) const fn run(self, script: Script, form: ScriptForm, numbers: [u64; 2]) -> Command {
        Command::Run {
            script,
            form,
            key: self.key,
            token: self.token,
            numbers,
        }
    }
}
