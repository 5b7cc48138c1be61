//! `fair-queue`: a queue on the server, in order of arrival. A release hands the lock to the first waiter and wakes it.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────▶ Held ─────────────────▶ Leaving ──▶ Idle
//!                   ▲ ▲ │ └── taken too late, Cancel ───────────────▶ ▲ ▲ │
//!         woken, or │ │ │ queued                                      │ │ │ was too late, and the
//!         time to   │ │ ▼                    Cancel, the longest wait │ │ │ policy allows another
//!         beat      └─│─ Waiting ─────────────────────────────────────┘ │ ▼       (Waiting ── woken ──▶ Held)
//!                     └──────────────────────── Woke ───────────────── Pausing
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! The script `queue_take` does all that a waiter needs: it joins the queue, shows that the waiter is alive (a beat),
//! and takes the lock when it is the waiter's turn. Between beats the waiter blocks in a pop of its own wake-up list,
//! over its own connection. Beats go over a shared connection, so that the pop may block for longer than a beat: a
//! waiter sends a beat every 2 s and a pop every 6 s.
//!
//! The script `queue_confirm` confirms a lock that was handed over, and tells its holder which client is first in the
//! queue: the successor. It prepares the successor's wake-up list under the holder's own name, where the list lasts no
//! longer than the holder's lease and the successor's place. The release that others wait for is then one `RENAME`: it
//! fails unless both still last, and otherwise it wakes the successor. The successor keeps its place as the first until
//! it has confirmed: once its prepared list is gone, the lock is its own and nobody overtakes it. If no successor is
//! known, or the prepared list is gone, the script `queue_leave` releases the lock and finds the next waiter. A client
//! that released its last lock before it could use the successor's name asks for none: if the work is that short, or
//! the server that busy, preparing a successor costs the server more than it saves.
//!
//! A handed-over lock belongs to the waiter from the release of the holder before. The waiter cannot know when that
//! was, but it was after the waiter's last beat. So the waiter holds the lock as soon as it is woken, for its lease or
//! `ALIVE` beats, whichever is shorter, counted from the send of that beat; and for the whole lease once that is
//! confirmed. A hand-over takes one round trip. If the lease is shorter than a beat, that time may already have ended;
//! then the waiter sends `queue_take` before it holds.
//!
//! Bounds: a dead waiter leaves the queue `ALIVE` beats after its last one. A lock that was handed to a dead waiter is
//! free after one lease, or two if its place lasts for longer than one. An expired lock is taken for the first waiter
//! by the next beat of any waiter. So a dead holder's lock is granted again within its lease and one and a quarter
//! beats (beats are spread by up to a quarter).
//!
//! Promises: order of arrival among those whose beats reach the server; never held past the lease, nor by a reply to an
//! earlier attempt; hands on no lock but its own. Of the policy, `max_wait` bounds the wait, kind `none` does not
//! queue, and `max_attempts` counts places in the queue. Does not promise safety when the server loses its data.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, check_deadline};
use crate::grant::Attempt;
use crate::{
    Actions, CallId, Chance, ErrorKind, Event, Key, LockMachine, Millis, Mode, Nanos, Outcome, Refusal, Reply,
    ScriptForm, Spec, Token,
};

/// How many beats long a waiter counts as alive after a beat: two of them may be missed.
const ALIVE: u64 = 3;

