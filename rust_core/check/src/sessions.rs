//! Locks that live with a session: the server gives them to another as soon as the session ends, and their holder goes
//! on believing until it sees that the session is gone, if only by the answer to its release.
//!
//! So a grant beside a believer is not judged at once. It is a double grant as soon as one of the earlier holders in its
//! way ends without having found its session gone; and a session lost when all of them have found that. A server closes
//! the connection of a session that it ends, and the holder sees that within `Rules::session_end_seen_within`: a session
//! that is found gone later was there when the other was granted the lock, and excuses nothing. Nor does one that the lock
//! itself closed while it held (`HungUp`). One whose release was never answered, so that the lock hung up, may have been
//! gone for any time. C. Gray, D. Cheriton: Leases, SOSP 1989, has the two clocks that would be needed to know it beforehand: a session has none.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::{NO_LEASE_LEFT, Session, State};
use locks::Nanos;

/// The grants that are not judged yet. Empty as long as no grant was made beside a believer.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    overlaps: Vec<Overlap>,
}

#[derive(Debug)]
struct Overlap {
    /// When the later one was granted.
    at: Nanos,
    /// Its place in the log, if it is kept there.
    recorded: Option<usize>,
    /// The earlier holders in its way of whom it is not known yet what became of their sessions.
    earlier: Vec<ClientId>,
}

impl Sessions {
    /// How many never came to be judged: no holder in their way found that its session was gone.
    pub(crate) fn undecided(&self) -> u64 {
        self.overlaps.len() as u64
    }
}

impl Checker {
    /// `second` was granted beside believers, of whom `first` is the latest granted.
    pub(crate) fn put_off(&mut self, at: Nanos, first: ClientId, second: ClientId) {
        // A double grant, unless it turns out to be something else.
        let recorded = self.record(ViolationKind::DoubleGrant, at, self.span(first), second);
        let earlier = self.believers_in_the_way(at, second);
        if earlier
            .iter()
            .any(|&id| self.clients[id as usize].session == Session::HungUp)
        {
            return self.log.count(ViolationKind::DoubleGrant);
        }
        for &id in &earlier {
            self.clients[id as usize].session = Session::InQuestion;
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.overlaps.push(Overlap { at, recorded, earlier });
        }
    }

    /// The grant of `id` is over, and its session was there to its end.
    pub(crate) fn kept_session(&mut self, id: ClientId) {
        if !self.no_longer_in_question(id) {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let before = sessions.overlaps.len();
        sessions.overlaps.retain(|overlap| !overlap.earlier.contains(&id));
        self.log.counts.double_grants += (before - sessions.overlaps.len()) as u64;
    }

    /// `id` has found that its session is gone, `within` this time of its end.
    pub(crate) fn lost_session(&mut self, at: Nanos, id: ClientId, within: Nanos) {
        if !self.no_longer_in_question(id) {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let log = &mut self.log;
        sessions.overlaps.retain_mut(|overlap| {
            if overlap.earlier.contains(&id) && at.since(overlap.at) > within {
                log.count(ViolationKind::DoubleGrant);
                return false;
            }
            overlap.earlier.retain(|&earlier| earlier != id);
            let is_decided = overlap.earlier.is_empty();
            if is_decided {
                log.session_lost(overlap.recorded, at);
            }
            !is_decided
        });
    }

    /// The key of `id`, which sees its session gone, is handed to whoever waits for it, as by a release; unless another has
    /// been granted it meanwhile.
    pub(crate) fn free_with_session(&mut self, at: Nanos, id: ClientId) {
        if self.sessions.is_none() {
            return;
        }
        let record = &mut self.keys[self.clients[id as usize].key as usize];
        if record.last_client == id && !record.waiters.is_empty() {
            record.freed = at;
            record.wanted = true;
            record.lease_left = NO_LEASE_LEFT;
        }
    }

    /// The lock closed the session of `id` by itself.
    pub(crate) fn hung_up(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Holding => {
                self.kept_session(id);
                self.clients[id as usize].session = Session::HungUp;
            }
            // Its release was not answered in time.
            State::Unconfirmed => self.lost_session(at, id, Nanos::NEVER),
            // It closes what is left of a wait, or what nothing is held by.
            State::Idle | State::Waiting | State::Stopped => {}
        }
    }

    fn no_longer_in_question(&mut self, id: ClientId) -> bool {
        let client = &mut self.clients[id as usize];
        let asked = client.session == Session::InQuestion;
        if asked {
            client.session = Session::Fine;
        }
        asked
    }

    /// What a client is once its release was sent.
    pub(crate) fn state_after_release(&self, id: ClientId) -> State {
        if self.clients[id as usize].session == Session::InQuestion {
            State::Unconfirmed
        } else {
            State::Idle
        }
    }
}
