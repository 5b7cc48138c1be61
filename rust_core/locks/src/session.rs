//! What the locks that live by a session of a database share: asking, trying again, undoing, giving back, and saying
//! that the session is gone. What a lock asks for and what the answers mean is its `InSession`.
//!
//! ```text
//!          Acquire           all granted           Release, Cancel
//!    Idle ─────────▶ Asking ────────────▶ Held ─────────────────────▶ GivingBack ──▶ Idle
//!                    │ ▲ │                  │ Disconnected
//!            refused │ │ │ failed, refused  └──▶ Lapsed ── Release, Cancel: nothing is sent ──▶ Idle
//!      (nothing is   ▼ │ ▼ (something is left), Cancel
//!              left) │ │ Undoing ──▶ Idle
//!                    │ │Woke │ undone, and the policy allows another
//!                   Pausing ◀┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal that leaves nothing; a lost answer; an answer that does not come in
//! time, and a Cancel of what blocks, both with a `HangUp`, for what the server may do yet ends with the session).
//!
//! Promises: never held by a reply to an earlier attempt, and never by one to a call that was hung up on; an attempt holds
//! all of its keys or none; nothing of an attempt that was refused is left in the session, neither a lock nor an open
//! transaction, while it pauses or after it has settled. Each request settles: within the patience of its last call, or,
//! while it waits in the server's queue, within its longest wait and the patience.
//! Does not promise that the server knows of a session's end as soon as the holder does, or the holder as soon as it.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Wait, wait};
use crate::recipe::{Answer, Was};
use crate::{
    Actions, CallId, Chance, Event, Key, Keys, Lane, LockMachine, Mode, Nanos, Outcome, Reply, Spec, Statement,
};

/// What one lock that lives by a session asks of its server, and what the answers mean.
pub(crate) trait InSession {
    const MANY_KEYS: bool = false;

    fn lane(&self) -> Lane {
        Lane::Own
    }

    /// Whether its statements wait in the server's queue.
    fn blocks(&self) -> bool;

    /// What takes the first of the keys.
    fn take(&self, mode: Mode) -> Statement;

    /// What takes a further key.
    fn take_also(&self, mode: Mode) -> Statement;

    /// Of anything but an error.
    fn taken(&self, reply: Reply) -> Answer;

    /// What has to be undone when the server said that another has it, if anything has to be.
    fn undo_refusal(&self) -> Option<Statement>;

    /// What leaves nothing of an attempt, whatever it has come to.
    fn undo(&self, mode: Mode) -> Statement;

    /// Whether that is its answer.
    fn undone(&self, reply: Reply) -> bool;

    fn give_back(&self, mode: Mode) -> Statement;

    /// `None`: the lock may be held still.
    fn given_back(&self, reply: Reply) -> Option<Was>;
}

#[derive(Debug)]
pub(crate) struct BySession<L> {
    spec: Arc<Spec>,
    chance: Chance,
    lock: L,
    calls: Calls,
    backoff: Backoff,
    conflicts: u32,
    /// Of the present, or the last, `Acquire`.
    keys: Keys,
    mode: Mode,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Asking(Asking),
    /// What undoes an attempt is not answered.
    Undoing(Unanswered, Then),
    /// Until the next attempt.
    Pausing(Nanos),
    Held,
    /// Held once, but the session is gone.
    Lapsed,
    /// What gives back is not answered.
    GivingBack(Unanswered),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    /// Of the first key; the others follow in the order of the keys.
    first: CallId,
    /// The calls that are not answered: a bit for each key.
    open: u8,
    deadline: Nanos,
}

