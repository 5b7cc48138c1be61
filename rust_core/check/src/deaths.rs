//! Clients that die: what they leave behind, and how long it takes until somebody else is granted it.
//!
//! A holder's belief and work end with its death, so no later grant overlaps them. The lock itself stays on the server
//! until its lease ends, or until the server notices that the holder's session has gone.

use locks::{Key, Nanos};

use crate::ClientId;
use crate::checker::Checker;
use crate::table::State;

/// The most times that are kept.
const MOST_TIMES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Deaths {
    /// Keys whose holder died and that nobody was granted since, with the time of death.
    open: Vec<(Key, Nanos)>,
    pub(crate) orphans: u64,
    pub(crate) freed: Vec<Nanos>,
}

impl Deaths {
    /// Somebody is granted this key.
    #[inline]
    pub(crate) fn granted(&mut self, at: Nanos, key: u32) {
        if !self.open.is_empty() {
            self.freed(at, Key(key));
        }
    }

    #[cold]
    fn freed(&mut self, at: Nanos, key: Key) {
        let freed = &mut self.freed;
        self.open.retain(|&(known, died)| {
            if known == key && freed.len() < MOST_TIMES {
                freed.push(at.since(died));
            }
            known != key
        });
    }
}

impl Checker {
    pub(crate) fn died(&mut self, at: Nanos, id: ClientId) {
        let client = &self.clients[id as usize];
        match client.state {
            // Nothing of it is under way.
            State::Idle | State::Stopped | State::Unconfirmed => {}
            State::Waiting => self.gave_up(at, id),
            State::Holding => {
                let is_orphan = self.sessions.is_none() && at < client.believes_until;
                self.deaths.orphans += u64::from(is_orphan);
                self.deaths.open.push((Key(client.key), at));
                self.stopped(at, id);
            }
        }
    }
}
