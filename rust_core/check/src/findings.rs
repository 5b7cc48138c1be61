//! Findings: events that their client's state, or their stamp, does not allow.
//!
//! A finding means that the driver or the checker is wrong, and that no verdict on this trial is worth anything. The
//! trial still goes on, so that its measurements are kept: the impossible event is left out, and where a new wait
//! begins, the earlier step counts as ended.

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
    /// Records that `id` cannot do `what` in its current state.
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

    /// `id` begins to wait although its earlier step has not ended.
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
