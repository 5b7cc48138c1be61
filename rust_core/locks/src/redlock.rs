//! `redlock`: takes with `SET key token NX PX ttl` on several independent servers, and releases with a
//! compare-and-delete on all of them (redis.io, "Distributed Locks with Redis"). `quorum` has the diagram of the
//! states.
//!
//! Held when more than half of the servers granted and some of the lease is left at the moment of the return: counted
//! from before the first send, less the clock-skew margin (`drift_factor` and 2 ms). With `fanout: multiplexed` all
//! servers are asked before any has replied, and a quorum is enough; with `sequential` they are asked one after
//! another, to the last. Either way the attempt ends as soon as no quorum can be reached any more: with an even number
//! of servers, two clients with half of them each are both refused.
//!
//! Promises exclusion while fewer than half of the servers are down, slow, or lose replies; and that each request
//! settles within the node timeouts of its last calls (a release within the reply timeout). A release goes to every
//! server that was asked, on the same connection as the `SET` before it. Does not promise safety when a server that
//! granted comes back without its data inside the lease, against clocks that jump, or for work past the lease.

use crate::calls::Taken;
use crate::quorum::{Quorum, QuorumRules, Resource};
use crate::{Command, Key, KeyList, Reply, Script, Token, Traits};

pub(crate) const fn traits(rules: QuorumRules) -> Traits {
    Traits {
        name: "redlock",
        nodes: Some(rules.nodes),
        scripts: &[Script::CompareAndDelete],
        ..Traits::LEASE
    }
}

pub(crate) type Redlock = Quorum<Key>;

impl Resource for Key {
    fn of(keys: KeyList) -> Self {
        keys.only()
    }

    fn take(self, token: Token, lease_ms: u64) -> Command {
        Command::SetNxPx {
            key: self,
            token,
            lease_ms,
        }
    }

    fn release(self, token: Token) -> Command {
        Command::compare_and_delete(self, token)
    }

    fn take_reply(reply: Reply) -> Option<Taken> {
        match reply {
            Reply::Ok => Some(Taken::Mine),
            Reply::Nil => Some(Taken::Theirs),
            _ => None,
        }
    }
}
