//! The list of actions that a machine appends to. One list serves all clients of a thread, so nothing is allocated once
//! the list has grown to the largest batch.

use crate::{Action, CallId, Command, ConnectionKind, Lasts, Nanos, Outcome, ServerId};

/// What a machine wants done, in order. Only the driver empties it, after every `LockMachine::on`.
#[derive(Debug, Default)]
pub struct Actions {
    list: Vec<Action>,
}

impl Actions {
    /// Sends over a connection that clients share.
    pub fn send(&mut self, call: CallId, to: ServerId, command: Command) {
        self.send_over(ConnectionKind::SharedByClients, call, to, command);
    }

    #[inline]
    pub fn send_over(&mut self, over: ConnectionKind, call: CallId, to: ServerId, command: Command) {
        self.list.push(Action::Send {
            call,
            to,
            over,
            command,
        });
    }

    #[inline]
    pub fn wake_at(&mut self, at: Nanos) {
        self.list.push(Action::WakeAt(at));
    }

    pub fn hang_up(&mut self) {
        self.list.push(Action::HangUp);
    }

    pub fn queued(&mut self) {
        self.list.push(Action::Queued);
    }

    pub fn renewed(&mut self, lasts: Lasts) {
        self.list.push(Action::Renewed { lasts });
    }

    pub fn lapsed(&mut self) {
        self.list.push(Action::Lapsed);
    }

    #[inline]
    pub fn settle(&mut self, outcome: Outcome) {
        self.list.push(Action::Settle(outcome));
    }

    /// The actions in order, to be read where they stand: an action is longer than a cache line.
    pub fn as_slice(&self) -> &[Action] {
        &self.list
    }

    /// Empties the list, which keeps its memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Yields the actions in order. The list is empty afterwards and keeps its memory.
    pub fn drain(&mut self) -> impl Iterator<Item = Action> {
        self.list.drain(..)
    }
}
