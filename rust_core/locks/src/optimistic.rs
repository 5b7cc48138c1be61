//! What the strategies share that lock nothing while the work goes on: its effect is written only when nobody else has
//! written meanwhile, and else the whole work is done again. What one reads and writes is its `Effect`.
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
//! Not drawn: where a transaction is open it is ended before a conflict or an error goes on (`Undoing`); what ends in
//! `Idle` at once (an error, `Unknown`, a Cancel before it is held, an Acquire when the policy allows no other attempt).
//!
//! Promises: a write that was acknowledged was based on what nobody had changed since; `Conflict` means that nothing was
//! written; no attempt follows one whose write may have been carried out; nothing stays open while it pauses.
//! Does not promise exclusion of the work: two may work at once, and one of them in vain.

use std::sync::Arc;

use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Wait, wait};
use crate::{Actions, CallId, Chance, Event, Key, Lane, LockMachine, Mode, Nanos, Outcome, Reply, Spec, Statement};

/// What is read before the work, and written behind it.
pub(crate) trait Effect {
    const LANE: Lane;
    /// Answers what is read: not below 0.
    const READ: Statement;
    /// Given what was read; answers a row when it is written.
    const WRITE: Statement;
    /// Ends the transaction that the read has opened, and that was not committed.
    const UNDO: Option<Statement>;
    /// Whether a write without a row says that another was first.
    const GUARDED: bool;
}

#[derive(Debug)]
pub(crate) struct Optimistic<E> {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    conflicts: u32,
    /// Of the present, or the last, `Acquire`.
    key: Key,
    state: State,
    effect: std::marker::PhantomData<E>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Reading(Unanswered),
    /// Until the next attempt.
    Pausing(Nanos),
    /// The work goes on, based on this.
    Held(u64),
    /// The work goes on, but the session in which it is to be written has ended.
    Gone,
    Writing(Unanswered),
    /// The end of a transaction that was in vain is not answered.
    Undoing(Unanswered, Then),
    /// Idle, but when the same work is asked for again this is its next attempt.
    Conflicted(Next),
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    call: CallId,
    deadline: Nanos,
}

/// What follows when nothing is open any more.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Another attempt, if the policy allows it.
    Again,
    /// The work has to be done again.
    Conflict,
    Settle(Outcome),
}

impl<E: Effect> Optimistic<E> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            spec,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            conflicts: 0,
            key: Key(0),
            state: State::Idle,
            effect: std::marker::PhantomData,
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
            State::Held(read) => self.state = State::Writing(self.say(now, E::WRITE, [read, 0], out)),
            // With the session its transaction has ended: nothing is written, and nothing to be undone.
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
            // Behind the read on the same connection. What only reads leaves nothing.
            State::Reading(_) => self.undo(now, Then::Settle(Outcome::Released), out),
            State::Held(_) | State::Gone => self.release(now, out),
            // The one settlement to come answers both requests.
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
            // An answer to a call that was given up, or undone.
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
            // The end of a session ends its transaction, too.
            State::Undoing(undoing, then) if undoing.call == call => self.then(now, then, out),
            // A call of a connection that was given up.
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
            // There was no belief, so there is none to end; but there is nothing to commit any more.
            State::Held(_) if E::LANE == Lane::Own => self.state = State::Gone,
            // The loss of a call is told by itself; and this may be the end of a connection that was hung up on.
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
            // The point guarded a call that has been answered since.
            State::Idle | State::Held(_) | State::Gone | State::Conflicted(_) => return,
        };
        match (wait(now, deadline, out), self.state) {
            (Wait::GoesOn, _) => {}
            (Wait::Over, State::Pausing(_)) => self.attempt(now, out),
            (Wait::Over, State::Undoing(_, then)) => {
                Self::hang_up(out);
                self.then(now, then, out);
            }
            (Wait::Over, _) => {
                Self::hang_up(out);
                self.settle(Outcome::Unknown, out);
            }
        }
    }
}

mod steps;

impl<E: Effect> LockMachine for Optimistic<E> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it is for those who write"),
            Event::Enter => panic!("Enter, but it does not nest"),
            // It subscribes to nothing.
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
