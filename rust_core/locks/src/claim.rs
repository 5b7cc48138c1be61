//! What a request wants to own on a server, and what it has of it.

use crate::{Command, Key, Nanos, Script, ScriptForm, Token};

/// The token is fresh for each attempt; in a queue it is also the place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) token: Token,
}

/// What is held, and how long its holder may believe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<C = Claim> {
    pub(crate) claim: C,
    pub(crate) until: Nanos,
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
