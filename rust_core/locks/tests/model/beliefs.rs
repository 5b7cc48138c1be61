//! What the clients believe, and whether all of it can be true at once.

use locks::{ConnectionKind, Fence, KeyList, Lasts, Mode, Nanos, ServerId};

use crate::client::{Belief, Client, Phase};
use crate::conditions::Mistake;
use crate::world::Run;

impl Run {
    pub(crate) fn believe(&mut self, client: usize, lasts: Lasts) {
        let (keys, state) = (self.wanted[client], &mut self.clients[client]);
        let local = match lasts {
            Lasts::Until(_) if self.mistake == Mistake::LeaseFromReply => self.lease.until(state.clock.reads(self.now)),
            Lasts::Until(local) => local,
            Lasts::Session | Lasts::Unbounded => Nanos::NEVER,
        };
        let end = state.clock.shows(local);
        let mode = state.mode;
        let connection = state.known_connection(ServerId(0), ConnectionKind::Own);
        let by_session = (lasts == Lasts::Session).then_some(connection);
        let mine = Belief {
            keys,
            mode,
            end,
            by_session,
        };
        state.belief = Some(mine);
        state.served |= self.now >= self.faults.end;
        if self.is_lost(client, mine) {
            self.count("held in a session that is gone");
            return;
        }
        let rival = |(id, other): (usize, &Client)| {
            let belief = other
                .belief
                .filter(|belief| meet(belief.keys, keys) && belief.end > self.now)?;
            let share = mode == Mode::Shared && belief.mode == Mode::Shared;
            (id != client && !share && !self.is_lost(id, belief))
                .then(|| format!("{client} and {id} hold {keys:?} at {:?}: {belief:?}", self.now))
        };
        let rivals: Vec<String> = self.clients.iter().enumerate().filter_map(rival).collect();
        if rivals.len() >= self.strategy.permits() as usize {
            if self.wipes() {
                return self.count("two at once");
            }
            self.violation = rivals.into_iter().next();
        }
        if let Some(overtaken) = self.overtaken(client) {
            self.count("overtaken");
            if self.strategy.is_fifo() && self.faults.none {
                self.violation.get_or_insert(overtaken);
            }
        }
    }

    pub(crate) fn number(&mut self, client: usize, fence: Option<Fence>) {
        let Some(fence) = fence else { return };
        let before = self.fences.insert(self.wanted[client].only(), fence);
        if before >= Some(fence) && !self.wipes() {
            self.violation = Some(format!("{client} is granted {fence:?} after {before:?}"));
        }
    }

    /// A client that had a place in the queue before this one asked, and still waits. With faults that is allowed,
    /// because a place can lapse.
    fn overtaken(&self, client: usize) -> Option<String> {
        let (keys, asked) = (self.wanted[client], self.clients[client].asked);
        let before = |id: usize| {
            let waits = meet(self.wanted[id], keys) && self.clients[id].phase == Phase::Waiting;
            let queued = self.clients[id].queued.filter(|&queued| waits && queued < asked)?;
            (id != client).then(|| format!("{client}, asked at {asked:?}, overtakes {id}, queued at {queued:?}"))
        };
        (0..self.clients.len()).find_map(before)
    }
}

fn meet(some: KeyList, others: KeyList) -> bool {
    some.as_slice().iter().any(|key| others.as_slice().contains(key))
}
