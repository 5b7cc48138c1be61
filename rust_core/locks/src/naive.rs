//! `naive`: takes with `SETNX key 1` and `EXPIRE key s`, releases with `DEL key`. What many programs do, reproduced
//! exactly.
//!
//! ```text
//!          Acquire           1           1, 0 in time        Release, Cancel
//!    Idle ─────────▶ Asking ───▶ Leasing ─────────────▶ Held ─────────────────▶ Releasing ───▶ Idle
//!                    │ ▲ │        │ └── Cancel ──────────────────────────────────▶ ▲
//!                  0 │ │ └────────│── Cancel ──▶ Withdrawing ── 1 ─────────────────┘
//!                    ▼ │ Woke     │ 1, 0 too late, and the policy allows another
//!                   Pausing ◀─────┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! Promises exclusion only while nobody crashes, no reply is lost and no work outlives the lease: a key whose `EXPIRE`
//! was never sent stays for ever, and `DEL` does not check who owns the lock. These flaws are kept on purpose, but only
//! for holders: a grant that no client held is not deleted once its lease may have ended, because no client would see
//! the effect.

use std::sync::Arc;

use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Deadline, PendingKeyCall, SERVER, TakeEffect, check_deadline};
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Key, Lasts, LockMachine, Mode, Nanos, Outcome, Reply, Spec,
};

#[derive(Debug)]
pub(crate) struct Naive {
    spec: Arc<Spec>,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The `SETNX` has no reply yet.
    Asking(PendingKeyCall),
    /// As `Asking`, but the request was cancelled.
    Withdrawing(PendingKeyCall),
    /// The `EXPIRE` has no reply yet; other clients already see the key as taken.
    Leasing(PendingKeyCall),
    Pausing(Pausing),
    Held(Key),
    /// The `DEL` has no reply yet.
    Releasing(PendingKeyCall, Why),
}

#[derive(Clone, Copy, Debug)]
struct Pausing {
    key: Key,
    until: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
}

