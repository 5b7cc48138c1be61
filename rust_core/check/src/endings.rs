//! The events that prolong or end a grant, its belief or its work; and what the key's next grant is due to.

use crate::ClientId;
use crate::checker::Checker;
use crate::contention;
use crate::stalls::lease_left;
use crate::table::{Last, NO_LEASE_LEFT, SessionState, State};
use locks::{Key, Mode, Nanos};

impl Checker {
    pub(crate) fn renewed(&mut self, at: Nanos, id: ClientId, until: Nanos) {
        let client = &self.clients[id as usize];
        if client.state != State::Holding {
            return self.cannot(at, id, "renew a lease");
        }
        if at >= client.believes_until {
            return self.cannot(at, id, "renew a lease that has ended");
        }
        let client = &mut self.clients[id as usize];
        client.until = until;
        // A renewed lease that ends earlier does not undo past belief.
        client.believes_until = until.max(at);
        match client.mode {
            Mode::Exclusive => self.keys[client.place].holders.renew(until),
            Mode::Shared => self.crowds[client.place as usize].sharers.renew(until),
        }
    }

    pub(crate) fn lease_lost(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        match client.state {
            // The lock itself closed the session: the holder keeps its belief.
            State::Holding if client.session == SessionState::ClosedByLock => {}
            State::Holding => {
                let believed = at < client.believes_until;
                client.believes_until = client.believes_until.min(at);
                if believed {
                    self.free_with_session(at, id);
                }
            }
            State::Stopped => {} // Neither belief nor work is left to end.
            State::Unconfirmed => client.state = State::Idle,
            State::Idle if self.sessions.is_some() => {} // It released, and no other client was granted the lock during its hold.
            State::Idle | State::Waiting => return self.cannot(at, id, "lose a lease"),
        }
        self.lost_session(at, id, self.session_end_seen_within);
    }

    pub(crate) fn stopped(&mut self, at: Nanos, id: ClientId) {
        if self.clients[id as usize].state != State::Holding {
            return self.cannot(at, id, "stop working");
        }
        self.end_work(at, id);
        let client = &mut self.clients[id as usize];
        client.state = State::Stopped;
        let place = client.place;
        let record = &mut self.keys[place];
        if !record.wanted {
            record.freed = at;
            record.lease_left = NO_LEASE_LEFT;
        }
        self.recycle(at, id, place);
    }

    pub(crate) fn released(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        let late = at > client.believes_until;
        let (key, until, mut place) = (Key(client.key), client.until, client.place);
        match client.state {
            State::Holding => {
                self.end_work(at, id);
                self.log.counts.outlived += u64::from(late);
            }
            // Its work ended when it stopped, and the key's record may have been recycled since.
            State::Stopped => place = self.keys.place_of(key, at),
            State::Idle | State::Waiting | State::Unconfirmed => return self.cannot(at, id, "release"),
        }
        self.clients[id as usize].state = if self.is_plain {
            State::Idle
        } else {
            self.state_after_release(id)
        };
        let record = &mut self.keys[place];
        record.released_late |= late;
        if late && self.sessions.is_some() && record.wanted {
            return; // The key was free since the session ended.
        }
        record.freed = at;
        record.wanted = !(record.waiters.is_empty() || late && self.sessions.is_some());
        record.lease_left = lease_left(at, until, self.release_seen_within);
        self.recycle(at, id, place);
    }

    #[expect(
        clippy::inline_always,
        reason = "at a release the client and the key's record are at hand"
    )]
    #[inline(always)]
    fn end_work(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        let place = client.place;
        if client.in_violation {
            client.in_violation = false;
            self.log.work_ended(id, at);
        }
        if self.is_plain {
            let counts = self.counts_if_contended(at, id);
            let record = &mut self.keys[place];
            record.holders.remove(&mut self.clients, id);
            let contended = record.last_client != id || record.last == Last::Contended;
            contention::settle(record, &mut self.figures, id, contended, counts);
        } else {
            self.end_work_beyond_plain(at, id);
        }
    }

    #[inline(never)]
    fn end_work_beyond_plain(&mut self, at: Nanos, id: ClientId) {
        let (key, grant) = (self.clients[id as usize].key, self.span(id));
        if let Some(fences) = &mut self.fences {
            fences.ended(key, grant, at);
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.ended(key, grant, at);
        }
        let counts = self.counts_if_contended(at, id);
        let place = self.clients[id as usize].place;
        let record = &mut self.keys[place];
        let contended = match self.crowds.get_mut(place as usize) {
            None => {
                record.holders.remove(&mut self.clients, id);
                record.last_client != id || record.last == Last::Contended
            }
            Some(crowd) => crowd.leave(record, &mut self.clients, self.permits, id),
        };
        contention::settle(record, &mut self.figures, id, contended, counts);
    }
}
