//! `notify`: a refused client subscribes to the lock's channel, and tries again when a release is published there.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────▶ Held ─────────────────▶ Releasing ───▶ Idle
//!                   ▲ ▲ ▲ │ └── taken too late, Cancel ─────────────▶ ▲ │
//!           message │ │ │ │ busy                                        │ was too late, and the
//!        or timeout │ │ │ ├─────────▶ Subscribing ── fails ──▶ Pausing ◀┘ policy allows another
//!                   │ │ │ │              │    ▲                 │
//!                   │ │ └─│── confirmed ─┘    │ disconnected    │ Woke
//!                   │ └───│───────────────────│─────────────────┘
//!                Listening ◀── subscribed before the attempt
//!                     └── message, not as first ──▶ Yielding ── Woke, or message as first ──▶ Asking
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`; a Cancel while subscribing, listening,
//! yielding or pausing).
//!
//! No wake-up is lost: the machine waits for a message only after an attempt that was *sent* while the subscription
//! stood, and it remembers a message that overtakes the reply to that attempt.
//!
//! An attempt is a plain `SET NX PX`. The attempt before a wait is a script instead, which returns the rest of the
//! holder's lease. A client that is refused after a message does not need that script, because the new holder has
//! nearly all of its lease left. A dead holder publishes nothing, so each waiter also tries when the holder's lease
//! ends, plus a random part of the policy's `base`, so that the waiters do not come at once. If the lease was renewed
//! meanwhile, the waiter learns the new end and waits for that: while a holder renews, a waiter sends at most one
//! attempt per two thirds of a lease. If the holder dies, the waiter tries when its last renewed lease ends.
//!
//! The subscription outlives the request, and is given up only for a wait on another lock: a client that returns to the
//! same lock saves one command per wait, and a message that nobody waits for costs no command. If no subscription can
//! be had, the policy's pauses are used instead.
//!
//! A message wakes all waiters that share a subscription, in one process; but all except the first one try a tenth of
//! the policy's `base` later. By then the first one has its reply, which would otherwise come after the replies to the
//! vain attempts of all others.
//!
//! `AutoRenewal` renews a held lock, if the strategy asks for it.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own. Of the
//! policy, `max_wait` bounds the wait, and kind `none` fails fast. Does not promise order: a release wakes all waiters,
//! and the first to arrive gets the lock. The attempts show the cost of waking all of them.

use std::sync::Arc;

use crate::auto_renewal::AutoRenewal;
use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, check_deadline};
use crate::grant::{Attempt, Grant};
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

/// The subscription outlives requests: see the file's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    /// The subscription is not confirmed yet.
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
    /// The attempt has no reply yet.
    Asking(Asking),
    /// The subscription is not confirmed yet.
    Subscribing(Subscribing),
    /// Waits for a message, or for the end of the holder's lease.
    Listening(Listening),
    /// A message of a release came, but another client received it first.
    Yielding(Pausing),
    /// Waits for the next attempt without a subscription.
    Pausing(Pausing),
    Held(Grant),
    /// The script that releases has no reply yet.
    Releasing(Releasing),
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    attempt: Attempt,
    call: CallId,
    sent: Nanos,
    kind: AttemptKind,
    /// The subscription stood when this was sent: a later release is not missed.
    subscribed_before: bool,
    /// A message came since this was sent.
    message_came: bool,
}

#[derive(Clone, Copy, Debug)]
enum AttemptKind {
    /// The first attempt of a request, by plain `SET NX PX`, which costs the server less than the script.
    First,
    /// After a message, by plain `SET NX PX`. A refusal means that another client has taken the lock since that
    /// message, so nearly all of its lease is left.
    AfterMessage,
    /// Before a wait, by the script, which returns the rest of the holder's lease.
    ByScript(ScriptForm),
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
    /// When to try without a message; not later than `end`.
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
struct Releasing {
    attempt: Attempt,
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
    /// The grant came when its lease had practically ended.
    TooLate,
}

const BY_SCRIPT: AttemptKind = AttemptKind::ByScript(ScriptForm::Sha);

/// Renewed three times per lease, or not at all.
pub(crate) fn notify(spec: Arc<Spec>, chance: Chance, renews: bool) -> AutoRenewal<Notify> {
    AutoRenewal::new(Notify::new(spec, chance), renews.then_some(3), Nanos::NEVER)
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
                self.attempt(now, key, AttemptKind::First, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Releasing(_) => panic!("Acquire, but the last request is not settled"),
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(grant) => self.send_release(now, grant.attempt, ScriptForm::Sha, Why::Release, out),
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Releasing(_) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            // Nothing is taken. A subscription that is under way can be used later.
            State::Idle | State::Subscribing(_) | State::Listening(_) | State::Yielding(_) | State::Pausing(_) => {
                self.settle(Outcome::Released, out);
            }
            // Sent at once: the release follows the attempt on the same connection and undoes it.
            State::Asking(asking) => self.send_release(now, asking.attempt, ScriptForm::Sha, Why::Cancel, out),
            State::Held(grant) => self.send_release(now, grant.attempt, ScriptForm::Sha, Why::Release, out),
            State::Releasing(releasing) => match releasing.why {
                Why::TooLate => {
                    let why = Why::Cancel;
                    self.state = State::Releasing(Releasing { why, ..releasing });
                }
                // The release was already sent; its one settlement answers both requests.
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
            State::Releasing(releasing) if releasing.call == call => self.release_answered(now, releasing, reply, out),
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been released.
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        if matches!(self.subscription, Subscription::Asked { call: asked, .. } if asked == call) {
            self.subscription = Subscription::None;
        }
        match self.state {
            State::Asking(asking) if asking.call == call => self.abandon(asking.attempt, Outcome::Unknown, out),
            State::Subscribing(subscribing) if subscribing.call == call => self.pause(now, subscribing.key, out),
            State::Releasing(releasing) if releasing.call == call => self.settle(Outcome::Unknown, out),
            // The lost call was given up, and its lease frees what it may have taken. A held lock does not depend on a
            // connection.
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(_) => {}
        }
    }

    fn published(&mut self, now: Nanos, first: bool, out: &mut Actions) {
        match &mut self.state {
            State::Asking(asking) => asking.message_came = true,
            &mut State::Listening(Listening { key, end, .. }) => {
                if first {
                    self.attempt(now, key, AttemptKind::AfterMessage, out);
                } else {
                    let until = now.after(self.yield_delay()).min(end);
                    self.state = State::Yielding(Pausing { key, until });
                    out.wake_at(until);
                }
            }
            &mut State::Yielding(Pausing { key, .. }) if first => {
                self.attempt(now, key, AttemptKind::AfterMessage, out);
            }
            // This client does not wait for a message, or its next attempt comes soon anyway: at the confirmation or
            // after the pause.
            State::Subscribing(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Idle
            | State::Held(_)
            | State::Releasing(_) => {}
        }
    }

    fn disconnected(&mut self, now: Nanos, out: &mut Actions) {
        self.subscription = Subscription::None;
        match self.state {
            State::Listening(listening) => self.subscribe(now, listening.key, out),
            // This client does not listen. The reply to its current or next attempt finds no subscription, and
            // subscribes again. A subscription that was under way is reported by `Lost`.
            State::Asking(_)
            | State::Yielding(_)
            | State::Subscribing(_)
            | State::Idle
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking) => match check_deadline(now, asking.sent.after(self.spec.reply_timeout), out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.abandon(asking.attempt, Outcome::Unknown, out),
            },
            State::Subscribing(subscribing) => {
                match check_deadline(now, subscribing.sent.after(self.spec.reply_timeout), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => {
                        // Later commands on that connection would get no reply either.
                        self.subscription = Subscription::None;
                        out.hang_up();
                        self.pause(now, subscribing.key, out);
                    }
                }
            }
            State::Listening(listening) => match check_deadline(now, listening.until, out) {
                Deadline::Ahead => {}
                Deadline::Passed if now >= listening.end => self.settle(Outcome::Refused(Refusal::TimedOut), out),
                Deadline::Passed => self.attempt(now, listening.key, BY_SCRIPT, out),
            },
            State::Yielding(yielding) => match check_deadline(now, yielding.until, out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.attempt(now, yielding.key, AttemptKind::AfterMessage, out),
            },
            State::Pausing(pausing) => match check_deadline(now, pausing.until, out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.attempt(now, pausing.key, AttemptKind::First, out),
            },
            State::Releasing(releasing) => {
                match check_deadline(now, releasing.sent.after(self.spec.reply_timeout), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => self.settle(Outcome::Unknown, out),
                }
            }
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }
}

mod renewable;
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
