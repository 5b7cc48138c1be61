//! `fair`: the stream queue as it is published. `XADD` adds a ticket, `XREADGROUP ... BLOCK` reads one, then `SET NX
//! PX` takes the lock.
//!
//! ```text
//!                             entry:
//!         Acquire             Queued          entry
//!    Idle ──────▶ Opening ──▶ Adding ──▶ Reading ──▶ Asking ── OK in time ──▶ Held
//!                   ▲ └ group known: straight on ▲ ▲     ▲ │ └ OK too late ─▶ │ │ Release, Cancel
//!                   │                  no ticket │ │ Woke│ │ Nil              ▼ ▼
//!                   └────────────────────────────┘ │    Pausing ◀──────── Releasing ───▶ Idle
//!                      (the group is gone: once)   └ Adding again
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`, a `Cancel` that drops the ticket).
//!
//! The published algorithm is not fair: the group hands a ticket to the next reader, no matter whose ticket it is. This
//! machine keeps that flaw so that its inversions can be counted, and changes one thing: it never hangs. A holder that
//! dies leaves its ticket pending for ever, which harms nobody, because each waiter adds a ticket of its own. A client
//! that has read a ticket repeats `SET NX PX` as the retry policy says, and gets the lock when the dead holder's lease
//! has ended. A client that gives up drops the ticket that it read, or, if it read none, its own. A ticket that will
//! never be handed out (trimmed, or read over a connection that then broke) costs its waiter one blocking read; then
//! the waiter adds a new one.
//!
//! The reply to `XADD` acknowledges the place in the queue: from then on the ticket stands, and later clients add
//! theirs behind it. A ticket that replaces a lost one stands at the end and is acknowledged anew. Nobody waits at the
//! earlier place any more, so nobody can be overtaken there: the inversions counted for a client are at most those that
//! happened to it.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own; each wait
//! on the server is bounded. Does not promise order, although it acknowledges places.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, PendingKeyCall, check_deadline};
use crate::{
    Actions, CallId, Chance, Command, EntryId, Event, Key, LockMachine, Mode, Nanos, Outcome, Reply, ScriptForm, Spec,
    Token,
};

/// The longest blocking read.
const BLOCK: Nanos = Nanos::from_secs(1);
/// The length to which the queue is trimmed: far more than wait at once, because trimming only removes what dead
/// clients left.
const LENGTH: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Fair {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    /// The reader's name in the group. One name for all requests of a client, because the server keeps each name for
    /// ever.
    reader: Token,
    /// The key whose group is known to exist.
    open: Option<Key>,
    /// The group was created again during this request.
    reopened: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The command that creates the group has no reply yet.
    Opening(PendingKeyCall),
    Adding(PendingKeyCall),
    /// As `Adding`, but the request was cancelled.
    Withdrawing(PendingKeyCall),
    Reading(Reading),
    /// The `SET` has no reply yet.
    Asking(Asking),
    Pausing(Pausing),
    Held(TicketAttempt),
    /// The compare-and-delete has no reply yet.
    Releasing(Releasing),
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    key: Key,
    /// The ticket that this client added.
    own: EntryId,
    call: CallId,
    /// When the read is given up: the longest time it may block, plus the reply timeout.
    until: Nanos,
}

/// The key that an attempt tries to own, its fresh token, and the ticket that entitles it to try.
#[derive(Clone, Copy, Debug)]
struct TicketAttempt {
    key: Key,
    token: Token,
    ticket: EntryId,
}

impl TicketAttempt {
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
    attempt: TicketAttempt,
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
struct Releasing {
    attempt: TicketAttempt,
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
    why: Why,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// The grant came when its lease had practically ended. The ticket is kept for the next attempt.
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
            | State::Releasing(_) => panic!("Acquire, but the last request is not settled"),
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(attempt) => self.send_release(now, attempt, Why::Release, out),
            State::Idle
            | State::Opening(_)
            | State::Adding(_)
            | State::Withdrawing(_)
            | State::Reading(_)
            | State::Asking(_)
            | State::Pausing(_)
            | State::Releasing(_) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            // Nobody owns the group that is being created.
            State::Idle | State::Opening(_) => self.settle(Outcome::Released, out),
            // The reply names the ticket to drop. The wake-up that was asked for at the send still bounds the wait.
            State::Adding(adding) => self.state = State::Withdrawing(adding),
            State::Reading(reading) => {
                out.hang_up();
                self.drop_ticket(reading.key, reading.own, out);
                self.settle(Outcome::Released, out);
            }
            // Sent at once: the delete follows the `SET` on the same connection and undoes it.
            State::Asking(asking) => self.send_release(now, asking.attempt, Why::Cancel, out),
            State::Pausing(pausing) => {
                self.hand_in(pausing.key, pausing.ticket, out);
                self.settle(Outcome::Released, out);
            }
            State::Held(attempt) => self.send_release(now, attempt, Why::Release, out),
            State::Releasing(releasing) => match releasing.why {
                Why::TooLate => {
                    self.hand_in(releasing.attempt.key, releasing.attempt.ticket, out);
                    let why = Why::Cancel;
                    self.state = State::Releasing(Releasing { why, ..releasing });
                }
                // The release was already sent; its one settlement answers both requests.
                Why::Release | Why::Cancel => {}
            },
            // Already cancelled; its one settlement answers both requests.
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
            State::Releasing(releasing) if releasing.call == call => self.release_answered(now, releasing, reply, out),
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been released.
            State::Idle
            | State::Opening(_)
            | State::Adding(_)
            | State::Withdrawing(_)
            | State::Reading(_)
            | State::Asking(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(_) => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        let lost = match self.state {
            State::Opening(waiting) | State::Adding(waiting) | State::Withdrawing(waiting) => Some(waiting.call),
            State::Reading(reading) => Some(reading.call),
            State::Asking(asking) => Some(asking.call),
            State::Releasing(releasing) => Some(releasing.call),
            State::Idle | State::Pausing(_) | State::Held(_) => None,
        };
        // Otherwise the lost call was given up earlier. A held lock does not depend on a connection.
        if lost == Some(call) {
            self.no_reply(out);
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Opening(waiting) | State::Adding(waiting) | State::Withdrawing(waiting) => {
                waiting.sent.after(self.spec.reply_timeout)
            }
            State::Reading(reading) => reading.until,
            State::Asking(asking) => asking.sent.after(self.spec.reply_timeout),
            State::Pausing(pausing) => pausing.until,
            State::Releasing(releasing) => releasing.sent.after(self.spec.reply_timeout),
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => return,
        };
        match (check_deadline(now, deadline, out), self.state) {
            (Deadline::Ahead, _) => {}
            (Deadline::Passed, State::Pausing(pausing)) => self.attempt(now, pausing.key, pausing.ticket, out),
            (Deadline::Passed, State::Reading(_)) => {
                // Later commands on that connection would get no reply either.
                out.hang_up();
                self.no_reply(out);
            }
            (Deadline::Passed, _) => self.no_reply(out),
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
            // This lock subscribes to nothing. Of its own connection only the blocking read matters, and `Lost` reports
            // that.
            Event::Published { .. } | Event::Disconnected => {}
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }
}
