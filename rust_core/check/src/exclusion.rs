//! Exclusion: no more holders of a key at the same time than their modes and permits allow.
//!
//! The property: of the clients that believe at one time that they hold a key, either all share it, or none does and
//! they are at most as many as the key has permits. E. W. Dijkstra: Solution of a Problem in Concurrent Programming
//! Control, CACM 8(9), 1965; with readers, P. J. Courtois, F. Heymans, D. L. Parnas: Concurrent Control with "Readers"
//! and "Writers", CACM 14(10), 1971. That a holder may believe only while its lease lasts is C. Gray, D. Cheriton:
//! Leases, SOSP 1989.
//!
//! A grant that conflicts with no belief, but with work that outlived its belief, is a lease overrun: the holder's
//! fault, not the lock's.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::NOBODY;
use locks::{Mode, Nanos};

impl Checker {
    /// `second` was granted at `at` a key whose holders leave no room for it. It is not among them yet.
    #[cold]
    pub(crate) fn judge_exclusion(&mut self, at: Nanos, second: ClientId) {
        let place = self.clients[second as usize].place;
        let (first, kind) = match self.believer_in_the_way(at, second) {
            // Also after an overrun: the end of a session unlocks nothing of another session.
            Some(first) if self.sessions.is_some() => return self.postpone(at, first, second),
            Some(first) if self.keys[place].released_late => (first, ViolationKind::DoubleGrantAfterOverrun),
            Some(first) => (first, ViolationKind::DoubleGrant),
            None => (self.worker_in_the_way(second), ViolationKind::LeaseOverrun),
        };
        self.note(kind, at, self.span(first), second);
    }

    fn believer_in_the_way(&mut self, at: Nanos, second: ClientId) -> Option<ClientId> {
        let client = &self.clients[second as usize];
        let (place, mode) = (client.place, client.mode);
        let holder = self.keys[place].holders.believer(&self.clients, at, self.permits);
        let sharer = || {
            self.crowds
                .get_mut(place as usize)?
                .sharers
                .believer(&self.clients, at, 1)
        };
        match mode {
            Mode::Exclusive => holder.or_else(sharer),
            Mode::Shared => holder,
        }
    }

    /// All believers in the way of `second`, for a key with one permit: the exclusive holders, and the sharers if
    /// `second` does not share.
    pub(crate) fn believers_in_the_way(&self, at: Nanos, second: ClientId) -> Vec<ClientId> {
        let client = &self.clients[second as usize];
        let place = client.place;
        let holders = self.keys[place].holders.believers(&self.clients, at);
        let sharers = self
            .crowds
            .get(place as usize)
            .map(|crowd| crowd.sharers.believers(&self.clients, at));
        match client.mode {
            Mode::Exclusive => holders.chain(sharers.into_iter().flatten()).collect(),
            Mode::Shared => holders.collect(),
        }
    }

    fn worker_in_the_way(&self, second: ClientId) -> ClientId {
        let place = self.clients[second as usize].place;
        match self.keys[place].holders.latest() {
            NOBODY => self.crowds[place as usize].sharers.latest(),
            holder => holder,
        }
    }
}
