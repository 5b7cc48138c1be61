//! Locks that depend on a session: the server grants them to another client as soon as the session ends, and their
//! holder goes on believing until it notices that the session has ended, perhaps only by the reply to its release.
//!
//! So a grant during another holder's belief is not judged at once. It is a double grant as soon as one of the earlier
//! holders in its way ends without having found its session ended; and a lost session when all of them have found that.
//! A server closes the connection of a session that it ends, and the holder notices that within
//! `Rules::session_end_seen_within`, or of the end of a standstill of its driver. If the holder notices later, the session
//! still existed at the other grant, and excuses nothing. A session that the lock itself closed during the hold (`HungUp`) excuses nothing either. A session
//! whose release got no reply, so that the lock closed it, may have ended at any earlier time. C. Gray, D. Cheriton:
//! Leases, SOSP 1989, describes the two clocks with which a holder would know the end in advance: a session has none.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::{NO_LEASE_LEFT, SessionState, State};
use locks::Nanos;

/// The grants that are not judged yet. Empty as long as no grant was made during another holder's belief.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    overlaps: Vec<Overlap>,
}

#[derive(Debug)]
struct Overlap {
    /// When the later grant was made.
    at: Nanos,
    /// Its index in the log, if it was recorded.
    recorded: Option<usize>,
    /// The earlier holders in its way whose sessions' fate is not known yet.
    earlier: Vec<ClientId>,
}

impl Sessions {
    /// How many were never decided: no holder in their way found that its session had ended.
    pub(crate) fn undecided(&self) -> u64 {
        self.overlaps.len() as u64
    }
}

impl Checker {
    /// Postpones the verdict on `second`, which was granted during the beliefs of others, of whom `first` was granted
    /// latest.
    pub(crate) fn postpone(&mut self, at: Nanos, first: ClientId, second: ClientId) {
        // A double grant, unless it turns out to be something else.
        let recorded = self.record(ViolationKind::DoubleGrant, at, self.span(first), second);
        let earlier = self.believers_in_the_way(at, second);
        if earlier
            .iter()
            .any(|&id| self.clients[id as usize].session == SessionState::ClosedByLock)
        {
            return self.log.count(ViolationKind::DoubleGrant);
        }
        for &id in &earlier {
            self.clients[id as usize].session = SessionState::InQuestion;
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.overlaps.push(Overlap { at, recorded, earlier });
        }
    }

    /// The grant of `id` has ended, and its session existed to the end.
    pub(crate) fn kept_session(&mut self, id: ClientId) {
        if !self.no_longer_in_question(id) {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let before = sessions.overlaps.len();
        sessions.overlaps.retain(|overlap| !overlap.earlier.contains(&id));
        self.log.counts.double_grants += (before - sessions.overlaps.len()) as u64;
    }

    /// `id` has found that its session has ended, `within` this time of the end, in which its driver ran.
    pub(crate) fn lost_session(&mut self, at: Nanos, id: ClientId, within: Nanos) {
        if !self.no_longer_in_question(id) {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let (log, ran_since) = (&mut self.log, self.driver_stalled_until);
        sessions.overlaps.retain_mut(|overlap| {
            if overlap.earlier.contains(&id) && at.since(overlap.at.max(ran_since)) > within {
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

    /// `id` has noticed the end of its session: its key is handed to a waiter, as by a release, unless another client
    /// has been granted it meanwhile.
    pub(crate) fn free_with_session(&mut self, at: Nanos, id: ClientId) {
        if self.sessions.is_none() {
            return;
        }
        let record = &mut self.keys[self.clients[id as usize].place];
        if record.last_client == id && !record.waiters.is_empty() {
            record.freed = at;
            record.wanted = true;
            record.lease_left = NO_LEASE_LEFT;
        }
    }

    /// The lock itself closed the session of `id`.
    pub(crate) fn hung_up(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Holding => {
                self.kept_session(id);
                self.clients[id as usize].session = SessionState::ClosedByLock;
            }
            // Its release got no reply in time.
            State::Unconfirmed => self.lost_session(at, id, Nanos::NEVER),
            // It closes the rest of a wait, or a session without a hold.
            State::Idle | State::Waiting | State::Stopped => {}
        }
    }

    fn no_longer_in_question(&mut self, id: ClientId) -> bool {
        let client = &mut self.clients[id as usize];
        let asked = client.session == SessionState::InQuestion;
        if asked {
            client.session = SessionState::Fine;
        }
        asked
    }

    /// The state of a client after its release was sent.
    pub(crate) fn state_after_release(&self, id: ClientId) -> State {
        if self.clients[id as usize].session == SessionState::InQuestion {
            State::Unconfirmed
        } else {
            State::Idle
        }
    }
}
