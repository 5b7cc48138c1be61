//! What all locks with a lease on one server share: taking, retrying, releasing. The `LeaseProtocol` of a lock says
//! what it sends and what the replies mean.
//!
//! ```text
//!          Acquire           granted in time       Release, Cancel
//!    Idle ─────────▶ Asking ────────────────▶ Held ───────────────▶ GivingBack ──▶ Idle
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

use crate::backoff::{Backoff, Next};
use crate::calls::{Calls, Effect, Wait, wait};
use crate::claim;
use crate::kept::Renewable;
use crate::recipe::{Answer, Claim, Recipe, Was};
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Fence, Key, Lasts, LockMachine, Mode, Nanos, Outcome, Reply,
    ScriptForm, Spec,
};

#[derive(Debug)]
pub(crate) struct Leased<R> {
    pub(crate) spec: Arc<Spec>,
    pub(crate) chance: Chance,
    pub(crate) recipe: R,
    calls: Calls,
    backoff: Backoff,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The command that takes, or confirms, has no reply yet.
    Asking(Unanswered, Step),
    /// As `Asking`, but the request was cancelled.
    Withdrawing(Unanswered, Step),
    /// Waits until the next attempt.
    Pausing(Claim, Nanos),
    Held(Grant),
    /// The command that releases has no reply yet.
    GivingBack(Unanswered, ScriptForm, Why),
}

pub(crate) type Grant = claim::Grant<Claim>;

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    claim: Claim,
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

