//! What one attempt sends, and what follows from each reply.

use crate::backoff::Next;
use crate::calls::{PendingCall, SERVER, is_conflict};
use crate::session_lock::kind_of;
use crate::{Actions, ConnectionKind, ErrorKind, Lasts, Nanos, Outcome, Reply, Statement};

use super::{Optimistic, OptimisticStatements, State, Then};

impl<E: OptimisticStatements> Optimistic<E> {
    pub(super) fn attempt(&mut self, now: Nanos, out: &mut Actions) {
        self.backoff.attempt();
        self.state = State::Reading(self.send_statement(now, E::READ, [0, 0], out));
    }

    pub(super) fn has_read(&mut self, now: Nanos, reply: Reply, out: &mut Actions) {
        let kind = match reply {
            Reply::Int(read) => match u64::try_from(read) {
                Ok(read) => {
                    self.state = State::Held(read);
                    return out.settle(Outcome::Held {
                        lasts: Lasts::Unbounded,
                        fence: None,
                    });
                }
                // Another program has written the column.
                Err(_) => ErrorKind::Unexpected,
            },
            Reply::Error(ErrorKind::SessionEnded) => return self.close_session(ErrorKind::SessionEnded, out),
            Reply::Error(kind) if is_conflict(kind) => {
                self.conflicts = self.conflicts.saturating_add(1);
                return self.undo(now, Then::Again, out);
            }
            // Also the reply without a row: the key has no row.
            Reply::Ok
            | Reply::Nil
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => kind_of(reply),
        };
        self.undo(now, Then::Settle(Outcome::Failed(kind)), out);
    }

    pub(super) fn has_written(&mut self, now: Nanos, reply: Reply, out: &mut Actions) {
        match reply {
            // The id of the row; its value does not matter.
            Reply::Int(_) => self.settle(Outcome::Released, out),
            Reply::Nil if E::GUARDED => self.conflicted(now, out),
            Reply::Error(ErrorKind::SessionEnded) => self.close_session(ErrorKind::SessionEnded, out),
            Reply::Error(kind) if is_conflict(kind) => self.conflicted(now, out),
            Reply::Ok
            | Reply::Nil
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => {
                self.undo(now, Then::Settle(Outcome::Failed(kind_of(reply))), out);
            }
        }
    }

    fn conflicted(&mut self, now: Nanos, out: &mut Actions) {
        self.conflicts = self.conflicts.saturating_add(1);
        self.undo(now, Then::Conflict, out);
    }

    /// Goes on after the end of the transaction, if one is open.
    pub(super) fn undo(&mut self, now: Nanos, then: Then, out: &mut Actions) {
        match E::UNDO {
            Some(undo) => self.state = State::Undoing(self.send_statement(now, undo, [0, 0], out), then),
            None => self.then(now, then, out),
        }
    }

    pub(super) fn undone(&mut self, now: Nanos, then: Then, reply: Reply, out: &mut Actions) {
        if reply != Reply::Ok {
            // The transaction then ends with the session.
            Self::hang_up(out);
        }
        self.then(now, then, out);
    }

    pub(super) fn then(&mut self, now: Nanos, then: Then, out: &mut Actions) {
        match then {
            Then::Again => {
                let next = self.next(now);
                self.go_on(next, out);
            }
            Then::Conflict => {
                self.state = State::Conflicted(self.next(now));
                out.settle(Outcome::Conflict);
            }
            Then::Settle(outcome) => self.settle(outcome, out),
        }
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance)
    }

    pub(super) fn go_on(&mut self, next: Next, out: &mut Actions) {
        match next {
            Next::TryAt(until) => {
                self.state = State::Pausing(until);
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
        }
    }

    fn close_session(&mut self, kind: ErrorKind, out: &mut Actions) {
        Self::hang_up(out);
        self.settle(Outcome::Failed(kind), out);
    }

    /// A session whose replies fail to come is closed; a session that other clients use stays open.
    pub(super) fn hang_up(out: &mut Actions) {
        match E::CONNECTION {
            ConnectionKind::Own => out.hang_up(),
            ConnectionKind::SharedByClients | ConnectionKind::Subscribing => {}
        }
    }

    pub(super) fn send_statement(
        &mut self,
        now: Nanos,
        statement: Statement,
        numbers: [u64; 2],
        out: &mut Actions,
    ) -> PendingCall {
        let call = self.calls.fresh();
        out.send_over(E::CONNECTION, call, SERVER, statement.about(self.key, numbers));
        let deadline = now.after(self.spec.reply_timeout);
        out.wake_at(deadline);
        PendingCall { call, deadline }
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}
