//! `fair-queue`: a queue on the server, in order of arrival; who gives the lock back hands it to the first and rings.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────▶ Held ─────────────────▶ Leaving ──▶ Idle
//!                   ▲ ▲ │ └── taken too late, Cancel ───────────────▶ ▲ ▲ │
//!         rung, or  │ │ │ queued                                      │ │ │ was too late, and the
//!         time to   │ │ ▼                    Cancel, the longest wait │ │ │ policy allows another
//!         beat      └─│─ Waiting ─────────────────────────────────────┘ │ ▼       (Waiting ── rung ──▶ Held)
//!                     └──────────────────────── Woke ───────────────── Pausing
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! One script does all that a waiter wants: it joins the queue, shows that the waiter lives (a beat), and takes the lock
//! when it is its turn. Between beats the waiter blocks at its doorbell over its own connection. Beats go over the shared
//! one, so that the pop may block for longer than a beat: a waiter sends a beat each 2 s, and a pop each 6 s.
//!
//! A second script confirms a lock that was handed over, and tells its holder who is first in the queue, its heir. It lays
//! the heir's bell ready under the holder's own name, where it lasts no longer than the holder's lease and the heir's
//! place. So the release that others wait for is one `RENAME`: it fails unless both last, and else it rings. The heir keeps
//! its place, as the first, until it has confirmed: with its bell gone the lock is its own, and nobody's turn comes before.
//! Where no heir is known, or the bell is not there, a third script gives back, and looks for whose turn it is. Whoever
//! gave the last lock back as soon as it was told of an heir, or before, asks for none: where work is that short, or the
//! server that busy, an heir costs the server more than it spares.
//!
//! A lock that was handed over is the waiter's from the release of the holder before. When that was the waiter cannot
//! know; but it was after its last beat. So it holds the lock as soon as it hears the ring, for its lease or `ALIVE` beats,
//! whichever is shorter, from the send of that beat; and for the whole lease once that is confirmed. A hand-off
//! takes one round trip; where a lease is shorter than a beat it may be over by that count, and then the first script is
//! asked before.
//!
//! Bounds: a waiter that died is out of the queue `ALIVE` beats after its last one, and a lock that was handed to it is
//! free after a lease, or two where its place lasts for longer than one; a lock that expired is taken by the next beat of
//! any waiter, for whoever is first. So the lock of a dead holder goes on within its lease and a beat (and a quarter, for
//! beats are spread).
//!
//! Promises: order of arrival among those whose beats reach the server; never held past the lease, nor by a reply to an
//! earlier attempt; hands on no lock but its own. Of the policy, `max_wait` bounds the wait, kind `none` does not queue,
//! and `max_attempts` counts places in the queue. Does not promise safety when the server loses its data.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Wait, wait};
use crate::claim::Claim;
use crate::{
    Actions, CallId, Chance, ErrorKind, Event, Key, LockMachine, Millis, Mode, Nanos, Outcome, Refusal, Reply,
    ScriptForm, Spec, Token,
};

/// How many beats a waiter counts as alive after one of them: two may be late.
const ALIVE: u64 = 3;