impl<R: Recipe> Leased<R> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, recipe: R) -> Self {
        Self {
            spec,
            chance,
            recipe,
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
                self.attempt(now, Claim { key, mode, token }, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        self.backoff.forget_conflicts();
        match self.state {
            State::Held(grant) => self.give_back(now, grant.claim, Why::Release, out),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle => self.settle(Outcome::Released, out),
            State::Pausing(claim, _) => self.give_up(claim, Outcome::Released, out),
            // The reply says whether there is anything to release. The wake-up that was asked for at the send still
            // bounds the wait for it.
            State::Asking(asking, step) => self.state = State::Withdrawing(asking, step),
            State::Held(_) => self.release(now, out),
            State::GivingBack(back, form, Why::TooLate) => self.state = State::GivingBack(back, form, Why::Cancel),
            // Already released or cancelled; its one settlement answers both requests.
            State::GivingBack(_, _, Why::Release | Why::Cancel) | State::Withdrawing(..) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Asking(asking, step) if asking.call == call => self.asked(now, asking, step, reply, out),
            State::Withdrawing(asking, step) if asking.call == call => {
                self.withdrawn(now, asking.claim, step, reply, out);
            }
            State::GivingBack(back, form, why) if back.call == call => {
                self.given_back(now, back, form, why, reply, out);
            }
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been released.
            State::Idle
            | State::Asking(..)
            | State::Withdrawing(..)
            | State::Pausing(..)
            | State::Held(_)
            | State::GivingBack(..) => {}
        }
    }

    fn lost(&mut self, call: CallId, out: &mut Actions) {
        match self.state {
            State::Asking(asking, _) | State::Withdrawing(asking, _) if asking.call == call => {
                self.abandon(asking.claim, Outcome::Unknown, out);
            }
            State::GivingBack(back, ..) if back.call == call => self.settle(Outcome::Unknown, out),
            // The lost call was given up, and its lease frees what it may have taken. A held lock does not depend on a
            // connection.
            State::Idle
            | State::Asking(..)
            | State::Withdrawing(..)
            | State::Pausing(..)
            | State::Held(_)
            | State::GivingBack(..) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking, step) | State::Withdrawing(asking, step) => {
                match wait(now, self.deadline(asking, step), out) {
                    Wait::GoesOn => {}
                    Wait::Over => self.abandon(asking.claim, Outcome::Unknown, out),
                }
            }
            State::GivingBack(back, ..) => match wait(now, back.sent.after(self.spec.patience), out) {
                Wait::GoesOn => {}
                Wait::Over => self.settle(Outcome::Unknown, out),
            },
            State::Pausing(claim, until) if now >= until => {
                let token = if R::ONE_TOKEN { claim.token } else { self.chance.token() };
                self.attempt(now, Claim { token, ..claim }, out);
            }
            State::Pausing(_, until) => out.wake_at(until),
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn attempt(&mut self, now: Nanos, claim: Claim, out: &mut Actions) {
        self.backoff.attempt();
        let command = self.recipe.take(claim, self.spec.lease.ttl().0);
        self.ask(claim, command, now, Step::Take(ScriptForm::Sha), out);
    }

    fn ask(&mut self, claim: Claim, command: Command, sent: Nanos, step: Step, out: &mut Actions) {
        let call = self.send(command, out);
        let asking = Unanswered { claim, call, sent };
        out.wake_at(self.deadline(asking, step));
        self.state = State::Asking(asking, step);
    }

    /// The confirmation gets a reply timeout of its own, after that of the first reply.
    fn deadline(&self, asking: Unanswered, step: Step) -> Nanos {
        let answered = asking.sent.after(self.spec.patience);
        match step {
            Step::Take(_) => answered,
            Step::Confirm => answered.after(self.spec.patience),
        }
    }

    fn asked(&mut self, now: Nanos, asking: Unanswered, step: Step, reply: Reply, out: &mut Actions) {
        let Unanswered { claim, sent, .. } = asking;
        let answer = match (step, reply) {
            (Step::Take(form), Reply::Error(kind)) => return self.asked_in_vain(now, claim, form, kind, out),
            (Step::Confirm, Reply::Error(kind)) => return self.abandon(claim, Outcome::Failed(kind), out),
            (Step::Take(_), reply) => self.recipe.taken(reply),
            (Step::Confirm, reply) => self.recipe.confirmed(reply),
        };
        match (answer, step) {
            (Answer::Granted(fence), Step::Take(_)) => match self.recipe.confirm() {
                Some(confirm) => self.ask(claim, confirm, sent, Step::Confirm, out),
                None => self.granted(now, claim, sent, fence, out),
            },
            (Answer::Granted(fence), Step::Confirm) => self.granted(now, claim, sent, fence, out),
            (Answer::Busy, Step::Take(_)) => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(claim, next, out);
            }
            (Answer::Busy, Step::Confirm) => self.give_back(now, claim, Why::TooLate, out),
            (Answer::Odd, Step::Take(_) | Step::Confirm) => {
                self.abandon(claim, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn asked_in_vain(&mut self, now: Nanos, claim: Claim, form: ScriptForm, kind: ErrorKind, out: &mut Actions) {
        let unknown_script = kind == ErrorKind::NoScript && form == ScriptForm::Sha;
        let source = self.recipe.take(claim, self.spec.lease.ttl().0).as_source();
        match (source.filter(|_| unknown_script), Effect::of(kind)) {
            (Some(source), _) => self.ask(claim, source, now, Step::Take(ScriptForm::Source), out),
            (None, Effect::Nothing) if self.recipe.refuses_by(kind) => {
                if kind.is_conflict() {
                    self.backoff.conflict();
                }
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(claim, next, out);
            }
            (None, Effect::Nothing) => self.give_up(claim, Outcome::Failed(kind), out),
            (None, Effect::Unknown) => self.abandon(claim, Outcome::Failed(kind), out),
        }
    }

    fn granted(&mut self, now: Nanos, claim: Claim, sent: Nanos, fence: Option<Fence>, out: &mut Actions) {
        let until = self.spec.lease.until(sent);
        if until > now {
            self.state = State::Held(Grant { claim, until });
            let lasts = Lasts::Until(until);
            out.settle(Outcome::Held { lasts, fence });
        } else {
            self.give_back(now, claim, Why::TooLate, out);
        }
    }

    fn withdrawn(&mut self, now: Nanos, claim: Claim, step: Step, reply: Reply, out: &mut Actions) {
        let effect = match (step, reply) {
            // The lock was taken, whether confirmed or not.
            (Step::Confirm, _) => Effect::Unknown,
            (Step::Take(_), Reply::Error(kind)) => Effect::of(kind),
            (Step::Take(_), reply) => match self.recipe.taken(reply) {
                Answer::Busy => Effect::Nothing,
                Answer::Granted(_) | Answer::Odd => Effect::Unknown,
            },
        };
        match effect {
            Effect::Nothing => self.give_up(claim, Outcome::Released, out),
            Effect::Unknown => self.give_back(now, claim, Why::Cancel, out),
        }
    }

    fn give_back(&mut self, now: Nanos, claim: Claim, why: Why, out: &mut Actions) {
        let command = self.recipe.give_back(claim);
        self.send_back(now, claim, command, ScriptForm::Sha, why, out);
    }

    fn send_back(&mut self, now: Nanos, claim: Claim, command: Command, form: ScriptForm, why: Why, out: &mut Actions) {
        let (call, sent) = (self.send(command, out), now);
        out.wake_at(now.after(self.spec.patience));
        self.state = State::GivingBack(Unanswered { claim, call, sent }, form, why);
    }

    fn given_back(
        &mut self,
        now: Nanos,
        back: Unanswered,
        form: ScriptForm,
        why: Why,
        reply: Reply,
        out: &mut Actions,
    ) {
        let claim = back.claim;
        if let Reply::Error(kind) = reply {
            return match (kind, form, self.recipe.give_back(claim).as_source()) {
                (ErrorKind::NoScript, ScriptForm::Sha, Some(source)) => {
                    self.send_back(now, claim, source, ScriptForm::Source, why, out);
                }
                (kind, ..) if self.recipe.is_given_back_again(kind) => {
                    self.backoff.conflict();
                    // The deadline of the first reply bounds all repetitions.
                    let call = self.send(self.recipe.give_back(claim), out);
                    self.state = State::GivingBack(Unanswered { call, ..back }, form, why);
                }
                // If the lock still exists, its lease frees it.
                (kind, ScriptForm::Sha | ScriptForm::Source, _) => self.settle(Outcome::Failed(kind), out),
            };
        }
        match (self.recipe.given_back(reply), why) {
            (Some(Was::NotOurs), Why::Release) => self.settle(Outcome::Expired, out),
            (Some(Was::Ours), Why::Release) | (Some(_), Why::Cancel) => self.settle(Outcome::Released, out),
            (Some(_), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                self.go_on(claim, next, out);
            }
            (None, Why::Release | Why::Cancel | Why::TooLate) => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn go_on(&mut self, claim: Claim, next: Next, out: &mut Actions) {
        match next {
            Next::TryAt(until) => {
                self.state = State::Pausing(claim, until);
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => self.give_up(claim, Outcome::Refused(refusal), out),
        }
    }

    /// Settles when nothing is taken, and cleans up after the attempts.
    fn give_up(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        if let Some(command) = self.recipe.forget(claim) {
            self.last_word(command, out);
        }
        self.settle(outcome, out);
    }

    /// Settles now, and releases in case the command that takes was, or will be, carried out.
    pub(crate) fn abandon(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        self.last_word(self.recipe.give_back(claim), out);
        self.settle(outcome, out);
    }

    /// Sends a command whose reply nobody awaits. If the connection still stands, it follows the earlier commands on
    /// it. Sent as source, because nobody could resend it after a NOSCRIPT.
    fn last_word(&mut self, command: Command, out: &mut Actions) {
        self.send(command.as_source().unwrap_or(command), out);
    }

    pub(crate) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

/// What machines that wrap a `Leased` need from it.
mod around;

impl<R: Recipe> LockMachine for Leased<R> {
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
