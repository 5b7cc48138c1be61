//! `fair`: the stream queue as it is published. `XADD` my ticket, `XREADGROUP ... BLOCK` for one, then `SET NX PX`.
//!
//! ```text
//!                             entry:
//!         Acquire             Queued          entry
//!    Idle ──────▶ Opening ──▶ Adding ──▶ Reading ──▶ Asking ── OK in time ──▶ Held
//!                   ▲ └ group known: straight on ▲ ▲     ▲ │ └ OK too late ─▶ │ │ Release, Cancel
//!                   │                  no ticket │ │ Woke│ │ Nil              ▼ ▼
//!                   └────────────────────────────┘ │    Pausing ◀──────── GivingBack ──▶ Idle
//!                      (the group is gone: once)   └ Adding again
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`; a Cancel, which takes back what there is).
//!
//! It is not fair, for all its name: the group hands a ticket to whoever reads next, and whose ticket it is does not
//! matter. It is kept as it is, so that its inversions can be counted, but for one thing: it never hangs. A holder that
//! dies takes its ticket with it (that stays pending for ever, and nobody needs it: each waiter brought one of its own).
//! Whoever has read a ticket tries `SET NX PX` again as the retry policy says, and has the lock when the dead one's lease
//! has ended. Who gives up drops the ticket that it read, or, when it read none, its own. A ticket that nobody will
//! hand out any more (trimmed, or read by a connection that then broke) is missed for as long as one blocking read, and
//! then a new one is added.
//!
//! The place in the queue is acknowledged by the answer to `XADD`, for then the ticket stands, and whoever asks from now
//! on adds theirs behind it. A ticket that takes the place of one that is gone stands at the end, and is acknowledged
//! anew: nobody waits any more with the place before it, so that nobody can be passed at it. What is counted of a client
//! is therefore at most what befell it.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own; each wait on
//! the server is bounded. Does not promise order, though it says who has a place.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Wait, wait};
use crate::{
    Actions, CallId, Chance, Command, EntryId, Event, Key, LockMachine, Mode, Nanos, Outcome, Reply, ScriptForm, Spec,
    Token,
};

/// The longest blocking read.
const BLOCK: Nanos = Nanos::from_secs(1);
/// What the queue is trimmed to: far more than wait at once, for it is only to drop what the dead left.
const LENGTH: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Fair {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    /// The reader's name in the group. One for all requests of a client: the server keeps each for ever.
    reader: Token,
    /// The lock whose group is known to exist.
    open: Option<Key>,
    /// The group has been made anew in this request.
    reopened: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The group is being made.
    Opening(Unanswered),
    Adding(Unanswered),
    /// As `Adding`, but nobody wants the lock any more.
    Withdrawing(Unanswered),
    Reading(Reading),
    /// The `SET` is not answered.
    Asking(Asking),
    Pausing(Pausing),
    Held(Claim),
    /// The compare-and-delete is not answered.
    GivingBack(GivingBack),
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    key: Key,
    call: CallId,
    sent: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    key: Key,
    /// The ticket that we added.
    own: EntryId,
    call: CallId,
    /// The end of patience: after the longest that the read may block.
    until: Nanos,
}

/// What an attempt wants to own, and the ticket that entitles it to try. The token is fresh for each attempt.
#[derive(Clone, Copy, Debug)]
struct Claim {
    key: Key,
    token: Token,
    ticket: EntryId,
}

impl Claim {
    fn delete(self, form: ScriptForm) -> Command {
        Command::CompareAndDelete {
            key: self.key,
            token: self.token,
            form,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    claim: Claim,
    call: CallId,
    sent: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Pausing {
    key: Key,
    ticket: EntryId,
    until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct GivingBack {
    claim: Claim,
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
    why: Why,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder is done.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// The grant came when its lease was as good as over. The ticket is kept for the next attempt.
    TooLate,
}

impl Fair {
    pub(crate) fn new(spec: Arc<Spec>, mut chance: Chance) -> Self {
        let reader = chance.token();
        Self {
            spec,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            reader,
            open: None,
            reopened: false,
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                self.reopened = false;
                if self.open == Some(key) {
                    self.add(now, key, out);
                } else {
                    self.open(now, key, out);
                }
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Opening(_)
            | State::Adding(_)
            | State::Withdrawing(_)
            | State::Reading(_)
            | State::Asking(_)
            | State::Pausing(_)
            | State::GivingBack(_) => panic!("Acquire, but the last request is not settled"),
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(claim) => self.give_back(now, claim, Why::Release, out),
            State::Idle
            | State::Opening(_)
            | State::Adding(_)
            | State::Withdrawing(_)
            | State::Reading(_)
            | State::Asking(_)
            | State::Pausing(_)
            | State::GivingBack(_) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            // A group that is being made is nobody's.
            State::Idle | State::Opening(_) => self.settle(Outcome::Released, out),
            // The answer says what the ticket is called; the wake point asked for at the send still bounds the wait.
            State::Adding(adding) => self.state = State::Withdrawing(adding),
            State::Reading(reading) => {
                out.hang_up();
                self.drop_ticket(reading.key, reading.own, out);
                self.settle(Outcome::Released, out);
            }
            // At once: it travels behind the `SET` on the same connection, and undoes what that has done.
            State::Asking(asking) => self.give_back(now, asking.claim, Why::Cancel, out),
            State::Pausing(pausing) => {
                self.hand_in(pausing.key, pausing.ticket, out);
                self.settle(Outcome::Released, out);
            }
            State::Held(claim) => self.give_back(now, claim, Why::Release, out),
            State::GivingBack(back) => match back.why {
                Why::TooLate => {
                    self.hand_in(back.claim.key, back.claim.ticket, out);
                    let why = Why::Cancel;
                    self.state = State::GivingBack(GivingBack { why, ..back });
                }
                // On its way already; the one settlement to come answers both requests.
                Why::Release | Why::Cancel => {}
            },
            // Cancelled already; likewise.
            State::Withdrawing(_) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Opening(opening) if opening.call == call => self.opened(now, opening.key, reply, out),
            State::Adding(adding) if adding.call == call => self.added(now, adding.key, reply, out),
            State::Withdrawing(adding) if adding.call == call => self.withdrawn(adding.key, reply, out),
            State::Reading(reading) if reading.call == call => self.read(now, reading, reply, out),
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::GivingBack(back) if back.call == call => self.given_back(now, back, reply, out),
            // An answer to a call that was given up, or that nobody waits for. It says how things stood then, not
            // whether we hold anything now, and whatever it may have taken has been asked back.
            State::Idle
            | State::Opening(_)
            | State::Adding(_)
            | State::Withdrawing(_)
            | State::Reading(_)
            | State::Asking(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        let lost = match self.state {
            State::Opening(waiting) | State::Adding(waiting) | State::Withdrawing(waiting) => Some(waiting.call),
            State::Reading(reading) => Some(reading.call),
            State::Asking(asking) => Some(asking.call),
            State::GivingBack(back) => Some(back.call),
            State::Idle | State::Pausing(_) | State::Held(_) => None,
        };
        // Else the connection of a call that was given up, or that nobody waits for. A lock is not tied to a connection.
        if lost == Some(call) {
            self.unanswered(out);
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Opening(waiting) | State::Adding(waiting) | State::Withdrawing(waiting) => {
                waiting.sent.after(self.spec.patience)
            }
            State::Reading(reading) => reading.until,
            State::Asking(asking) => asking.sent.after(self.spec.patience),
            State::Pausing(pausing) => pausing.until,
            State::GivingBack(back) => back.sent.after(self.spec.patience),
            // The point guarded a call that has been answered since.
            State::Idle | State::Held(_) => return,
        };
        match (wait(now, deadline, out), self.state) {
            (Wait::GoesOn, _) => {}
            (Wait::Over, State::Pausing(pausing)) => self.attempt(now, pausing.key, pausing.ticket, out),
            (Wait::Over, State::Reading(_)) => {
                // What else waits on that connection would not be answered either.
                out.hang_up();
                self.unanswered(out);
            }
            (Wait::Over, _) => self.unanswered(out),
        }
    }
}

mod steps;

impl LockMachine for Fair {
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
            Event::Lost { call } => self.lost(call, out),
            // It subscribes to nothing; and what matters of its connection is the read, whose loss is told by itself.
            Event::Published { .. } | Event::Disconnected => {}
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }
}
