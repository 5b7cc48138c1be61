//! `mutex`: `SET key token NX PX ttl`, and compare-and-delete to give it back.
//!
//! ```text
//!          Acquire            OK in time        Release, Cancel
//!    Idle ─────────▶ Asking ────────────▶ Held ─────────────────▶ GivingBack ──▶ Idle
//!                    │ ▲ │ └── OK too late ───────────────────────▶ ▲ │
//!                Nil │ │ └── Cancel ──▶ Withdrawing ── OK ──────────┘ │ was too late, and the
//!                    ▼ │ Woke                                         │ policy allows another
//!                   Pausing ◀─────────────────────────────────────────┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own; each
//! request settles within the patience of its last call. Does not promise: safety when the server loses its data.

use std::sync::Arc;

use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Effect, SERVER, Wait, wait};
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Key, Lasts, LockMachine, Mode, Nanos, Outcome, Reply,
    ScriptForm, Spec, Token,
};

#[derive(Debug)]
pub(crate) struct Mutex {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The `SET` is not answered.
    Asking(Asking),
    /// As `Asking`, but nobody wants the lock any more.
    Withdrawing(Asking),
    Pausing(Pausing),
    Held(Claim),
    /// The compare-and-delete is not answered.
    GivingBack(GivingBack),
}

/// What an attempt wants to own. The token is fresh for each attempt.
#[derive(Clone, Copy, Debug)]
struct Claim {
    key: Key,
    token: Token,
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
    /// The grant came when its lease was as good as over.
    TooLate,
}

impl Mutex {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            spec,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
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
            State::Asking(_) | State::Withdrawing(_) | State::Pausing(_) | State::GivingBack(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(claim) => self.give_back(now, claim, ScriptForm::Sha, Why::Release, out),
            State::Idle | State::Asking(_) | State::Withdrawing(_) | State::Pausing(_) | State::GivingBack(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // The answer says whether there is anything to give back; the wake point asked for at the send still
            // bounds the wait for it.
            State::Asking(asking) => self.state = State::Withdrawing(asking),
            State::Held(claim) => self.give_back(now, claim, ScriptForm::Sha, Why::Release, out),
            State::GivingBack(back) => match back.why {
                Why::TooLate => {
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
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::Withdrawing(asking) if asking.call == call => self.withdrawn(now, asking, reply, out),
            State::GivingBack(back) if back.call == call => self.given_back(now, back, reply, out),
            // An answer to a call that was given up. It says how things stood then, not whether we hold anything now,
            // and whatever it may have taken has been asked back.
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        match self.state {
            State::Asking(asking) | State::Withdrawing(asking) if asking.call == call => {
                self.abandon(asking.claim, Outcome::Unknown, out);
            }
            State::GivingBack(back) if back.call == call => self.settle(Outcome::Unknown, out),
            // The connection of a call that was given up: what it may have taken frees itself within one lease. A lock
            // that is held is not tied to a connection.
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking) | State::Withdrawing(asking) => {
                match wait(now, asking.sent.after(self.spec.patience), out) {
                    Wait::GoesOn => {}
                    Wait::Over => self.abandon(asking.claim, Outcome::Unknown, out),
                }
            }
            State::GivingBack(back) => match wait(now, back.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.settle(Outcome::Unknown, out),
            },
            State::Pausing(pausing) if now >= pausing.until => self.attempt(now, pausing.key, out),
            State::Pausing(pausing) => out.wake_at(pausing.until),
            // The point guarded a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn attempt(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        self.backoff.attempt();
        let token = self.chance.token();
        let call = self.calls.fresh();
        out.send(
            call,
            SERVER,
            Command::SetNxPx {
                key,
                token,
                lease_ms: self.spec.lease.ttl().0,
            },
        );
        out.wake_at(now.after(self.spec.patience));
        let claim = Claim { key, token };
        self.state = State::Asking(Asking { claim, call, sent: now });
    }

    fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Ok => {
                let until = self.spec.lease.until(asking.sent);
                if until > now {
                    self.state = State::Held(asking.claim);
                    out.settle(Outcome::Held {
                        lasts: Lasts::Until(until),
                        fence: None,
                    });
                } else {
                    self.give_back(now, asking.claim, ScriptForm::Sha, Why::TooLate, out);
                }
            }
            Reply::Nil => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(asking.claim.key, next, out);
            }
            Reply::Error(kind) => match Effect::of(kind) {
                Effect::Nothing => self.settle(Outcome::Failed(kind), out),
                Effect::Unknown => self.abandon(asking.claim, Outcome::Failed(kind), out),
            },
            Reply::Int(_) | Reply::Entry(_) | Reply::Items | Reply::Other => {
                self.abandon(asking.claim, Outcome::Failed(ErrorKind::Unexpected), out)
            }
        }
    }

    fn withdrawn(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        let effect = match reply {
            Reply::Nil => Effect::Nothing,
            Reply::Error(kind) => Effect::of(kind),
            Reply::Ok | Reply::Int(_) | Reply::Entry(_) | Reply::Items | Reply::Other => Effect::Unknown,
        };
        match effect {
            Effect::Nothing => self.settle(Outcome::Released, out),
            Effect::Unknown => self.give_back(now, asking.claim, ScriptForm::Sha, Why::Cancel, out),
        }
    }

    fn give_back(&mut self, now: Nanos, claim: Claim, form: ScriptForm, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, claim.delete(form));
        out.wake_at(now.after(self.spec.patience));
        self.state = State::GivingBack(GivingBack {
            claim,
            call,
            sent: now,
            form,
            why,
        });
    }

    fn given_back(&mut self, now: Nanos, back: GivingBack, reply: Reply, out: &mut Actions) {
        match (reply, back.why) {
            (Reply::Int(0), Why::Release) => self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => self.settle(Outcome::Released, out),
            (Reply::Int(0 | 1), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                self.go_on(back.claim.key, next, out);
            }
            (Reply::Error(ErrorKind::NoScript), why @ (Why::Release | Why::Cancel | Why::TooLate))
                if back.form == ScriptForm::Sha =>
            {
                self.give_back(now, back.claim, ScriptForm::Source, why, out);
            }
            // The key, if it is there, frees itself within one lease.
            (Reply::Error(kind), Why::Release | Why::Cancel | Why::TooLate) => {
                self.settle(Outcome::Failed(kind), out);
            }
            (
                Reply::Ok | Reply::Nil | Reply::Int(_) | Reply::Entry(_) | Reply::Items | Reply::Other,
                Why::Release | Why::Cancel | Why::TooLate,
            ) => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn go_on(&mut self, key: Key, next: Next, out: &mut Actions) {
        match next {
            Next::TryAt(until) => {
                self.state = State::Pausing(Pausing { key, until });
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
        }
    }

    /// Settles now, with a last word to the server in case the `SET` is, or will be, carried out. It travels behind
    /// the `SET` on the same connection where that still stands.
    fn abandon(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        // As source: nobody waits for the answer, so nobody could meet a NOSCRIPT with another try.
        out.send(self.calls.fresh(), SERVER, claim.delete(ScriptForm::Source));
        self.settle(outcome, out);
    }

    fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl LockMachine for Mutex {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it excludes everybody"),
            Event::Enter => panic!("Enter, but it does not nest"),
            // It has no connection of its own.
            Event::Published | Event::Disconnected => {}
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
}
