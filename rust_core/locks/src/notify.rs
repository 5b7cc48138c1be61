//! `notify`: a loser subscribes to the lock's channel, and tries again when a release is published there.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────▶ Held ─────────────────▶ GivingBack ──▶ Idle
//!                   ▲ ▲ ▲ │ └── taken too late, Cancel ─────────────▶ ▲ │
//!              told │ │ │ │ another's                                   │ was too late, and the
//!       or time out │ │ │ ├─────────▶ Subscribing ── fails ──▶ Pausing ◀┘ policy allows another
//!                   │ │ │ │              │    ▲                 │
//!                   │ │ └─│── stands ────┘    │ disconnected    │ Woke
//!                   │ └───│───────────────────│─────────────────┘
//!                Listening ◀── stood when asked
//!                     └── told, but not first ──▶ Yielding ── Woke, or told as first ──▶ Asking
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`; a Cancel while subscribing, listening, yielding
//! or pausing).
//!
//! No wake-up is lost: what is waited for is a message after an attempt that was *sent* when the subscription stood, and
//! a message that overtakes the answer to that attempt is remembered. An attempt is a plain
//! `SET NX PX`, but for the one before a wait, which is a script that says how long the holder's lease still lasts; who is
//! refused after a message need not ask, for whoever was quicker has nearly all of the lease before him. A holder that dies publishes nothing: each waiter
//! also tries when the holder's lease ends, a random part of the policy's `base` later, so that they do not come at once.
//! Where that lease was renewed meanwhile it is told the new end, and waits for that: while a holder renews, a waiter asks
//! once in each two thirds of a lease at most, and after the last renewal of one that died at the end.
//! The subscription stays when the lock is taken, and is given up only when another lock has to be waited for: a client
//! that comes back to the same lock spends one command less on each wait, and a message that nobody waits for is no
//! command. Where no subscription can be had, the policy's pauses are used instead.
//!
//! A message that several hear over one subscription, in one process, wakes all of them; but whoever is not the first to
//! be told tries a tenth of the policy's `base` later. The first one has its answer by then: it would otherwise come only
//! after those to all the others, who try in vain.
//!
//! What is held is kept by `Kept`, where that is asked for.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own. Of the
//! policy, `max_wait` bounds the wait and kind `none` fails fast. Does not promise order: a release wakes all waiters,
//! and whoever comes first has it. The rest of the herd is seen in the attempts.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Wait, wait};
use crate::claim::{Claim, Grant};
use crate::kept::Kept;
use crate::{Actions, CallId, Chance, Event, Key, LockMachine, Mode, Nanos, Outcome, Refusal, Reply, ScriptForm, Spec};

#[derive(Debug)]
pub(crate) struct Notify {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    subscription: Subscription,
    state: State,
}

/// Outlives the requests: see above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    /// Not confirmed yet.
    Asked {
        key: Key,
        call: CallId,
    },
    Stands {
        key: Key,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The script that takes it is not answered.
    Asking(Asking),
    /// The subscription is not confirmed.
    Subscribing(Subscribing),
    /// For a message, or for the end of the holder's lease.
    Listening(Listening),
    /// Told of a release, but somebody else was told first.
    Yielding(Pausing),
    /// Without a subscription.
    Pausing(Pausing),
    Held(Grant),
    /// The script that gives it back is not answered.
    GivingBack(GivingBack),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    claim: Claim,
    call: CallId,
    sent: Nanos,
    how: How,
    /// The subscription stood when this was sent: no release after it goes unheard.
    heard: bool,
    /// A message came since it was sent.
    told: bool,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The first of a request, by plain `SET NX PX`, which costs the server less than the script.
    First,
    /// After a message, in the same way. Whoever was quicker has it since that message, so that nearly all of the lease is
    /// left.
    Told,
    /// Before a wait, by script, which says for how long the holder's lease still lasts.
    Looking(ScriptForm),
}

#[derive(Clone, Copy, Debug)]
struct Subscribing {
    key: Key,
    call: CallId,
    sent: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Listening {
    key: Key,
    /// When to try without a message; never later than `end`.
    until: Nanos,
    /// The end of the longest wait.
    end: Nanos,
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

const LOOKING: How = How::Looking(ScriptForm::Sha);

/// Renewed three times in each lease, or not at all.
pub(crate) fn notify(spec: Arc<Spec>, chance: Chance, renews: bool) -> Kept<Notify> {
    Kept::new(Notify::new(spec, chance), renews.then_some(3), Nanos::NEVER)
}

impl Notify {
    fn new(spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            spec,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            subscription: Subscription::None,
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                self.attempt(now, key, How::First, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::GivingBack(_) => panic!("Acquire, but the last request is not settled"),
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(grant) => self.give_back(now, grant.claim, ScriptForm::Sha, Why::Release, out),
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::GivingBack(_) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            // Nothing is taken. A subscription that is on its way is welcome later.
            State::Idle | State::Subscribing(_) | State::Listening(_) | State::Yielding(_) | State::Pausing(_) => {
                self.settle(Outcome::Released, out);
            }
            // At once: it travels behind the attempt on the same connection, and undoes what that has done.
            State::Asking(asking) => self.give_back(now, asking.claim, ScriptForm::Sha, Why::Cancel, out),
            State::Held(grant) => self.give_back(now, grant.claim, ScriptForm::Sha, Why::Release, out),
            State::GivingBack(back) => match back.why {
                Why::TooLate => {
                    let why = Why::Cancel;
                    self.state = State::GivingBack(GivingBack { why, ..back });
                }
                // On its way already; the one settlement to come answers both requests.
                Why::Release | Why::Cancel => {}
            },
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        if let Subscription::Asked { key, call: asked } = self.subscription
            && asked == call
        {
            self.subscription = match reply {
                Reply::Ok => Subscription::Stands { key },
                Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Error(_)
                | Reply::Other => Subscription::None,
            };
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::Subscribing(subscribing) if subscribing.call == call => {
                self.subscribed(now, subscribing.key, reply, out);
            }
            State::GivingBack(back) if back.call == call => self.given_back(now, back, reply, out),
            // An answer to a call that was given up. It says how things stood then, not whether we hold anything now,
            // and whatever it may have taken has been asked back.
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        if matches!(self.subscription, Subscription::Asked { call: asked, .. } if asked == call) {
            self.subscription = Subscription::None;
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.abandon(asking.claim, Outcome::Unknown, out),
            State::Subscribing(subscribing) if subscribing.call == call => self.pause(now, subscribing.key, out),
            State::GivingBack(back) if back.call == call => self.settle(Outcome::Unknown, out),
            // The connection of a call that was given up: what it may have taken frees itself within one lease. A lock
            // that is held is not tied to a connection.
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn published(&mut self, now: Nanos, first: bool, out: &mut Actions) {
        match &mut self.state {
            State::Asking(asking) => asking.told = true,
            &mut State::Listening(Listening { key, end, .. }) => {
                if first {
                    self.attempt(now, key, How::Told, out);
                } else {
                    let until = now.after(self.courtesy()).min(end);
                    self.state = State::Yielding(Pausing { key, until });
                    out.wake_at(until);
                }
            }
            &mut State::Yielding(Pausing { key, .. }) if first => self.attempt(now, key, How::Told, out),
            // Nobody waits; or the next attempt comes anyway, soon, at the confirmation or after the pause.
            State::Subscribing(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Idle
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn disconnected(&mut self, now: Nanos, out: &mut Actions) {
        self.subscription = Subscription::None;
        match self.state {
            State::Listening(listening) => self.subscribe(now, listening.key, out),
            // Nobody listens; the answer to the question, or to the one that is about to come, finds that nothing stands,
            // and subscribes; for a subscription that was on its way comes a `Lost`.
            State::Asking(_)
            | State::Yielding(_)
            | State::Subscribing(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::GivingBack(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking) => match wait(now, asking.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.abandon(asking.claim, Outcome::Unknown, out),
            },
            State::Subscribing(subscribing) => match wait(now, subscribing.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => {
                    // What else waits on that connection would not be answered either.
                    self.subscription = Subscription::None;
                    out.hang_up();
                    self.pause(now, subscribing.key, out);
                }
            },
            State::Listening(listening) => match wait(now, listening.until, out) {
                Wait::GoesOn => {}
                Wait::Over if now >= listening.end => self.settle(Outcome::Refused(Refusal::TimedOut), out),
                Wait::Over => self.attempt(now, listening.key, LOOKING, out),
            },
            State::Yielding(yielding) => match wait(now, yielding.until, out) {
                Wait::GoesOn => {}
                Wait::Over => self.attempt(now, yielding.key, How::Told, out),
            },
            State::Pausing(pausing) => match wait(now, pausing.until, out) {
                Wait::GoesOn => {}
                Wait::Over => self.attempt(now, pausing.key, How::First, out),
            },
            State::GivingBack(back) => match wait(now, back.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.settle(Outcome::Unknown, out),
            },
            // The point guarded a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }
}

mod around;
mod steps;

impl LockMachine for Notify {
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
            Event::Published { first } => self.published(now, first, out),
            Event::Disconnected => self.disconnected(now, out),
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }
}
