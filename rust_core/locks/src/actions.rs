//! The list a machine appends its wishes to. One list serves all clients of a thread, so that nothing is allocated
//! once it has grown to the largest batch.

use crate::{Action, CallId, Command, Nanos, Outcome, ServerId};

/// What a machine wants done, in order. Only the driver empties it, after every `LockMachine::on`.
#[derive(Debug, Default)]
pub struct Actions {
    list: Vec<Action>,
}

impl Actions {
    pub fn send(&mut self, call: CallId, to: ServerId, command: Command) {
        self.list.push(Action::Send { call, to, command });
    }

    pub fn wake_at(&mut self, at: Nanos) {
        self.list.push(Action::WakeAt(at));
    }

    pub fn settle(&mut self, outcome: Outcome) {
        self.list.push(Action::Settle(outcome));
    }

    /// Hands the wishes over in order and leaves the list empty, its memory kept.
    pub fn drain(&mut self) -> impl Iterator<Item = Action> {
        self.list.drain(..)
    }
}
