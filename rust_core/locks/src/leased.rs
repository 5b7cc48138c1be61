//! What all locks with a lease on one server share: taking, retrying, releasing. The `LeaseProtocol` of a lock says
//! what it sends and what the replies mean.
//!
//! ```text
//!          Acquire           granted in time       Release, Cancel
//!    Idle ─────────▶ Asking ────────────────▶ Held ───────────────▶ Releasing ───▶ Idle
//!                    │ ▲ │ └── granted too late ───────────────────▶ ▲ │
//!               busy │ │ └── Cancel ──▶ Withdrawing ── granted ──────┘ │ was too late, and the
//!                    ▼ │ Woke                                          │ policy allows another
//!                   Pausing ◀──────────────────────────────────────────┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`), and what keeps its state (a script that the
//! server does not know is sent again as source; a lock that needs a confirmation sends a second command).
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; releases no lock but its own; each
//! request settles within the reply timeout of its last call. Does not promise safety when the server loses its data.

use std::sync::Arc;

use crate::auto_renewal::Renewable;
use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Deadline, TakeEffect, check_deadline};
use crate::grant;
use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, ReleaseReply, TakeReply};
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Fence, Key, Lasts, LockMachine, Mode, Nanos, Outcome, Reply,
    ScriptForm, Spec,
};

#[derive(Debug)]
pub(crate) struct Leased<R> {
    pub(crate) spec: Arc<Spec>,
    pub(crate) chance: Chance,
    pub(crate) protocol: R,
    calls: Calls,
    backoff: Backoff,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The command that takes, or confirms, has no reply yet.
    Asking(PendingAttempt, Step),
    /// As `Asking`, but the request was cancelled.
    Withdrawing(PendingAttempt, Step),
    /// Waits until the next attempt.
    Pausing(LeaseAttempt, Nanos),
    Held(Grant),
    /// The command that releases has no reply yet.
    Releasing(PendingAttempt, ScriptForm, Why),
}

pub(crate) type Grant = grant::Grant<LeaseAttempt>;

#[derive(Clone, Copy, Debug)]
struct PendingAttempt {
    attempt: LeaseAttempt,
    call: CallId,
    /// When the command that takes was sent, also for a confirmation: the lease counts from there.
    sent: Nanos,
}

/// The step that an attempt has reached.
#[derive(Clone, Copy, Debug)]
enum Step {
    Take(ScriptForm),
    Confirm,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// The grant came when its lease had practically ended, or was not confirmed.
    TooLate,
}