impl Asking {
    /// The bit of the key that this is the call of.
    fn bit(self, call: CallId) -> Option<u8> {
        let at = call.0.checked_sub(self.first.0).filter(|&at| at < Keys::MOST as u64)?;
        Some(1 << at).filter(|bit| self.open & bit != 0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    call: CallId,
    deadline: Nanos,
}

/// What follows when an attempt is undone.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Another, if the policy allows it.
    Again,
    Settle(Outcome),
}

impl<L: InSession> BySession<L> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, lock: L) -> Self {
        Self {
            spec,
            chance,
            lock,
            calls: Calls::default(),
            backoff: Backoff::default(),
            conflicts: 0,
            keys: Keys::one(Key(0)),
            mode: Mode::Exclusive,
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, keys: Keys, mode: Mode, out: &mut Actions) {
        match self.state {
            State::Idle => {
                (self.keys, self.mode) = (keys, mode);
                self.backoff = Backoff::begin(now);
                self.conflicts = 0;
                self.attempt(now, out);
            }
            State::Held | State::Lapsed => panic!("Acquire, but the last grant was not released"),
            State::Asking(_) | State::Undoing(..) | State::Pausing(_) | State::GivingBack(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        // A release is a request of its own.
        self.conflicts = 0;
        match self.state {
            State::Held => self.give_back(now, out),
            // It ended with the session, and what is said to the next one concerns nobody.
            State::Lapsed => self.settle(Outcome::Expired, out),
            State::Idle | State::Asking(_) | State::Undoing(..) | State::Pausing(_) | State::GivingBack(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // It may stand in the queue for long, and be granted yet.
            State::Asking(_) if self.lock.blocks() => self.part(Outcome::Unknown, out),
            // At once: it travels behind the calls on the same connection, and undoes what they have done.
            State::Asking(_) => self.undo(now, self.lock.undo(self.mode), Then::Settle(Outcome::Released), out),
            State::Undoing(undoing, _) => self.state = State::Undoing(undoing, Then::Settle(Outcome::Released)),
            State::Held | State::Lapsed => self.release(now, out),
            // On its way already; the one settlement to come answers both requests.
            State::GivingBack(_) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Asking(asking) => {
                if let Some(bit) = asking.bit(call) {
                    self.asked(now, asking, bit, reply, out);
                }
            }
            State::Undoing(undoing, then) if undoing.call == call => self.undone(now, then, reply, out),
            State::GivingBack(back) if back.call == call => self.given_back(reply, out),
            // An answer to a call that was given up, or undone. It says how things stood then, not whether we hold
            // anything now.
            State::Undoing(..)
            | State::GivingBack(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held
            | State::Lapsed => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        let lost = match self.state {
            State::Asking(asking) => asking.bit(call).is_some(),
            State::Undoing(waiting, _) | State::GivingBack(waiting) => waiting.call == call,
            // A call of a connection that was given up.
            State::Idle | State::Pausing(_) | State::Held | State::Lapsed => false,
        };
        if lost {
            self.settle(Outcome::Unknown, out);
        }
    }

    fn disconnected(&mut self, out: &mut Actions) {
        match self.state {
            State::Held if self.lock.lane() == Lane::Own => {
                self.state = State::Lapsed;
                out.lapsed();
            }
            // The loss of a call is told by itself; and this may be the end of a connection that was hung up on, or not
            // that of the session in which it is held.
            State::Held
            | State::Idle
            | State::Asking(_)
            | State::Undoing(..)
            | State::Pausing(_)
            | State::Lapsed
            | State::GivingBack(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Asking(asking) => asking.deadline,
            State::Undoing(waiting, _) | State::GivingBack(waiting) => waiting.deadline,
            State::Pausing(until) => until,
            // The point guarded a call that has been answered since.
            State::Idle | State::Held | State::Lapsed => return,
        };
        match (wait(now, deadline, out), self.state) {
            (Wait::GoesOn, _) => {}
            (Wait::Over, State::Pausing(_)) => self.attempt(now, out),
            (Wait::Over, _) => self.part(Outcome::Unknown, out),
        }
    }
}

mod steps;
pub(crate) use steps::kind_of;

impl<L: InSession> LockMachine for BySession<L> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire { keys, mode } => {
                let keys = if L::MANY_KEYS { keys } else { keys.only().into() };
                self.acquire(now, keys, mode, out);
            }
            Event::Enter => panic!("Enter, but it does not nest"),
            // It subscribes to nothing.
            Event::Published { .. } => {}
            Event::Disconnected => self.disconnected(out),
            Event::Release => self.release(now, out),
            Event::Cancel => self.cancel(now, out),
            Event::Replied { call, reply } => self.replied(now, call, reply, out),
            Event::Lost { call } => self.lost(call, out),
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
