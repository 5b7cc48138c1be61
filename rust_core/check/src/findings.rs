//! Findings: events that their client's state, or their stamp, does not allow.
//!
//! Then the driver is wrong, or the checker, and no verdict on this trial is worth anything. The trial goes on all the
//! same, so that what was measured and seen is kept: an event that cannot be is left out, and what it would have ended is
//! taken for ended where a new wait begins.

use crate::checker::Checker;
use crate::table::State;
use crate::{ClientId, Event};
use locks::Nanos;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) count: u64,
    pub(crate) first: Option<String>,
}

impl Findings {
    fn note(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(text);
    }
}

impl Checker {
    /// `id` is told to do `what`, which it cannot as it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn cannot(&mut self, at: Nanos, id: ClientId, what: &str) {
        let state = self.clients[id as usize].state;
        self.findings
            .note(|| format!("client {id} cannot {what} at {at:?}: it is {state:?}"));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn came_too_late(&mut self, at: Nanos, event: Event) {
        let now = self.now;
        self.findings
            .note(|| format!("{event:?} is stamped {at:?}, but it is {now:?} already"));
    }

    /// The trial ends before its last event.
    #[cold]
    pub(crate) fn ended_too_early(&mut self, at: Nanos) {
        let now = self.now;
        self.findings
            .note(|| format!("the trial ends at {at:?}, but it is {now:?} already"));
    }

    /// `id` begins to wait, and what it did before has not ended.
    #[cold]
    pub(crate) fn abandon(&mut self, at: Nanos, id: ClientId) {
        self.cannot(at, id, "begin to wait");
        match self.clients[id as usize].state {
            State::Waiting => self.gave_up(at, id),
            State::Holding => self.released(at, id),
            State::Idle | State::Stopped | State::Unconfirmed => {}
        }
    }
}