impl<R: LeaseProtocol> Leased<R> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, protocol: R) -> Self {
        Self {
            spec,
            chance,
            protocol,
            calls: Calls::default(),
            backoff: Backoff::default(),
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, key: Key, mode: Mode, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                let token = self.chance.token();
                self.attempt(now, LeaseAttempt { key, mode, token }, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::Releasing(..) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        self.backoff.forget_conflicts();
        match self.state {
            State::Held(grant) => self.send_release(now, grant.attempt, Why::Release, out),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::Releasing(..) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle => self.settle(Outcome::Released, out),
            State::Pausing(attempt, _) => self.give_up(attempt, Outcome::Released, out),
            // The reply says whether there is anything to release. The wake-up that was asked for at the send still
            // bounds the wait for it.
            State::Asking(asking, step) => self.state = State::Withdrawing(asking, step),
            State::Held(_) => self.release(now, out),
            State::Releasing(releasing, form, Why::TooLate) => {
                self.state = State::Releasing(releasing, form, Why::Cancel);
            }
            // Already released or cancelled; its one settlement answers both requests.
            State::Releasing(_, _, Why::Release | Why::Cancel) | State::Withdrawing(..) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Asking(asking, step) if asking.call == call => self.asked(now, asking, step, reply, out),
            State::Withdrawing(asking, step) if asking.call == call => {
                self.withdrawn(now, asking.attempt, step, reply, out);
            }
            State::Releasing(releasing, form, why) if releasing.call == call => {
                self.release_answered(now, releasing, form, why, reply, out);
            }
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been released.
            State::Idle
            | State::Asking(..)
            | State::Withdrawing(..)
            | State::Pausing(..)
            | State::Held(_)
            | State::Releasing(..) => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        match self.state {
            State::Asking(asking, _) | State::Withdrawing(asking, _) if asking.call == call => {
                self.abandon(asking.attempt, Outcome::Unknown, out);
            }
            State::Releasing(releasing, ..) if releasing.call == call => self.settle(Outcome::Unknown, out),
            // The lost call was given up, and its lease frees what it may have taken. A held lock does not depend on a
            // connection.
            State::Idle
            | State::Asking(..)
            | State::Withdrawing(..)
            | State::Pausing(..)
            | State::Held(_)
            | State::Releasing(..) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking, step) | State::Withdrawing(asking, step) => {
                match check_deadline(now, self.deadline(asking, step), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => self.abandon(asking.attempt, Outcome::Unknown, out),
                }
            }
            State::Releasing(releasing, ..) => {
                match check_deadline(now, releasing.sent.after(self.spec.reply_timeout), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => self.settle(Outcome::Unknown, out),
                }
            }
            State::Pausing(attempt, until) if now >= until => {
                let token = if R::ONE_TOKEN {
                    attempt.token
                } else {
                    self.chance.token()
                };
                self.attempt(now, LeaseAttempt { token, ..attempt }, out);
            }
            State::Pausing(_, until) => out.wake_at(until),
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn attempt(&mut self, now: Nanos, attempt: LeaseAttempt, out: &mut Actions) {
        self.backoff.attempt();
        let command = self.protocol.take(attempt, self.spec.lease.ttl().0);
        self.ask(attempt, command, now, Step::Take(ScriptForm::Sha), out);
    }

    fn ask(&mut self, attempt: LeaseAttempt, command: Command, sent: Nanos, step: Step, out: &mut Actions) {
        let call = self.send(command, out);
        let asking = PendingAttempt { attempt, call, sent };
        out.wake_at(self.deadline(asking, step));
        self.state = State::Asking(asking, step);
    }

    /// The confirmation gets a reply timeout of its own, after that of the first reply.
    fn deadline(&self, asking: PendingAttempt, step: Step) -> Nanos {
        let answered = asking.sent.after(self.spec.reply_timeout);
        match step {
            Step::Take(_) => answered,
            Step::Confirm => answered.after(self.spec.reply_timeout),
        }
    }

    fn asked(&mut self, now: Nanos, asking: PendingAttempt, step: Step, reply: Reply, out: &mut Actions) {
        let PendingAttempt { attempt, sent, .. } = asking;
        let answer = match (step, reply) {
            (Step::Take(form), Reply::Error(kind)) => return self.take_failed(now, attempt, form, kind, out),
            (Step::Confirm, Reply::Error(kind)) => return self.abandon(attempt, Outcome::Failed(kind), out),
            (Step::Take(_), reply) => self.protocol.take_reply(reply),
            (Step::Confirm, reply) => self.protocol.confirm_reply(reply),
        };
        match (answer, step) {
            (TakeReply::Granted(fence), Step::Take(_)) => match self.protocol.confirm() {
                Some(confirm) => self.ask(attempt, confirm, sent, Step::Confirm, out),
                None => self.granted(now, attempt, sent, fence, out),
            },
            (TakeReply::Granted(fence), Step::Confirm) => self.granted(now, attempt, sent, fence, out),
            (TakeReply::Busy, Step::Take(_)) => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(attempt, next, out);
            }
            (TakeReply::Busy, Step::Confirm) => self.send_release(now, attempt, Why::TooLate, out),
            (TakeReply::Unexpected, Step::Take(_) | Step::Confirm) => {
                self.abandon(attempt, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn take_failed(&mut self, now: Nanos, attempt: LeaseAttempt, form: ScriptForm, kind: ErrorKind, out: &mut Actions) {
        let unknown_script = kind == ErrorKind::NoScript && form == ScriptForm::Sha;
        let source = self.protocol.take(attempt, self.spec.lease.ttl().0).as_source();
        match (source.filter(|_| unknown_script), TakeEffect::of(kind)) {
            (Some(source), _) => self.ask(attempt, source, now, Step::Take(ScriptForm::Source), out),
            (None, TakeEffect::Nothing) if self.protocol.is_refusal(kind) => {
                if kind.is_conflict() {
                    self.backoff.conflict();
                }
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(attempt, next, out);
            }
            (None, TakeEffect::Nothing) => self.give_up(attempt, Outcome::Failed(kind), out),
            (None, TakeEffect::Unknown) => self.abandon(attempt, Outcome::Failed(kind), out),
        }
    }

    fn granted(&mut self, now: Nanos, attempt: LeaseAttempt, sent: Nanos, fence: Option<Fence>, out: &mut Actions) {
        let until = self.spec.lease.until(sent);
        if until > now {
            self.state = State::Held(Grant { attempt, until });
            let lasts = Lasts::Until(until);
            out.settle(Outcome::Held { lasts, fence });
        } else {
            self.send_release(now, attempt, Why::TooLate, out);
        }
    }

    fn withdrawn(&mut self, now: Nanos, attempt: LeaseAttempt, step: Step, reply: Reply, out: &mut Actions) {
        let effect = match (step, reply) {
            // The lock was taken, whether confirmed or not.
            (Step::Confirm, _) => TakeEffect::Unknown,
            (Step::Take(_), Reply::Error(kind)) => TakeEffect::of(kind),
            (Step::Take(_), reply) => match self.protocol.take_reply(reply) {
                TakeReply::Busy => TakeEffect::Nothing,
                TakeReply::Granted(_) | TakeReply::Unexpected => TakeEffect::Unknown,
            },
        };
        match effect {
            TakeEffect::Nothing => self.give_up(attempt, Outcome::Released, out),
            TakeEffect::Unknown => self.send_release(now, attempt, Why::Cancel, out),
        }
    }

    fn send_release(&mut self, now: Nanos, attempt: LeaseAttempt, why: Why, out: &mut Actions) {
        let command = self.protocol.release(attempt);
        self.send_release_as(now, attempt, command, ScriptForm::Sha, why, out);
    }

    fn send_release_as(
        &mut self,
        now: Nanos,
        attempt: LeaseAttempt,
        command: Command,
        form: ScriptForm,
        why: Why,
        out: &mut Actions,
    ) {
        let (call, sent) = (self.send(command, out), now);
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Releasing(PendingAttempt { attempt, call, sent }, form, why);
    }

    fn release_answered(
        &mut self,
        now: Nanos,
        releasing: PendingAttempt,
        form: ScriptForm,
        why: Why,
        reply: Reply,
        out: &mut Actions,
    ) {
        let attempt = releasing.attempt;
        if let Reply::Error(kind) = reply {
            return match (kind, form, self.protocol.release(attempt).as_source()) {
                (ErrorKind::NoScript, ScriptForm::Sha, Some(source)) => {
                    self.send_release_as(now, attempt, source, ScriptForm::Source, why, out);
                }
                (kind, ..) if self.protocol.retries_release(kind) => {
                    self.backoff.conflict();
                    // The deadline of the first reply bounds all repetitions.
                    let call = self.send(self.protocol.release(attempt), out);
                    self.state = State::Releasing(PendingAttempt { call, ..releasing }, form, why);
                }
                // If the lock still exists, its lease frees it.
                (kind, ScriptForm::Sha | ScriptForm::Source, _) => self.settle(Outcome::Failed(kind), out),
            };
        }
        match (self.protocol.release_reply(reply), why) {
            (Some(ReleaseReply::WasLost), Why::Release) => self.settle(Outcome::Expired, out),
            (Some(ReleaseReply::WasHeld), Why::Release) | (Some(_), Why::Cancel) => self.settle(Outcome::Released, out),
            (Some(_), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                self.go_on(attempt, next, out);
            }
            (None, Why::Release | Why::Cancel | Why::TooLate) => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn go_on(&mut self, attempt: LeaseAttempt, next: Next, out: &mut Actions) {
        match next {
            Next::TryAt(until) => {
                self.state = State::Pausing(attempt, until);
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => self.give_up(attempt, Outcome::Refused(refusal), out),
        }
    }

    /// Settles when nothing is taken, and cleans up after the attempts.
    fn give_up(&mut self, attempt: LeaseAttempt, outcome: Outcome, out: &mut Actions) {
        if let Some(command) = self.protocol.clean_up(attempt) {
            self.send_unawaited(command, out);
        }
        self.settle(outcome, out);
    }
}

/// What machines that wrap a `Leased` need from it.
mod renewable;

impl<R: LeaseProtocol> LockMachine for Leased<R> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire { mode: Mode::Shared, .. } if !R::SHARES => {
                panic!("a shared Acquire, but it excludes everybody")
            }
            Event::Acquire { keys, mode } => self.acquire(now, keys.only(), mode, out),
            Event::Enter => panic!("Enter, but it does not nest"),
            // This lock subscribes to nothing, and `Lost` reports its calls.
            Event::Published { .. } | Event::Disconnected => {}
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

    fn conflicts(&self) -> u32 {
        self.backoff.conflicts()
    }
}
