//! Locks that live with a session: the server gives them to another as soon as the session ends, and their holder goes
//! on believing until it sees that the session is gone, if only by the answer to its release.
//!
//! So a grant beside a believer is not judged at once. It is a double grant as soon as one of the earlier holders in its
//! way ends without having found its session gone; and a session lost when all of them have found that. C. Gray, D.
//! Cheriton: Leases, SOSP 1989, has the two clocks that would be needed to know it beforehand: a session has none.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::State;
use locks::Nanos;

/// The grants that are not judged yet. Empty as long as no grant was made beside a believer.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    overlaps: Vec<Overlap>,
}

#[derive(Debug)]
struct Overlap {
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
        for &id in &earlier {
            self.clients[id as usize].in_question = true;
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.overlaps.push(Overlap { recorded, earlier });
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

    /// `id` has found that its session is gone.
    pub(crate) fn lost_session(&mut self, at: Nanos, id: ClientId) {
        if !self.no_longer_in_question(id) {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let log = &mut self.log;
        sessions.overlaps.retain_mut(|overlap| {
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
            record.handed_off = at;
        }
    }

    fn no_longer_in_question(&mut self, id: ClientId) -> bool {
        std::mem::replace(&mut self.clients[id as usize].in_question, false)
    }

    /// What a client is once its release was sent.
    pub(crate) fn state_after_release(&self, id: ClientId) -> State {
        if self.clients[id as usize].in_question {
            State::Unconfirmed
        } else {
            State::Idle
        }
    }
}
