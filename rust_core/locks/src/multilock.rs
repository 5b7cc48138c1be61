//! `multilock`: several keys as one lock, on one server or on several: one script takes all keys of a server or none,
//! and a quorum of servers decides. As redlock4j does it. `quorum` has the diagram of the states.
//!
//! The keys are sorted, and each is taken once, so that all clients name them alike. If another client holds one key,
//! the script releases what it has taken before it replies. The whole set has one validity time, as in `redlock`; a
//! release deletes on all servers those keys that still hold the token.
//!
//! Promises exclusion over each key of the set, as `redlock` does, and no deadlock: nobody waits while holding a part.
//! Does not promise anything that `redlock` does not; with `nodes: 1` it depends on that one server.

use crate::calls::Taken;
use crate::quorum::{Quorum, QuorumRules, Resource};
use crate::{Command, KeyList, Reply, Script, Token, Traits};

pub(crate) const fn traits(rules: QuorumRules) -> Traits {
    Traits {
        name: "multilock",
        takes_many_keys: true,
        nodes: Some(rules.nodes),
        scripts: &[Script::TakeAll, Script::ReleaseAll],
        ..Traits::LEASE
    }
}

pub(crate) type Multilock = Quorum<KeyList>;

impl Resource for KeyList {
    fn of(keys: KeyList) -> Self {
        keys.sorted()
    }

    fn take(self, token: Token, lease_ms: u64) -> Command {
        Command::all_by_sha(Script::TakeAll, self, token, lease_ms)
    }

    fn release(self, token: Token) -> Command {
        // The script takes no lease.
        Command::all_by_sha(Script::ReleaseAll, self, token, 0)
    }

    fn take_reply(reply: Reply) -> Option<Taken> {
        match reply {
            Reply::Int(1) => Some(Taken::Mine),
            Reply::Int(0) => Some(Taken::Theirs),
            _ => None,
        }
    }
}
