//! Child locks taken one after another, as `RedissonMultiLock` of Redisson (3.x) does, and `RedissonRedLock`, which
//! inherits from it and lets a minority fail.
//!
//! ```text
//!          Acquire         the last child taken            renewed        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────────▶ Renewing ─────────▶ Held ─────────────────▶ Releasing ───▶ Idle
//!                     ▲ │ └── too many failed, out of time; Cancel ──│──────────────────────▶ ▲ │
//!                Woke │ │ busy                    └─ too late; Cancel ───────────────────────▶─┘ │ released, and the
//!                     │ ▼                                                                         │ policy allows another
//!                   Pausing         Asking, from the first child ◀────────────────────────────────┘
//! ```
//! Not drawn: each child that is taken or has failed leads to the next one, still `Asking`.
//!
//! The order of commands, and which replies are checked, are Redisson's, with three exceptions: a busy child is asked
//! again by the retry policy, where Redisson waits for a message; a child is not a hash with a count, because nothing
//! nests here; and a server with errors or without replies ends the request once too many children have failed, where
//! Redisson asks again without a pause.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, check_deadline};
use crate::{
    Actions, CallId, Chance, Command, Event, Key, KeyList, Lasts, LockMachine, Mode, Nanos, Outcome, Refusal, Reply,
    RetryKind, Script, ScriptForm, ServerId, Spec, Token,
};

mod collecting;
mod round;
mod rules;

use round::Round;
pub use rules::{Children, RedissonRules};

#[derive(Debug)]
pub(crate) struct Redisson {
    spec: Arc<Spec>,
    rules: RedissonRules,
    chance: Chance,
    calls: Calls,
    /// Counts the passes over the children.
    backoff: Backoff,
    began: Nanos,
    /// When the wait budget ends; `NEVER` when the request does not wait.
    budget_end: Nanos,
    child: Child,
    /// The renewals, or the releases, that are under way.
    round: Round,
    state: State,
}

/// The child that is currently asked.
#[derive(Clone, Copy, Debug, Default)]
struct Child {
    polls: Backoff,
    began: Nanos,
    deadline: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// The `SET` of a child has no reply yet.
    Asking {
        pass: Pass,
        call: CallId,
        sent: Nanos,
    },
    /// The child is busy; waits until the next attempt.
    Pausing {
        pass: Pass,
        until: Nanos,
    },
    /// Some renewals have no reply yet.
    Renewing {
        pass: Pass,
        sent: Nanos,
    },
    Held(Pass),
    /// Some releases have no reply yet.
    Releasing {
        pass: Pass,
        sent: Nanos,
        why: Why,
    },
}

/// One attempt: a pass over the children, with its own token.
#[derive(Clone, Copy, Debug)]
struct Pass {
    keys: KeyList,
    token: Token,
    at: u16,
    failed: u16,
    /// One bit per child.
    taken: u32,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// Too many children were busy, or the wait budget ended.
    Again,
    /// All children were taken, but some were lost meanwhile, or the lease had practically ended.
    TooLate,
    /// Too many children failed; this is the outcome of the last failure.
    End(Outcome),
}