#[derive(Debug)]
pub(crate) struct FairQueue {
    spec: Arc<Spec>,
    beat: Millis,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    /// The pop that blocks, maybe one of an earlier request.
    bell: Option<Bell>,
    /// The pop was lost since the last beat: another one is tried, and then no more until the next beat, for where the
    /// connection cannot be had each would be lost at once.
    was_cut: bool,
    /// A place of ours lapsed, maybe with a lock that had been handed to us: the ring of that may still be on its way, and
    /// would be taken for one of the present place.
    stale_ring: bool,
    /// The last hold was long enough for an heir to be worth asking for.
    wants_heir: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct Bell {
    call: CallId,
    token: Token,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The script that joins, beats and takes is not answered.
    Asking(Asking),
    /// We have a place.
    Waiting(Waiting),
    Pausing(Pausing),
    Held(Held),
    /// The script that leaves and hands on is not answered.
    Leaving(Leaving),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    claim: Claim,
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
    /// The server has acknowledged a place.
    placed: bool,
    /// The bell rang since this was sent: if the answer says that we wait, it is older than the ring.
    rung: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    claim: Claim,
    /// When the last beat that was answered had been sent.
    beat_sent: Nanos,
    beat_at: Nanos,
    /// The end of the longest wait.
    end: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    claim: Claim,
    until: Nanos,
    /// The script that sets the whole lease of a lock that was handed over, while it is not answered.
    confirming: Option<Confirming>,
    since: Nanos,
    /// When it was confirmed, and the first in the queue then.
    told: Option<(Nanos, Option<Token>)>,
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
    claim: Claim,
    call: CallId,
    sent: Nanos,
    way: Way,
    /// Whether we may be blocked at our bell.
    listens: bool,
    why: Why,
}

/// How the server is told that we leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the script, which looks for whose turn it is.
    Script(ScriptForm),
    /// By ringing for the heir.
    ByName,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder is done.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// The grant came when its lease was as good as over.
    TooLate,
    /// The policy allows no more waiting.
    Refused(Refusal),
    /// The bell cannot be listened to.
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
            bell: None,
            was_cut: false,
            stale_ring: false,
            wants_heir: true,
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
            State::Held(held) => self.give_back(now, held, out),
            State::Idle | State::Asking(_) | State::Waiting(_) | State::Pausing(_) | State::Leaving(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // At once: it travels behind the question on the same connection, and undoes what that has done.
            State::Asking(Asking { claim, .. }) | State::Waiting(Waiting { claim, .. }) => {
                self.leave(now, claim, Why::Cancel, out);
            }
            State::Held(held) => self.give_back(now, held, out),
            State::Leaving(leaving) => match leaving.why {
                Why::TooLate | Why::Refused(_) | Why::Failed(_) => {
                    let why = Why::Cancel;
                    self.state = State::Leaving(Leaving { why, ..leaving });
                }
                // On its way already; the one settlement to come answers both requests.
                Why::Release | Why::Cancel => {}
            },
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        if let Some(bell) = self.bell.take_if(|bell| bell.call == call) {
            return self.answered_at_the_bell(now, bell.token, reply, out);
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::Leaving(leaving) if leaving.call == call => self.left(now, leaving, reply, out),
            State::Held(held) if held.is_confirmed_by(call) => self.confirmed(now, held, reply, out),
            // An answer to a call that was given up. It says how things stood then, not whether we hold anything now,
            // and whatever it may have taken has been handed on.
            State::Idle
            | State::Asking(_)
            | State::Waiting(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    fn answered_at_the_bell(&mut self, now: Nanos, token: Token, reply: Reply, out: &mut Actions) {
        // After a ring there is no other. A pop that found none in its time may have been over before the stale one came:
        // then the next pop finds it.
        let may_be_stale = self.stale_ring;
        self.stale_ring &= reply == Reply::Nil;
        match &mut self.state {
            &mut State::Waiting(waiting) if waiting.claim.token == token => {
                let claim = waiting.claim;
                match reply {
                    Reply::Int(1..) if !may_be_stale => self.handed_over(now, waiting, out),
                    Reply::Int(0..) | Reply::Items => self.ask(now, claim, ScriptForm::Sha, true, out),
                    Reply::Nil => self.listen(claim, out),
                    Reply::Error(kind) => self.leave(now, claim, Why::Failed(kind), out),
                    Reply::Ok | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Other => {
                        self.leave(now, claim, Why::Failed(ErrorKind::Unexpected), out);
                    }
                }
            }
            // What is no ring is met again when the answer has come and we listen again.
            State::Asking(asking) if asking.claim.token == token => {
                asking.rung |= matches!(reply, Reply::Int(0..) | Reply::Items);
            }
            // The bell of an earlier request, or of this one, which is decided.
            State::Asking(_)
            | State::Waiting(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        if let Some(bell) = self.bell.take_if(|bell| bell.call == call) {
            return self.lost_at_the_bell(now, bell.token, out);
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.abandon(asking.claim, Outcome::Unknown, out),
            State::Leaving(leaving) if leaving.call == call => self.settle(Outcome::Unknown, out),
            // The connection of a call that was given up, or of the question after a ring, whose promise lasts all the
            // same. A lock or a place is not tied to a connection.
            State::Idle
            | State::Asking(_)
            | State::Waiting(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Leaving(_) => {}
        }
    }

    /// The ring may have been lost with it: ask.
    fn lost_at_the_bell(&mut self, now: Nanos, token: Token, out: &mut Actions) {
        if self.was_cut {
            return; // The next beat asks.
        }
        match &mut self.state {
            State::Waiting(waiting) if waiting.claim.token == token => {
                let claim = waiting.claim;
                self.was_cut = true;
                self.ask(now, claim, ScriptForm::Sha, true, out);
            }
            State::Asking(asking) if asking.claim.token == token => {
                self.was_cut = true;
                asking.rung = true;
            }
            // The bell of an earlier request, or of this one, which is decided.
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
            State::Asking(asking) => match wait(now, asking.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.abandon(asking.claim, Outcome::Unknown, out),
            },
            State::Waiting(waiting) => match wait(now, waiting.beat_at.min(waiting.end), out) {
                Wait::GoesOn => {}
                Wait::Over if now >= waiting.end => {
                    self.leave(now, waiting.claim, Why::Refused(Refusal::TimedOut), out);
                }
                Wait::Over => {
                    self.was_cut = false;
                    self.ask(now, waiting.claim, ScriptForm::Sha, true, out);
                }
            },
            State::Pausing(pausing) => match wait(now, pausing.until, out) {
                Wait::GoesOn => {}
                Wait::Over => self.attempt(now, pausing.key, out),
            },
            State::Leaving(leaving) => match wait(now, leaving.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.settle(Outcome::Unknown, out),
            },
            // The point guarded a call that has been answered since.
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
            // It subscribes to nothing; and what matters of its connection is the pop, whose loss is told by itself.
            Event::Published { .. } | Event::Disconnected => {}
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }

    fn is_placed(&self, now: Nanos) -> bool {
        match self.state {
            // Counted from before the send, and by the driver's clock: less than a beat lies between that and the lapse.
            State::Waiting(waiting) => now < waiting.beat_sent.after(Nanos::from_millis(self.beat.0 * (ALIVE - 1))),
            State::Idle | State::Asking(_) | State::Pausing(_) | State::Held(_) | State::Leaving(_) => false,
        }
    }
}
