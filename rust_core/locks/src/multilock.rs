//! `multilock`: several keys as one lock, on one server or on several: on each server all keys or none, in one script, and
//! a quorum of servers. The way of redlock4j. The states are drawn in `quorum`.
//!
//! The keys are sorted, and each is taken once, so that all clients name them alike. Where one key is somebody else's,
//! the script gives back what it has taken before it answers. One validity for the whole set, as in `redlock`; the
//! give-back deletes of all keys on all servers what still holds the token.
//!
//! Promises exclusion over each key of the set, as `redlock` does, and no deadlock: nobody waits while holding a part.
//! Does not promise: anything that `redlock` does not; with `nodes: 1` it depends on that one server.

use crate::quorum::{Quorum, Stake, Taken};
use crate::{Command, Keys, Reply, Script, ScriptForm, Token};

pub(crate) type Multilock = Quorum<Keys>;

impl Stake for Keys {
    fn of(keys: Keys) -> Self {
        keys.sorted()
    }

    fn take(self, token: Token, lease_ms: u64, form: ScriptForm) -> Command {
        run_all(Script::TakeAll, self, token, lease_ms, form)
    }

    fn give_back(self, token: Token, form: ScriptForm) -> Command {
        // The script does not ask for a lease.
        run_all(Script::GiveBackAll, self, token, 0, form)
    }

    fn taken(reply: Reply) -> Option<Taken> {
        match reply {
            Reply::Int(1) => Some(Taken::Mine),
            Reply::Int(0) => Some(Taken::Theirs),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => None,
        }
    }
}

const fn run_all(script: Script, keys: Keys, token: Token, lease_ms: u64, form: ScriptForm) -> Command {
    Command::RunAll {
        script,
        form,
        keys,
        token,
        lease_ms,
    }
}
