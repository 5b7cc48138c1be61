//! What the session locks of a database share: taking, retrying, undoing, releasing, and reporting that the session has
//! ended. The `SessionStatements` of a lock say what it sends and what the replies mean.
//!
//! ```text
//!          Acquire           all granted           Release, Cancel
//!    Idle ─────────▶ Asking ────────────▶ Held ─────────────────────▶ Releasing ───▶ Idle
//!                    │ ▲ │                  │ Disconnected
//!            refused │ │ │ failed, refused  └──▶ Lapsed ── Release, Cancel: nothing is sent ──▶ Idle
//!      (nothing is   ▼ │ ▼ (something is left), Cancel
//!              left) │ │ Undoing ──▶ Idle
//!                    │ │Woke │ undone, and the policy allows another
//!                   Pausing ◀┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal that leaves nothing; a lost reply; a reply that does not come in
//! time and a Cancel of a blocking statement, both with a `HangUp`, because what the server may still do ends with the
//! session).
//!
//! Promises: never held by a reply to an earlier attempt, nor by one to a call whose connection was closed; an attempt
//! holds all of its keys or none; a refused attempt leaves neither a lock nor an open transaction in the session, while
//! it pauses or after it has settled. Each request settles within the reply timeout of its last call; while it waits in
//! the server's queue, within its longest wait and the reply timeout.
//! Does not promise that server and holder learn of a session's end at the same time, in either order.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, PendingCall, check_deadline};
use crate::lease_protocol::{ReleaseReply, TakeReply};
use crate::{
    Actions, CallId, Chance, ConnectionKind, Event, Key, KeyList, LockMachine, Mode, Nanos, Outcome, Reply, Spec,
    Statement,
};

/// What one session lock sends to its server, and what the replies mean.
pub(crate) trait SessionStatements {
    const MANY_KEYS: bool = false;

    fn connection(&self) -> ConnectionKind {
        ConnectionKind::Own
    }

    /// Whether the statements wait in the server's queue.
    fn blocks(&self) -> bool;

    /// Takes the first of the keys.
    fn take(&self, mode: Mode) -> Statement;

    /// Takes a further key.
    fn take_also(&self, mode: Mode) -> Statement;

    /// The meaning of a reply to a statement that takes, unless it is an error.
    fn take_reply(&self, reply: Reply) -> TakeReply;

    /// The statement that cleans up after a refusal, if anything has to be.
    fn undo_refusal(&self) -> Option<Statement>;

    /// The statement that removes everything of an attempt, in whatever state it is.
    fn undo(&self, mode: Mode) -> Statement;

    /// Whether `reply` confirms the `undo`.
    fn undone(&self, reply: Reply) -> bool;

    fn release(&self, mode: Mode) -> Statement;

    /// The meaning of a reply to `release`; `None`: the lock may still be held.
    fn release_reply(&self, reply: Reply) -> Option<ReleaseReply>;
}

#[derive(Debug)]
pub(crate) struct SessionLock<L> {
    spec: Arc<Spec>,
    chance: Chance,
    lock: L,
    calls: Calls,
    backoff: Backoff,
    conflicts: u32,
    /// The keys of the current or last `Acquire`.
    keys: KeyList,
    mode: Mode,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Asking(Asking),
    /// The statement that undoes an attempt has no reply yet.
    Undoing(PendingCall, Then),
    /// Waits until the next attempt.
    Pausing(Nanos),
    Held,
    /// The lock was held, but the session has ended.
    Lapsed,
    /// The statement that releases has no reply yet.
    Releasing(PendingCall),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    /// The call of the first key; the calls of the other keys follow in the order of the keys.
    first: CallId,
    /// The calls without a reply: one bit per key.
    open: u8,
    deadline: Nanos,
}

impl Asking {
    /// The bit of the key of this call.
    fn bit(self, call: CallId) -> Option<u8> {
        let at = call
            .0
            .checked_sub(self.first.0)
            .filter(|&at| at < KeyList::MOST as u64)?;
        Some(1 << at).filter(|bit| self.open & bit != 0)
    }
}

