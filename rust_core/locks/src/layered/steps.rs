//! What the machine sends to the database, and what follows from each reply.

use crate::pg_lease::fence;
use crate::session_lock::kind_of;
use crate::{Actions, CallId, ErrorKind, Lasts, Nanos, Outcome, Reply, ServerId, Statement};

use super::{Entering, Layered, PendingWrite, State};
use crate::Event;

/// Server 0 has the mutex.
const DATABASE: ServerId = ServerId(1);

impl Layered {
    /// Takes a fence, which makes all earlier ones stale, and then reads the value: both in one write to the socket.
    pub(super) fn enter(&mut self, now: Nanos, out: &mut Actions) {
        let fence_call = self.send(Statement::FenceTake, [0, 0], out);
        let value_call = self.send(Statement::ValueRead, [0, 0], out);
        let deadline = self.guard(now, out);
        let (fence, value) = (None, None);
        self.state = State::Entering(Entering {
            fence_call,
            value_call,
            deadline,
            fence,
            value,
        });
    }

    pub(super) fn entering(
        &mut self,
        now: Nanos,
        mut entering: Entering,
        call: CallId,
        reply: Reply,
        out: &mut Actions,
    ) {
        let count = match reply {
            Reply::Int(count) => count,
            Reply::Error(kind) if kind.is_contention() => return self.enter_again(entering, call, out),
            // Also the reply without a row: the key has no row.
            Reply::Ok
            | Reply::Nil
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => {
                return self.abandon(now, Outcome::Failed(kind_of(reply)), out);
            }
        };
        let counts = if call == entering.fence_call {
            entering.fence = fence(count);
            entering.fence.is_some()
        } else {
            entering.value = u64::try_from(count).ok();
            entering.value.is_some()
        };
        if counts {
            self.entered(now, entering, out);
        } else {
            // Another program has written the column.
            self.abandon(now, Outcome::Failed(ErrorKind::Unexpected), out);
        }
    }

    /// The server has undone the statement that met another transaction. The deadline of the first reply bounds all
    /// repetitions.
    fn enter_again(&mut self, mut entering: Entering, call: CallId, out: &mut Actions) {
        self.conflicts = self.conflicts.saturating_add(1);
        if call == entering.fence_call {
            entering.fence_call = self.send(Statement::FenceTake, [0, 0], out);
        }
        // A value that was read before the fence was taken may be old: the value is read again after the fence in any
        // case.
        entering.value_call = self.send(Statement::ValueRead, [0, 0], out);
        entering.value = None;
        self.state = State::Entering(entering);
    }

    fn entered(&mut self, now: Nanos, entering: Entering, out: &mut Actions) {
        let (Some(fence), Some(value)) = (entering.fence, entering.value) else {
            self.state = State::Entering(entering);
            return;
        };
        let until = self
            .mutex
            .held()
            .expect("the mutex is held while the database is asked")
            .until;
        if until > now {
            self.state = State::Held(fence, value);
            out.settle(Outcome::Held {
                lasts: Lasts::Until(until),
                fence: Some(fence),
            });
        } else {
            self.state = State::Outside;
            self.run_mutex(now, out, |mutex, actions| mutex.reject(now, actions));
        }
    }

    pub(super) fn written(&mut self, now: Nanos, writing: PendingWrite, reply: Reply, out: &mut Actions) {
        let outcome = match reply {
            Reply::Error(kind) if kind.is_contention() => {
                self.conflicts = self.conflicts.saturating_add(1);
                let call = self.send(Statement::FencedWrite, writing.numbers, out);
                self.state = State::Writing(PendingWrite { call, ..writing });
                return;
            }
            // The id of the row; its value does not matter.
            Reply::Int(_) => Outcome::Released,
            Reply::Nil => Outcome::Expired,
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Outcome::Failed(kind_of(reply))
            }
        };
        self.leave(now, outcome, out);
    }

    /// Releases the mutex, and then settles with `outcome`.
    pub(super) fn leave(&mut self, now: Nanos, outcome: Outcome, out: &mut Actions) {
        self.state = State::Leaving(outcome);
        self.pass_to_mutex(now, Event::Release, out);
    }

    /// Settles now, and releases the mutex without waiting for the reply.
    pub(super) fn abandon(&mut self, now: Nanos, outcome: Outcome, out: &mut Actions) {
        let attempt = self
            .mutex
            .held()
            .expect("the mutex is held while the database is asked")
            .attempt;
        self.state = State::Outside;
        self.run_mutex(now, out, |mutex, actions| mutex.abandon(attempt, outcome, actions));
    }

    pub(super) fn send(&mut self, statement: Statement, numbers: [u64; 2], out: &mut Actions) -> CallId {
        let call = self.mutex.fresh_call();
        out.send(call, DATABASE, statement.about(self.key, numbers));
        call
    }

    pub(super) fn guard(&self, now: Nanos, out: &mut Actions) -> Nanos {
        let deadline = now.after(self.spec.reply_timeout);
        out.wake_at(deadline);
        deadline
    }
}
