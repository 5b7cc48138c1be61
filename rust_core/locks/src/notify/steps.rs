//! What `notify` does with a reply, and what it sends.

use super::{Asking, GivingBack, How, LOOKING, Listening, Notify, Pausing, State, Subscribing, Subscription, Why};
use crate::backoff::Next;
use crate::calls::{Effect, SERVER};
use crate::claim::{Claim, Grant};
use crate::{Actions, CallId, Command, ErrorKind, Key, Lane, Lasts, Nanos, Outcome, Reply, Script, ScriptForm};

impl Notify {
    pub(super) fn attempt(&mut self, now: Nanos, key: Key, how: How, out: &mut Actions) {
        self.backoff.attempt();
        let token = self.chance.token();
        self.ask(now, Claim { key, token }, how, out);
    }

    fn ask(&mut self, now: Nanos, claim: Claim, how: How, out: &mut Actions) {
        let call = self.calls.fresh();
        let lease_ms = self.spec.lease.ttl().0;
        let Claim { key, token } = claim;
        let command = match how {
            How::Looking(form) => claim.run(Script::NotifyAcquire, form, [lease_ms, 0]),
            How::First | How::Told => Command::SetNxPx { key, token, lease_ms },
        };
        out.send(call, SERVER, command);
        out.wake_at(now.after(self.spec.patience));
        self.state = State::Asking(Asking {
            claim,
            call,
            sent: now,
            how,
            heard: self.subscription == Subscription::Stands { key: claim.key },
            told: false,
        });
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        match (asking.how, reply) {
            (How::Looking(_), Reply::Int(0)) | (How::First | How::Told, Reply::Ok) => self.taken(now, asking, out),
            (How::Looking(_), Reply::Int(left @ 1..)) => self.refused(now, asking, Some(left.cast_unsigned()), out),
            (How::Looking(_), Reply::Int(-1)) | (How::First | How::Told, Reply::Nil) => {
                self.refused(now, asking, None, out);
            }
            (How::Looking(ScriptForm::Sha), Reply::Error(ErrorKind::NoScript)) => {
                self.ask(now, asking.claim, How::Looking(ScriptForm::Source), out);
            }
            (How::First | How::Told | How::Looking(_), Reply::Error(kind)) => match Effect::of(kind) {
                Effect::Nothing => self.settle(Outcome::Failed(kind), out),
                Effect::Unknown => self.abandon(asking.claim, Outcome::Failed(kind), out),
            },
            (
                How::First | How::Told | How::Looking(_),
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
            ) => self.abandon(asking.claim, Outcome::Failed(ErrorKind::Unexpected), out),
        }
    }

    fn taken(&mut self, now: Nanos, asking: Asking, out: &mut Actions) {
        let until = self.spec.lease.until(asking.sent);
        if until > now {
            let claim = asking.claim;
            self.state = State::Held(Grant { claim, until });
            out.settle(Outcome::Held {
                lasts: Lasts::Until(until),
                fence: None,
            });
        } else {
            self.give_back(now, asking.claim, ScriptForm::Sha, Why::TooLate, out);
        }
    }

    /// Another client holds the lock, for `left` ms, or for at most one whole lease.
    fn refused(&mut self, now: Nanos, asking: Asking, left: Option<u64>, out: &mut Actions) {
        match self.backoff.wait_to_be_told(now, &self.spec.retry) {
            Next::TryAt(end) => self.wait(now, asking, left, end, out),
            Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
        }
    }

    /// `end` is the end of the longest wait.
    fn wait(&mut self, now: Nanos, asking: Asking, left: Option<u64>, end: Nanos, out: &mut Actions) {
        let key = asking.claim.key;
        match self.subscription {
            Subscription::Stands { key: known } if known == key => {
                match asking.how {
                    // The lock may have been released since.
                    _ if asking.told => self.attempt(now, key, How::Told, out),
                    How::Told | How::Looking(_) if asking.heard => {
                        let until = now.after(self.rest(left)).min(end);
                        self.state = State::Listening(Listening { key, until, end });
                        out.wake_at(until);
                    }
                    How::First | How::Told | How::Looking(_) => self.attempt(now, key, LOOKING, out),
                }
            }
            // An earlier request started this subscription.
            Subscription::Asked { key: known, call } if known == key => self.expect_subscription(now, key, call, out),
            Subscription::None | Subscription::Asked { .. } | Subscription::Stands { .. } => {
                self.subscribe(now, key, out);
            }
        }
    }

    /// How long to wait for a message: the rest of the holder's lease and a random part of the policy's base. A holder
    /// that took the lock after a message has a whole lease. A key without an expiry is not a lock of ours, and nobody
    /// will publish its release: the machine checks it after one lease, too.
    fn rest(&mut self, left: Option<u64>) -> Nanos {
        let left = left.unwrap_or(self.spec.lease.ttl().0);
        let spread = self.chance.below(self.spec.retry.base.0.saturating_add(1));
        Nanos::from_millis(left).after(Nanos(spread))
    }

    /// How much later than the first receiver of a message the others try.
    pub(super) fn courtesy(&self) -> Nanos {
        Nanos(self.spec.retry.base.0 / 10)
    }

    pub(super) fn subscribe(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.subscription {
            Subscription::Asked { key: old, .. } | Subscription::Stands { key: old } => {
                // A message does not name its lock. The reply to this does not matter.
                let call = self.calls.fresh();
                out.send_over(Lane::Subscribing, call, SERVER, Command::Unsubscribe { key: old });
            }
            Subscription::None => {}
        }
        let call = self.calls.fresh();
        out.send_over(Lane::Subscribing, call, SERVER, Command::Subscribe { key });
        self.subscription = Subscription::Asked { key, call };
        self.expect_subscription(now, key, call, out);
    }

    fn expect_subscription(&mut self, now: Nanos, key: Key, call: CallId, out: &mut Actions) {
        out.wake_at(now.after(self.spec.patience));
        self.state = State::Subscribing(Subscribing { key, call, sent: now });
    }

    pub(super) fn subscribed(&mut self, now: Nanos, key: Key, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Ok => match self.backoff.wait_to_be_told(now, &self.spec.retry) {
                Next::TryAt(_) => self.attempt(now, key, LOOKING, out),
                Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
            },
            Reply::Error(kind) => self.settle(Outcome::Failed(kind), out),
            Reply::Nil | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    /// Waits without a subscription, as long as the policy says.
    pub(super) fn pause(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
        self.go_on(key, next, out);
    }

    pub(super) fn give_back(&mut self, now: Nanos, claim: Claim, form: ScriptForm, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, claim.run(Script::NotifyRelease, form, [0, 0]));
        out.wake_at(now.after(self.spec.patience));
        self.state = State::GivingBack(GivingBack {
            claim,
            call,
            sent: now,
            form,
            why,
        });
    }

    pub(super) fn given_back(&mut self, now: Nanos, back: GivingBack, reply: Reply, out: &mut Actions) {
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
            // If the key still exists, its lease frees it.
            (Reply::Error(kind), Why::Release | Why::Cancel | Why::TooLate) => {
                self.settle(Outcome::Failed(kind), out);
            }
            (
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
                Why::Release | Why::Cancel | Why::TooLate,
            ) => self.settle(Outcome::Failed(ErrorKind::Unexpected), out),
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

    /// Settles now, and sends a release in case the attempt was, or will be, carried out. If the connection still
    /// stands, the release follows the attempt on it.
    pub(super) fn abandon(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        let last_word = claim.run(Script::NotifyRelease, ScriptForm::Source, [0, 0]);
        out.send(self.calls.fresh(), SERVER, last_word);
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}