#[derive(Debug)]
pub(crate) struct FairQueue {
    spec: Arc<Spec>,
    beat: Millis,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    /// The blocking pop, possibly one of an earlier request.
    pop: Option<WakeupPop>,
    /// The pop's connection was lost since the last beat, and one more pop was tried. Then no other is tried before the
    /// next beat: if no connection can be had, each would be lost at once.
    was_cut: bool,
    /// An earlier place lapsed, possibly together with a lock that had been handed over. The wake-up for that lock may
    /// still arrive, and must not be taken for one for the current place.
    stale_wakeup: bool,
    /// The last hold was long enough for asking for a successor to pay off.
    wants_successor: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct WakeupPop {
    call: CallId,
    token: Token,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The script that joins, beats and takes has no reply yet.
    Asking(Asking),
    /// This client has a place in the queue.
    Waiting(Waiting),
    Pausing(Pausing),
    Held(Held),
    /// The script that leaves and hands on has no reply yet.
    Leaving(Leaving),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    attempt: Attempt,
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
    /// The server has acknowledged a place.
    placed: bool,
    /// The wake-up came since this was sent: a reply that says "wait" is older than the wake-up.
    woken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    attempt: Attempt,
    /// When the last answered beat was sent.
    beat_sent: Nanos,
    beat_at: Nanos,
    /// The end of the longest wait.
    end: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    attempt: Attempt,
    until: Nanos,
    /// The confirmation of a handed-over lock, until it is answered.
    confirming: Option<Confirming>,
    since: Nanos,
    /// When the lock was confirmed, and the successor at that time.
    confirmed: Option<(Nanos, Option<Token>)>,
}

#[derive(Clone, Copy, Debug)]
struct Confirming {
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
}

#[derive(Clone, Copy, Debug)]
struct Pausing {
    key: Key,
    until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    attempt: Attempt,
    call: CallId,
    sent: Nanos,
    by: LeaveBy,
    /// Whether this client may still be blocked in its pop.
    may_block: bool,
    why: Why,
}

/// How the client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaveBy {
    /// By the script, which finds the next waiter.
    Script(ScriptForm),
    /// By waking the successor.
    HandOver,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// The grant came when its lease had practically ended.
    TooLate,
    /// The policy allows no more waiting.
    Refused(Refusal),
    /// The wake-up list cannot be read.
    Failed(ErrorKind),
}

