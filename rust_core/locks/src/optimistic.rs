//! What the optimistic strategies share: they lock nothing while the work goes on. The work's effect is written only if
//! nobody else has written meanwhile; otherwise the whole work is repeated. `OptimisticStatements` says what a strategy
//! reads and writes.
//!
//! ```text
//!          Acquire             read            Release, Cancel           written
//!    Idle ─────────▶ Reading ───────▶ Held ───────────────────▶ Writing ─────────▶ Idle
//!                    ▲ │ conflict      │ Disconnected            │ conflict: settles Conflict
//!               Woke │ ▼               ▼                         ▼
//!                   Pausing          Gone ──▶ Idle            Conflicted
//!                      ▲                                         │ Acquire of the same key: the next attempt
//!                      └─────────────────────────────────────────┘
//! ```
//! Not drawn: an open transaction is ended before a conflict or an error goes on (`Undoing`); what ends in `Idle` at
//! once (an error, `Unknown`, a Cancel before it is held, an Acquire when the policy allows no further attempt).
//!
//! Promises: an acknowledged write was based on a value that nobody had changed since; `Conflict` means that nothing
//! was written; no attempt follows one whose write may have been carried out; no transaction stays open during a pause.
//! Does not promise exclusion of the work: two clients may work at once, one of them in vain.

use std::sync::Arc;

use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Deadline, PendingCall, check_deadline};
use crate::{
    Actions, CallId, Chance, ConnectionKind, Event, Key, LockMachine, Mode, Nanos, Outcome, Reply, Spec, Statement,
};

/// The statements that read before the work and write after it.
pub(crate) trait OptimisticStatements {
    const CONNECTION: ConnectionKind;
    /// Returns the value that was read, which is at least 0.
    const READ: Statement;
    /// Takes the value that was read; returns a row if it was written.
    const WRITE: Statement;
    /// Ends the transaction that the read opened, if it was not committed.
    const UNDO: Option<Statement>;
    /// Whether a write that returns no row means that another client wrote first.
    const GUARDED: bool;
}

#[derive(Debug)]
pub(crate) struct Optimistic<E> {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    conflicts: u32,
    /// The key of the current or last `Acquire`.
    key: Key,
    state: State,
    statements: std::marker::PhantomData<E>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Reading(PendingCall),
    /// Waits until the next attempt.
    Pausing(Nanos),
    /// The work goes on, based on this value.
    Held(u64),
    /// The work goes on, but the session that was to write its effect has ended.
    Gone,
    Writing(PendingCall),
    /// The statement that ends a failed transaction has no reply yet.
    Undoing(PendingCall, Then),
    /// Idle, but an `Acquire` of the same key is the next attempt of the same work.
    Conflicted(Next),
}

/// What follows when no transaction is open any more.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Another attempt, if the policy allows one.
    Again,
    /// The work has to be repeated.
    Conflict,
    Settle(Outcome),
}

impl<E: OptimisticStatements> Optimistic<E> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            spec,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            conflicts: 0,
            key: Key(0),
            state: State::Idle,
            statements: std::marker::PhantomData,
        }
    }

    fn acquire(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.state {
            State::Conflicted(next) if key == self.key => self.go_on(next, out),
            State::Idle | State::Conflicted(_) => {
                self.key = key;
                self.backoff = Backoff::begin(now);
                self.conflicts = 0;
                self.attempt(now, out);
            }
            State::Held(_) | State::Gone => panic!("Acquire, but the last grant was not released"),
            State::Reading(_) | State::Pausing(_) | State::Writing(_) | State::Undoing(..) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(read) => self.state = State::Writing(self.send_statement(now, E::WRITE, [read, 0], out)),
            // The session has ended, and its transaction with it: nothing is written and nothing must be undone.
            State::Gone => self.settle(Outcome::Expired, out),
            State::Idle
            | State::Reading(_)
            | State::Pausing(_)
            | State::Writing(_)
            | State::Undoing(..)
            | State::Conflicted(_) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) | State::Conflicted(_) => self.settle(Outcome::Released, out),
            // Sent behind the read on the same connection. A statement that only reads leaves nothing.
            State::Reading(_) => self.undo(now, Then::Settle(Outcome::Released), out),
            State::Held(_) | State::Gone => self.release(now, out),
            // Its one settlement answers both requests.
            State::Writing(_) | State::Undoing(_, Then::Conflict | Then::Settle(_)) => {}
            State::Undoing(undoing, Then::Again) => {
                self.state = State::Undoing(undoing, Then::Settle(Outcome::Released));
            }
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Reading(reading) if reading.call == call => self.has_read(now, reply, out),
            State::Writing(writing) if writing.call == call => self.has_written(now, reply, out),
            State::Undoing(undoing, then) if undoing.call == call => self.undone(now, then, reply, out),
            // A reply to a call that was given up, or undone.
            State::Reading(_)
            | State::Writing(_)
            | State::Undoing(..)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Gone
            | State::Conflicted(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        match self.state {
            State::Reading(waiting) | State::Writing(waiting) if waiting.call == call => {
                self.settle(Outcome::Unknown, out);
            }
            // The end of a session also ends its transaction.
            State::Undoing(undoing, then) if undoing.call == call => self.then(now, then, out),
            // The lost call belongs to a connection that was given up.
            State::Reading(_)
            | State::Writing(_)
            | State::Undoing(..)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Gone
            | State::Conflicted(_) => {}
        }
    }

    fn disconnected(&mut self) {
        match self.state {
            // There was no belief to end, but there is nothing left to commit.
            State::Held(_) if E::CONNECTION == ConnectionKind::Own => self.state = State::Gone,
            // `Lost` reports each lost call, and this may be the end of a connection that this client closed itself.
            State::Held(_)
            | State::Idle
            | State::Reading(_)
            | State::Pausing(_)
            | State::Gone
            | State::Writing(_)
            | State::Undoing(..)
            | State::Conflicted(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Reading(waiting) | State::Writing(waiting) | State::Undoing(waiting, _) => waiting.deadline,
            State::Pausing(until) => until,
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) | State::Gone | State::Conflicted(_) => return,
        };
        match (check_deadline(now, deadline, out), self.state) {
            (Deadline::Ahead, _) => {}
            (Deadline::Passed, State::Pausing(_)) => self.attempt(now, out),
            (Deadline::Passed, State::Undoing(_, then)) => {
                Self::hang_up(out);
                self.then(now, then, out);
            }
            (Deadline::Passed, _) => {
                Self::hang_up(out);
                self.settle(Outcome::Unknown, out);
            }
        }
    }
}

mod steps;

impl<E: OptimisticStatements> LockMachine for Optimistic<E> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it is for those who write"),
            Event::Enter => panic!("Enter, but it does not nest"),
            // This lock subscribes to nothing.
            Event::Published { .. } => {}
            Event::Disconnected => self.disconnected(),
            Event::Release => self.release(now, out),
            Event::Cancel => self.cancel(now, out),
            Event::Replied { call, reply } => self.replied(now, call, reply, out),
            Event::Lost { call } => self.lost(now, call, out),
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }

    fn conflicts(&self) -> u32 {
        self.conflicts
    }
}
