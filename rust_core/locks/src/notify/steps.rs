//! What `notify` does with a reply, and what it sends.

use super::{
    Asking, AttemptKind, BY_SCRIPT, Listening, Notify, Pausing, Releasing, State, Subscribing, Subscription, Why,
};
use crate::backoff::Next;
use crate::calls::{SERVER, TakeEffect};
use crate::grant::{Attempt, Grant};
use crate::{
    Actions, CallId, Command, ConnectionKind, ErrorKind, Key, Lasts, Nanos, Outcome, Reply, Script, ScriptForm,
};

impl Notify {
    pub(super) fn attempt(&mut self, now: Nanos, key: Key, kind: AttemptKind, out: &mut Actions) {
        self.backoff.attempt();
        let token = self.chance.token();
        self.ask(now, Attempt { key, token }, kind, out);
    }

    fn ask(&mut self, now: Nanos, attempt: Attempt, kind: AttemptKind, out: &mut Actions) {
        let call = self.calls.fresh();
        let lease_ms = self.spec.lease.ttl().0;
        let Attempt { key, token } = attempt;
        let command = match kind {
            AttemptKind::ByScript(form) => attempt.run(Script::NotifyAcquire, form, [lease_ms, 0]),
            AttemptKind::First | AttemptKind::AfterMessage => Command::SetNxPx { key, token, lease_ms },
        };
        out.send(call, SERVER, command);
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Asking(Asking {
            attempt,
            call,
            sent: now,
            kind,
            subscribed_before: self.subscription == Subscription::Stands { key: attempt.key },
            message_came: false,
        });
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        match (asking.kind, reply) {
            (AttemptKind::ByScript(_), Reply::Int(0)) | (AttemptKind::First | AttemptKind::AfterMessage, Reply::Ok) => {
                self.taken(now, asking, out);
            }
            (AttemptKind::ByScript(_), Reply::Int(left @ 1..)) => {
                self.refused(now, asking, Some(left.cast_unsigned()), out);
            }
            (AttemptKind::ByScript(_), Reply::Int(-1))
            | (AttemptKind::First | AttemptKind::AfterMessage, Reply::Nil) => {
                self.refused(now, asking, None, out);
            }
            (AttemptKind::ByScript(ScriptForm::Sha), Reply::Error(ErrorKind::NoScript)) => {
                self.ask(now, asking.attempt, AttemptKind::ByScript(ScriptForm::Source), out);
            }
            (AttemptKind::First | AttemptKind::AfterMessage | AttemptKind::ByScript(_), Reply::Error(kind)) => {
                match TakeEffect::of(kind) {
                    TakeEffect::Nothing => self.settle(Outcome::Failed(kind), out),
                    TakeEffect::Unknown => self.abandon(asking.attempt, Outcome::Failed(kind), out),
                }
            }
            (
                AttemptKind::First | AttemptKind::AfterMessage | AttemptKind::ByScript(_),
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
            ) => self.abandon(asking.attempt, Outcome::Failed(ErrorKind::Unexpected), out),
        }
    }

    fn taken(&mut self, now: Nanos, asking: Asking, out: &mut Actions) {
        let until = self.spec.lease.until(asking.sent);
        if until > now {
            let attempt = asking.attempt;
            self.state = State::Held(Grant { attempt, until });
            out.settle(Outcome::Held {
                lasts: Lasts::Until(until),
                fence: None,
            });
        } else {
            self.send_release(now, asking.attempt, ScriptForm::Sha, Why::TooLate, out);
        }
    }

    /// Another client holds the lock, for `left` ms, or for at most one whole lease.
    fn refused(&mut self, now: Nanos, asking: Asking, left: Option<u64>, out: &mut Actions) {
        match self.backoff.wait_for_message(now, &self.spec.retry) {
            Next::TryAt(end) => self.wait_for_release(now, asking, left, end, out),
            Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
        }
    }

    /// `end` is the end of the longest wait.
    fn wait_for_release(&mut self, now: Nanos, asking: Asking, left: Option<u64>, end: Nanos, out: &mut Actions) {
        let key = asking.attempt.key;
        match self.subscription {
            Subscription::Stands { key: known } if known == key => {
                match asking.kind {
                    // The lock may have been released since.
                    _ if asking.message_came => self.attempt(now, key, AttemptKind::AfterMessage, out),
                    AttemptKind::AfterMessage | AttemptKind::ByScript(_) if asking.subscribed_before => {
                        let until = now.after(self.listen_time(left)).min(end);
                        self.state = State::Listening(Listening { key, until, end });
                        out.wake_at(until);
                    }
                    AttemptKind::First | AttemptKind::AfterMessage | AttemptKind::ByScript(_) => {
                        self.attempt(now, key, BY_SCRIPT, out);
                    }
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
    fn listen_time(&mut self, left: Option<u64>) -> Nanos {
        let left = left.unwrap_or(self.spec.lease.ttl().0);
        let spread = self.chance.below(self.spec.retry.base.0.saturating_add(1));
        Nanos::from_millis(left).after(Nanos(spread))
    }

    /// How much later than the first receiver of a message the others try.
    pub(super) fn yield_delay(&self) -> Nanos {
        Nanos(self.spec.retry.base.0 / 10)
    }

    pub(super) fn subscribe(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        match self.subscription {
            Subscription::Asked { key: old, .. } | Subscription::Stands { key: old } => {
                // A message does not name its lock. The reply to this does not matter.
                let call = self.calls.fresh();
                out.send_over(
                    ConnectionKind::Subscribing,
                    call,
                    SERVER,
                    Command::Unsubscribe { key: old },
                );
            }
            Subscription::None => {}
        }
        let call = self.calls.fresh();
        out.send_over(ConnectionKind::Subscribing, call, SERVER, Command::Subscribe { key });
        self.subscription = Subscription::Asked { key, call };
        self.expect_subscription(now, key, call, out);
    }

    fn expect_subscription(&mut self, now: Nanos, key: Key, call: CallId, out: &mut Actions) {
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Subscribing(Subscribing { key, call, sent: now });
    }

    pub(super) fn subscribed(&mut self, now: Nanos, key: Key, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Ok => match self.backoff.wait_for_message(now, &self.spec.retry) {
                Next::TryAt(_) => self.attempt(now, key, BY_SCRIPT, out),
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

    pub(super) fn send_release(&mut self, now: Nanos, attempt: Attempt, form: ScriptForm, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, attempt.run(Script::NotifyRelease, form, [0, 0]));
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Releasing(Releasing {
            attempt,
            call,
            sent: now,
            form,
            why,
        });
    }

    pub(super) fn release_answered(&mut self, now: Nanos, releasing: Releasing, reply: Reply, out: &mut Actions) {
        match (reply, releasing.why) {
            (Reply::Int(0), Why::Release) => self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => self.settle(Outcome::Released, out),
            (Reply::Int(0 | 1), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                self.go_on(releasing.attempt.key, next, out);
            }
            (Reply::Error(ErrorKind::NoScript), why @ (Why::Release | Why::Cancel | Why::TooLate))
                if releasing.form == ScriptForm::Sha =>
            {
                self.send_release(now, releasing.attempt, ScriptForm::Source, why, out);
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
    pub(super) fn abandon(&mut self, attempt: Attempt, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        let release = attempt.run(Script::NotifyRelease, ScriptForm::Source, [0, 0]);
        out.send(self.calls.fresh(), SERVER, release);
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}