impl FairQueue {
    pub(crate) fn new(spec: Arc<Spec>, beat: Millis, chance: Chance) -> Self {
        Self {
            spec,
            beat,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            pop: None,
            was_cut: false,
            stale_wakeup: false,
            wants_successor: true,
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                self.attempt(now, key, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(_) | State::Waiting(_) | State::Pausing(_) | State::Leaving(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(held) => self.send_release(now, held, out),
            State::Idle | State::Asking(_) | State::Waiting(_) | State::Pausing(_) | State::Leaving(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // Sent at once: the script follows `queue_take` on the same connection and undoes it.
            State::Asking(Asking { attempt, .. }) | State::Waiting(Waiting { attempt, .. }) => {
                self.leave(now, attempt, Why::Cancel, out);
            }
            State::Held(held) => self.send_release(now, held, out),
            State::Leaving(leaving) => match leaving.why {
                Why::TooLate | Why::Refused(_) | Why::Failed(_) => {
                    let why = Why::Cancel;
                    self.state = State::Leaving(Leaving { why, ..leaving });
                }
                // The release was already sent; its one settlement answers both requests.
                Why::Release | Why::Cancel => {}
            },
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        if let Some(pop) = self.pop.take_if(|pop| pop.call == call) {
            return self.pop_answered(now, pop.token, reply, out);
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::Leaving(leaving) if leaving.call == call => self.left(now, leaving, reply, out),
            State::Held(held) if held.is_confirmed_by(call) => self.confirmed(now, held, reply, out),
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been handed on.
            State::Idle
            | State::Asking(_)
            | State::Waiting(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    fn pop_answered(&mut self, now: Nanos, token: Token, reply: Reply, out: &mut Actions) {
        // Only one stale wake-up can arrive. A pop that ended empty may have ended before it came: then the next pop
        // finds it.
        let may_be_stale = self.stale_wakeup;
        self.stale_wakeup &= reply == Reply::Nil;
        match &mut self.state {
            &mut State::Waiting(waiting) if waiting.attempt.token == token => {
                let attempt = waiting.attempt;
                match reply {
                    Reply::Int(1..) if !may_be_stale => self.handed_over(now, waiting, out),
                    Reply::Int(0..) | Reply::Items => self.ask(now, attempt, ScriptForm::Sha, true, out),
                    Reply::Nil => self.start_pop(attempt, out),
                    Reply::Error(kind) => self.leave(now, attempt, Why::Failed(kind), out),
                    Reply::Ok | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Other => {
                        self.leave(now, attempt, Why::Failed(ErrorKind::Unexpected), out);
                    }
                }
            }
            // An error is met again when the reply has come and the pop is repeated.
            State::Asking(asking) if asking.attempt.token == token => {
                asking.woken |= matches!(reply, Reply::Int(0..) | Reply::Items);
            }
            // The wake-up list of an earlier request, or of this one after its end.
            State::Asking(_)
            | State::Waiting(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        if let Some(pop) = self.pop.take_if(|pop| pop.call == call) {
            return self.pop_lost(now, pop.token, out);
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.abandon(asking.attempt, Outcome::Unknown, out),
            State::Leaving(leaving) if leaving.call == call => self.settle(Outcome::Unknown, out),
            // The lost call was given up, or it was the confirmation of a hand-over, whose lease lasts all the same. A
            // lock or a place does not depend on a connection.
            State::Idle
            | State::Asking(_)
            | State::Waiting(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    /// The wake-up may have been lost with the connection: ask the server.
    fn pop_lost(&mut self, now: Nanos, token: Token, out: &mut Actions) {
        if self.was_cut {
            return; // The next beat asks the server.
        }
        match &mut self.state {
            State::Waiting(waiting) if waiting.attempt.token == token => {
                let attempt = waiting.attempt;
                self.was_cut = true;
                self.ask(now, attempt, ScriptForm::Sha, true, out);
            }
            State::Asking(asking) if asking.attempt.token == token => {
                self.was_cut = true;
                asking.woken = true;
            }
            // The wake-up list of an earlier request, or of this one after its end.
            State::Asking(_)
            | State::Waiting(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking) => match check_deadline(now, asking.sent.after(self.spec.reply_timeout), out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.abandon(asking.attempt, Outcome::Unknown, out),
            },
            State::Waiting(waiting) => match check_deadline(now, waiting.beat_at.min(waiting.end), out) {
                Deadline::Ahead => {}
                Deadline::Passed if now >= waiting.end => {
                    self.leave(now, waiting.attempt, Why::Refused(Refusal::TimedOut), out);
                }
                Deadline::Passed => {
                    self.was_cut = false;
                    self.ask(now, waiting.attempt, ScriptForm::Sha, true, out);
                }
            },
            State::Pausing(pausing) => match check_deadline(now, pausing.until, out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.attempt(now, pausing.key, out),
            },
            State::Leaving(leaving) => match check_deadline(now, leaving.sent.after(self.spec.reply_timeout), out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.settle(Outcome::Unknown, out),
            },
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }
}

mod steps;

impl LockMachine for FairQueue {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it excludes everybody"),
            Event::Enter => panic!("Enter, but it does not nest"),
            Event::Release => self.release(now, out),
            Event::Cancel => self.cancel(now, out),
            Event::Replied { call, reply } => self.replied(now, call, reply, out),
            Event::Lost { call } => self.lost(now, call, out),
            // This lock subscribes to nothing. Of its own connection only the pop matters, and `Lost` reports that.
            Event::Published { .. } | Event::Disconnected => {}
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }

    fn is_placed(&self, now: Nanos) -> bool {
        match self.state {
            // Counted from before the send, and by the driver's clock: one beat of margin lies between that and the
            // lapse.
            State::Waiting(waiting) => now < waiting.beat_sent.after(Nanos::from_millis(self.beat.0 * (ALIVE - 1))),
            State::Idle | State::Asking(_) | State::Pausing(_) | State::Held(_) | State::Leaving(_) => false,
        }
    }
}