impl Redisson {
    pub(crate) fn new(rules: RedissonRules, spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            round: Round::new(rules.most_children(spec.servers)),
            spec,
            rules,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            began: Nanos::ZERO,
            budget_end: Nanos::ZERO,
            child: Child::default(),
            state: State::Idle,
        }
    }

    fn acquire(&mut self, now: Nanos, keys: KeyList, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                (self.began, self.budget_end) = (now, now);
                self.attempt(now, self.rules.children.keys(keys), out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking { .. } | State::Pausing { .. } | State::Renewing { .. } | State::Releasing { .. } => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(pass) => self.send_release(now, pass, Why::Release, out),
            State::Idle
            | State::Asking { .. }
            | State::Pausing { .. }
            | State::Renewing { .. }
            | State::Releasing { .. } => panic!("Release, but nothing is held"),
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle => self.settle(Outcome::Released, out),
            // No need to wait for the reply: the release arrives behind the SET that it undoes.
            State::Asking { pass, .. } => {
                let taken = pass.taken | 1 << pass.at;
                self.send_release(now, Pass { taken, ..pass }, Why::Cancel, out);
            }
            State::Pausing { pass, .. } | State::Renewing { pass, .. } => {
                self.send_release(now, pass, Why::Cancel, out);
            }
            State::Held(pass) => self.send_release(now, pass, Why::Release, out),
            State::Releasing { pass, sent, why } => match why {
                Why::Again | Why::TooLate | Why::End(_) => {
                    let why = Why::Cancel;
                    self.state = State::Releasing { pass, sent, why };
                }
                // The release was already sent; its one settlement answers both requests.
                Why::Release | Why::Cancel => {}
            },
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Asking { pass, call: asked, .. } if asked == call => self.asked(now, pass, reply, out),
            State::Renewing { pass, .. } | State::Releasing { pass, .. } => match self.round.answered(call, reply) {
                None => {} // A reply to a call that was given up.
                Some(child) if self.round.wants_source(child) => {
                    let command = self.command(pass, child, ScriptForm::Source);
                    let again = self.calls.fresh();
                    out.send(again, self.server_of(pass, child), command);
                    self.round.sent_as_source(child, again);
                }
                Some(_) => self.go_on(now, out),
            },
            // A reply to a call that was given up says nothing about the current one.
            State::Idle | State::Asking { .. } | State::Pausing { .. } | State::Held(_) => {}
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        match self.state {
            State::Asking { pass, call: asked, .. } if asked == call => self.child_timed_out(now, pass, out),
            State::Renewing { .. } | State::Releasing { .. } => {
                if self.round.lost(call) {
                    self.go_on(now, out);
                }
            }
            // The lost call was given up. A held lock does not depend on a connection.
            State::Idle | State::Asking { .. } | State::Pausing { .. } | State::Held(_) => {}
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking { pass, sent, .. } => match check_deadline(now, sent.after(self.spec.reply_timeout), out) {
                Deadline::Ahead => {}
                Deadline::Passed => self.child_timed_out(now, pass, out),
            },
            State::Pausing { pass, until } => match check_deadline(now, until, out) {
                Deadline::Ahead => {}
                Deadline::Passed if now >= self.child.deadline => self.child_failed(now, pass, Why::Again, out),
                Deadline::Passed => self.ask(now, pass, out),
            },
            State::Renewing { sent, .. } | State::Releasing { sent, .. } => {
                match check_deadline(now, sent.after(self.spec.reply_timeout), out) {
                    Deadline::Ahead => {}
                    Deadline::Passed => {
                        self.round.give_up();
                        self.go_on(now, out);
                    }
                }
            }
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn renew(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        self.state = State::Renewing { pass, sent: now };
        self.send_round(now, pass, pass.taken, out);
    }

    fn send_release(&mut self, now: Nanos, pass: Pass, why: Why, out: &mut Actions) {
        self.state = State::Releasing { pass, sent: now, why };
        let children = self.rules.count(pass.keys, self.spec.servers);
        let to = match why {
            Why::Release => u32::MAX >> (32 - u32::from(children)),
            Why::Cancel | Why::Again | Why::TooLate | Why::End(_) => pass.taken,
        };
        self.send_round(now, pass, to, out);
        self.go_on(now, out);
    }

    /// Sends the renewals, or the releases, of these children, in order and without waiting in between.
    fn send_round(&mut self, now: Nanos, pass: Pass, children: u32, out: &mut Actions) {
        self.round.begin();
        for child in (0..32).filter(|child| children & 1 << child != 0) {
            let call = self.calls.fresh();
            out.send(
                call,
                self.server_of(pass, child),
                self.command(pass, child, ScriptForm::Sha),
            );
            self.round.sent(child, call);
        }
        if children != 0 {
            out.wake_at(now.after(self.spec.reply_timeout));
        }
    }

    fn command(&self, pass: Pass, child: u16, form: ScriptForm) -> Command {
        let (key, token) = (self.key_of(pass, child), pass.token);
        match self.state {
            State::Renewing { .. } => Command::Run {
                script: Script::CompareAndExpire,
                form,
                key,
                token,
                numbers: [self.spec.lease.ttl().0, 0],
            },
            State::Idle | State::Asking { .. } | State::Pausing { .. } | State::Held(_) | State::Releasing { .. } => {
                Command::CompareAndDelete { key, token, form }
            }
        }
    }

    /// Goes on after the round received a reply or a loss.
    fn go_on(&mut self, now: Nanos, out: &mut Actions) {
        if self.round.is_under_way() {
            return;
        }
        match self.state {
            State::Renewing { pass, sent } => self.renewed(now, pass, sent, out),
            State::Releasing { pass, why, .. } => self.release_answered(now, pass, why, out),
            State::Idle | State::Asking { .. } | State::Pausing { .. } | State::Held(_) => {
                unreachable!("no round is under way")
            }
        }
    }

    fn renewed(&mut self, now: Nanos, pass: Pass, sent: Nanos, out: &mut Actions) {
        let until = match self.rules.children {
            Children::PerServer => now.after(self.spec.lease.ttl().into()),
            Children::PerKey => match self.round.outcome(pass.taken.count_ones() as u16) {
                Outcome::Released => self.spec.lease.until(sent),
                Outcome::Expired => return self.send_release(now, pass, Why::TooLate, out),
                other => return self.send_release(now, pass, Why::End(other), out),
            },
        };
        if until > now {
            self.state = State::Held(pass);
            let lasts = Lasts::Until(until);
            out.settle(Outcome::Held { lasts, fence: None });
        } else {
            self.send_release(now, pass, Why::TooLate, out);
        }
    }

    fn release_answered(&mut self, now: Nanos, pass: Pass, why: Why, out: &mut Actions) {
        match (why, self.round.is_certain()) {
            (Why::Release, _) => {
                let taken = pass.taken.count_ones() as u16;
                let outcome = self.round.outcome(self.rules.children.needed(taken));
                self.settle(outcome, out);
            }
            (Why::End(outcome), _) => self.settle(outcome, out),
            // If the keys still exist, their leases free them.
            (Why::Cancel | Why::Again | Why::TooLate, false) => self.settle(Outcome::Unknown, out),
            (Why::Cancel, true) => self.settle(Outcome::Released, out),
            (Why::Again, true) => self.start_again(now, pass.keys, Refusal::Busy, Refusal::TimedOut, out),
            (Why::TooLate, true) => self.start_again(now, pass.keys, Refusal::TooLate, Refusal::TooLate, out),
        }
    }

    /// Starts the next pass at once, as Redisson does: the wait for the children was pause enough.
    fn start_again(&mut self, now: Nanos, keys: KeyList, used_up: Refusal, too_long: Refusal, out: &mut Actions) {
        let retry = &self.spec.retry;
        let most = retry.max_attempts.unwrap_or(u32::MAX);
        if retry.kind == RetryKind::None || self.backoff.attempts() >= most {
            self.settle(Outcome::Refused(used_up), out);
        } else if now >= self.began.after(retry.max_wait) {
            self.settle(Outcome::Refused(too_long), out);
        } else {
            self.attempt(now, keys, out);
        }
    }

    fn server_of(&self, pass: Pass, child: u16) -> ServerId {
        self.rules.children.server_of(pass.keys, child, self.spec.servers)
    }

    fn key_of(&self, pass: Pass, child: u16) -> Key {
        self.rules.children.key_of(pass.keys, child)
    }

    fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl LockMachine for Redisson {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, keys, out),
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
