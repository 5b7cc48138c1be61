//! What a request tries to own on a server, and what it holds there.

use crate::{Command, Key, Nanos, Script, ScriptForm, Token};

/// A key, and the token under which an attempt tries to own it. Each attempt draws a fresh token; in a queue the token
/// also names the place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) key: Key,
    pub(crate) token: Token,
}

/// What a client holds, and until when it may believe in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<C = Attempt> {
    pub(crate) attempt: C,
    pub(crate) until: Nanos,
}

impl Attempt {
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