impl Naive {
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
            State::Asking(_) | State::Withdrawing(_) | State::Leasing(_) | State::Pausing(_) | State::Releasing(..) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(key) => self.send_release(now, key, Why::Release, out),
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Leasing(_)
            | State::Pausing(_)
            | State::Releasing(..) => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing(_) => self.settle(Outcome::Released, out),
            // The reply says whether there is anything to release. The wake-up that was asked for at the send still
            // bounds the wait for it.
            State::Asking(asking) => self.state = State::Withdrawing(asking),
            // The lock is certainly taken, and on one connection the DEL arrives behind the EXPIRE: no need to wait.
            State::Leasing(leasing) if now < self.until(leasing) => {
                self.send_release(now, leasing.key, Why::Cancel, out);
            }
            State::Leasing(_) => self.settle(Outcome::Unknown, out),
            State::Held(key) => self.send_release(now, key, Why::Release, out),
            // The release was already sent; its one settlement answers both requests.
            State::Releasing(..) | State::Withdrawing(_) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Asking(asking) if asking.call == call => self.asked(now, asking, reply, out),
            State::Withdrawing(asking) if asking.call == call => self.withdrawn(now, asking, reply, out),
            State::Leasing(leasing) if leasing.call == call => self.leased(now, leasing, reply, out),
            State::Releasing(releasing, why) if releasing.call == call => self.release_answered(why, reply, out),
            // A reply to a call that was given up says nothing about the current one.
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Leasing(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(..) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        match self.state {
            State::Asking(waiting) | State::Withdrawing(waiting) | State::Releasing(waiting, _)
                if waiting.call == call =>
            {
                self.settle(Outcome::Unknown, out);
            }
            State::Leasing(leasing) if leasing.call == call => self.abandon(now, leasing, Outcome::Unknown, out),
            // The lost call was given up. A held lock does not depend on a connection.
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Leasing(_)
            | State::Pausing(_)
            | State::Held(_)
            | State::Releasing(..) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            // The key names no owner, so the machine cannot release only what is its own: a SETNX whose reply was lost
            // leaves its key for ever.
            State::Asking(waiting) | State::Withdrawing(waiting) | State::Releasing(waiting, _) => {
                match check_deadline(now, waiting.sent.after(self.spec.reply_timeout), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => self.settle(Outcome::Unknown, out),
                }
            }
            State::Leasing(leasing) => match check_deadline(now, leasing.sent.after(self.spec.reply_timeout), out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.abandon(now, leasing, Outcome::Unknown, out),
            },
            State::Pausing(pausing) if now >= pausing.until => self.attempt(now, pausing.key, out),
            State::Pausing(pausing) => out.wake_at(pausing.until),
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn attempt(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        self.backoff.attempt();
        self.state = State::Asking(self.send(now, key, Command::SetNx { key }, out));
    }

    fn asked(&mut self, now: Nanos, asking: PendingKeyCall, reply: Reply, out: &mut Actions) {
        let key = asking.key;
        match reply {
            Reply::Int(1) => {
                let seconds = self.spec.lease.in_whole_seconds().ttl().0 / 1_000;
                self.state = State::Leasing(self.send(now, key, Command::Expire { key, seconds }, out));
            }
            Reply::Int(0) => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(key, next, out);
            }
            Reply::Error(kind) => self.settle(Outcome::Failed(kind), out),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn withdrawn(&mut self, now: Nanos, asking: PendingKeyCall, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Int(1) => self.send_release(now, asking.key, Why::Cancel, out),
            Reply::Int(0) => self.settle(Outcome::Released, out),
            Reply::Error(kind) => match TakeEffect::of(kind) {
                TakeEffect::Nothing => self.settle(Outcome::Released, out),
                TakeEffect::Unknown => self.settle(Outcome::Unknown, out),
            },
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.settle(Outcome::Unknown, out);
            }
        }
    }

    fn leased(&mut self, now: Nanos, leasing: PendingKeyCall, reply: Reply, out: &mut Actions) {
        match reply {
            // 0 means that the key is gone: another client's unchecked DEL removed it. Naive code ignores this reply,
            // and so does this machine: it believes in the lock, and the checker sees the consequences.
            Reply::Int(0 | 1) => {
                let until = self.until(leasing);
                if until > now {
                    self.state = State::Held(leasing.key);
                    out.settle(Outcome::Held {
                        lasts: Lasts::Until(until),
                        fence: None,
                    });
                } else {
                    let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                    self.go_on(leasing.key, next, out);
                }
            }
            Reply::Error(kind) => self.abandon(now, leasing, Outcome::Failed(kind), out),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.abandon(now, leasing, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    /// The end of belief in the lease that is being set.
    fn until(&self, leasing: PendingKeyCall) -> Nanos {
        self.spec.lease.in_whole_seconds().until(leasing.sent)
    }

    fn send_release(&mut self, now: Nanos, key: Key, why: Why, out: &mut Actions) {
        self.state = State::Releasing(self.send(now, key, Command::Del { key }, out), why);
    }

    fn release_answered(&mut self, why: Why, reply: Reply, out: &mut Actions) {
        let outcome = match reply {
            Reply::Int(1) => Outcome::Released,
            Reply::Int(0) => match why {
                Why::Release => Outcome::Expired,
                Why::Cancel => Outcome::Released,
            },
            Reply::Error(kind) => Outcome::Failed(kind),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => Outcome::Failed(ErrorKind::Unexpected),
        };
        self.settle(outcome, out);
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

    fn send(&mut self, now: Nanos, key: Key, command: Command, out: &mut Actions) -> PendingKeyCall {
        let call = self.calls.fresh();
        out.send(call, SERVER, command);
        out.wake_at(now.after(self.spec.reply_timeout));
        PendingKeyCall { key, call, sent: now }
    }

    /// Settles now, and sends a `DEL` whose reply nobody awaits: the `SETNX` was granted, so this client owns the key
    /// until the lease that the `EXPIRE` may have set ends.
    fn abandon(&mut self, now: Nanos, leasing: PendingKeyCall, outcome: Outcome, out: &mut Actions) {
        if now < self.until(leasing) {
            out.send(self.calls.fresh(), SERVER, Command::Del { key: leasing.key });
        }
        self.settle(outcome, out);
    }

    fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl LockMachine for Naive {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it excludes everybody"),
            Event::Enter => panic!("Enter, but it does not nest"),
            // This lock has no connection of its own.
            Event::Published { .. } | Event::Disconnected => {}
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
}