/// What follows when an attempt is undone.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Another attempt, if the policy allows one.
    Again,
    Settle(Outcome),
}

impl<L: SessionStatements> SessionLock<L> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, lock: L) -> Self {
        Self {
            spec,
            chance,
            lock,
            calls: Calls::default(),
            backoff: Backoff::default(),
            conflicts: 0,
            keys: KeyList::one(Key(0)),
            mode: Mode::Exclusive,
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, keys: KeyList, mode: Mode, out: &mut Actions) {
        match self.state {
            State::Idle => {
                (self.keys, self.mode) = (keys, mode);
                self.backoff = Backoff::begin(now);
                self.conflicts = 0;
                self.attempt(now, out);
            }
            State::Held | State::Lapsed => panic!("Acquire, but the last grant was not released"),
            State::Asking(_) | State::Undoing(..) | State::Pausing(_) | State::Releasing(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        // A release is a request of its own.
        self.conflicts = 0;
        match self.state {
            State::Held => self.send_release(now, out),
            // The lock ended with the session, and the new session holds nothing to release.
            State::Lapsed => self.settle(Outcome::Expired, out),
            State::Idle | State::Asking(_) | State::Undoing(..) | State::Pausing(_) | State::Releasing(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // The statement may stand in the queue for long, and may still be granted.
            State::Asking(_) if self.lock.blocks() => self.close_session(Outcome::Unknown, out),
            // Sent at once: the undo follows the calls on the same connection and undoes them.
            State::Asking(_) => self.undo(now, self.lock.undo(self.mode), Then::Settle(Outcome::Released), out),
            State::Undoing(undoing, _) => self.state = State::Undoing(undoing, Then::Settle(Outcome::Released)),
            State::Held | State::Lapsed => self.release(now, out),
            // The release was already sent; its one settlement answers both requests.
            State::Releasing(_) => {}
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
            State::Releasing(releasing) if releasing.call == call => self.release_answered(reply, out),
            // A reply to a call that was given up, or undone. It describes an earlier state of the server.
            State::Undoing(..)
            | State::Releasing(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held
            | State::Lapsed => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        let lost = match self.state {
            State::Asking(asking) => asking.bit(call).is_some(),
            State::Undoing(waiting, _) | State::Releasing(waiting) => waiting.call == call,
            // The lost call belongs to a connection that was given up.
            State::Idle | State::Pausing(_) | State::Held | State::Lapsed => false,
        };
        if lost {
            self.settle(Outcome::Unknown, out);
        }
    }

    fn disconnected(&mut self, out: &mut Actions) {
        match self.state {
            State::Held if self.lock.connection() == ConnectionKind::Own => {
                self.state = State::Lapsed;
                out.lapsed();
            }
            // `Lost` reports each lost call. This may be the end of a connection that this client closed itself, or of
            // another session than the holder's.
            State::Held
            | State::Idle
            | State::Asking(_)
            | State::Undoing(..)
            | State::Pausing(_)
            | State::Lapsed
            | State::Releasing(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Asking(asking) => asking.deadline,
            State::Undoing(waiting, _) | State::Releasing(waiting) => waiting.deadline,
            State::Pausing(until) => until,
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held | State::Lapsed => return,
        };
        match (check_deadline(now, deadline, out), self.state) {
            (Deadline::Ahead, _) => {}
            (Deadline::Passed, State::Pausing(_)) => self.attempt(now, out),
            (Deadline::Passed, _) => self.close_session(Outcome::Unknown, out),
        }
    }
}

mod steps;
pub(crate) use steps::kind_of;

impl<L: SessionStatements> LockMachine for SessionLock<L> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire { keys, mode } => {
                let keys = if L::MANY_KEYS { keys } else { keys.only().into() };
                self.acquire(now, keys, mode, out);
            }
            Event::Enter => panic!("Enter, but it does not nest"),
            // This lock subscribes to nothing.
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
