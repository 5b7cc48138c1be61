//! What one attempt sends, and what follows from each reply.

use crate::backoff::Next;
use crate::calls::{PendingCall, SERVER};
use crate::lease_protocol::{ReleaseReply, TakeReply};
use crate::{
    Actions, CallId, ConnectionKind, ErrorKind, Key, Lasts, Nanos, OnConflict, Outcome, Refusal, Reply, Statement,
};

use super::{Asking, SessionLock, SessionStatements, State, Then};

impl<L: SessionStatements> SessionLock<L> {
    pub(super) fn attempt(&mut self, now: Nanos, out: &mut Actions) {
        self.backoff.attempt();
        let keys = self.keys;
        let mut asking = Asking {
            first: CallId(0),
            open: 0,
            deadline: self.take_deadline(now),
        };
        for (at, &key) in keys.as_slice().iter().enumerate() {
            let statement = if at == 0 {
                self.lock.take(self.mode)
            } else {
                self.lock.take_also(self.mode)
            };
            let call = self.send(statement, key, out);
            if at == 0 {
                asking.first = call;
            }
            asking.open |= 1 << at;
        }
        out.wake_at(asking.deadline);
        self.state = State::Asking(asking);
    }

    /// The deadline of the calls that take. The server itself ends a wait in its queue, and reports that.
    fn take_deadline(&self, now: Nanos) -> Nanos {
        let queued = if self.lock.blocks() {
            now.max(self.backoff.ends(&self.spec.retry))
        } else {
            now
        };
        queued.after(self.spec.reply_timeout)
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, bit: u8, reply: Reply, out: &mut Actions) {
        let answer = match reply {
            Reply::Error(kind) => return self.failed(now, kind, out),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => self.lock.take_reply(reply),
        };
        match answer {
            TakeReply::Granted(fence) => {
                let open = asking.open & !bit;
                if open > 0 {
                    self.state = State::Asking(Asking { open, ..asking });
                    return;
                }
                self.state = State::Held;
                let lasts = Lasts::Session;
                out.settle(Outcome::Held { lasts, fence });
            }
            TakeReply::Busy => match self.lock.undo_refusal() {
                Some(undo) => self.undo(now, undo, Then::Again, out),
                None => self.go_on(now, out),
            },
            TakeReply::Unexpected => self.undo_and_settle(now, Outcome::Failed(ErrorKind::Unexpected), out),
        }
    }

    /// Handles an error reply to a call that takes. The session may hold the lock all the same: the server's limit and
    /// the grant can coincide.
    fn failed(&mut self, now: Nanos, kind: ErrorKind, out: &mut Actions) {
        match kind {
            // Cancelled by an administrator, by a limit of the server, or by this client's own limit just as the lock
            // came; Postgres does not tell which. In such a statement only the wait takes long.
            ErrorKind::LockNotAvailable | ErrorKind::Canceled if self.lock.blocks() => {
                self.undo_and_settle(now, Outcome::Refused(Refusal::TimedOut), out);
            }
            ErrorKind::LockNotAvailable => self.undo(now, self.lock.undo(self.mode), Then::Again, out),
            ErrorKind::Deadlock | ErrorKind::Serialization => {
                self.conflicts = self.conflicts.saturating_add(1);
                self.undo(now, self.lock.undo(self.mode), Then::Again, out);
            }
            ErrorKind::SessionEnded => self.close_session(Outcome::Failed(kind), out),
            ErrorKind::NoScript
            | ErrorKind::ReadOnly
            | ErrorKind::Loading
            | ErrorKind::Moved
            | ErrorKind::OutOfMemory
            | ErrorKind::WrongType
            | ErrorKind::NoSuchKey
            | ErrorKind::BusyGroup
            | ErrorKind::NoAuth
            | ErrorKind::Canceled
            | ErrorKind::InFailedTransaction
            | ErrorKind::TooManyConnections
            | ErrorKind::Other
            | ErrorKind::Unexpected => self.undo_and_settle(now, Outcome::Failed(kind), out),
        }
    }

    fn undo_and_settle(&mut self, now: Nanos, outcome: Outcome, out: &mut Actions) {
        self.undo(now, self.lock.undo(self.mode), Then::Settle(outcome), out);
    }

    pub(super) fn undo(&mut self, now: Nanos, undo: Statement, then: Then, out: &mut Actions) {
        self.state = State::Undoing(self.send_statement(now, undo, out), then);
    }

    pub(super) fn undone(&mut self, now: Nanos, then: Then, reply: Reply, out: &mut Actions) {
        if !self.lock.undone(reply) {
            return self.close_session(Outcome::Failed(kind_of(reply)), out);
        }
        match then {
            Then::Again => self.go_on(now, out),
            Then::Settle(outcome) => self.settle(outcome, out),
        }
    }

    fn go_on(&mut self, now: Nanos, out: &mut Actions) {
        match self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance) {
            Next::TryAt(until) => {
                self.state = State::Pausing(until);
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
        }
    }

    pub(super) fn send_release(&mut self, now: Nanos, out: &mut Actions) {
        self.state = State::Releasing(self.send_statement(now, self.lock.release(self.mode), out));
    }

    pub(super) fn release_answered(&mut self, reply: Reply, out: &mut Actions) {
        if let Reply::Error(kind) = reply
            && kind.is_conflict()
            && self.lock.release(self.mode).on_conflict() == OnConflict::EndsTheLock
        {
            self.conflicts = self.conflicts.saturating_add(1);
            return self.settle(Outcome::Released, out);
        }
        match self.lock.release_reply(reply) {
            Some(ReleaseReply::WasHeld) => self.settle(Outcome::Released, out),
            Some(ReleaseReply::WasLost) => self.settle(Outcome::Expired, out),
            None => self.close_session(Outcome::Failed(kind_of(reply)), out),
        }
    }

    /// Sends a statement about all keys, or about the only one.
    fn send_statement(&mut self, now: Nanos, statement: Statement, out: &mut Actions) -> PendingCall {
        let call = self.send(statement, self.keys.as_slice()[0], out);
        let deadline = now.after(self.spec.reply_timeout);
        out.wake_at(deadline);
        PendingCall { call, deadline }
    }

    fn send(&mut self, statement: Statement, key: Key, out: &mut Actions) -> CallId {
        let call = self.calls.fresh();
        out.send_over(self.lock.connection(), call, SERVER, statement.about(key, [0, 0]));
        call
    }

    /// Settles, and closes the session: what it holds, or may still be granted, ends with it. A session that other
    /// clients use stays open; there the machine sends the undo of the current attempt, if there is one.
    pub(super) fn close_session(&mut self, outcome: Outcome, out: &mut Actions) {
        match (self.lock.connection(), self.state) {
            (ConnectionKind::Own, _) => out.hang_up(),
            (ConnectionKind::SharedByClients | ConnectionKind::Subscribing, State::Asking(_)) => {
                let (undo, key) = (self.lock.undo(self.mode), self.keys.as_slice()[0]);
                self.send(undo, key, out);
            }
            (
                ConnectionKind::SharedByClients | ConnectionKind::Subscribing,
                State::Idle
                | State::Undoing(..)
                | State::Pausing(_)
                | State::Held
                | State::Lapsed
                | State::Releasing(_),
            ) => {}
        }
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

/// The error kind of a reply that does not answer the command.
pub(crate) const fn kind_of(reply: Reply) -> ErrorKind {
    match reply {
        Reply::Error(kind) => kind,
        Reply::Ok | Reply::Nil | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
            ErrorKind::Unexpected
        }
    }
}
