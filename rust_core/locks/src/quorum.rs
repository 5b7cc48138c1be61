//! A lock over several servers, held by the client that more than half of them granted: what `redlock` and `multilock`
//! have in common. They differ in what they take on each server, which is their `Resource`.
//!
//! ```text
//!          Acquire            a quorum in time     Release, Cancel
//!    Idle ─────────▶ Asking ──────────────────▶ Held ──────────────▶ Releasing ───▶ Idle
//!                    │   ▲                                              ▲ │
//!                    │   │ Woke                                         │ │ released, and the
//!                    │   └── Pausing ◀──────────────────────────────────│─┘ policy allows another
//!                    └── no quorum any more, or too late; Cancel ───────┘
//! ```
//! Not drawn: errors of so many servers that no further attempt could succeed end in `Idle` at once.
//!
//! The `ServerState` of each server outlives the attempt: a release follows its own `SET` on the same connection, and a
//! release that meets `NOSCRIPT` is sent again as source, whatever the client is doing by then.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{Calls, Deadline, TakeEffect, check_deadline};
use crate::{
    Actions, CallId, Chance, ErrorKind, Event, Lasts, LockMachine, Mode, Nanos, Outcome, Reply, ScriptForm, ServerId,
    Spec, Token,
};

mod releasing;
mod resource;
mod rules;
mod server_states;

pub(crate) use resource::{Resource, Taken};
pub(crate) use rules::MOST_NODES;
pub use rules::{Fanout, QuorumRules};
use server_states::{ServerStates, TakeState};

#[derive(Debug)]
pub(crate) struct Quorum<S> {
    spec: Arc<Spec>,
    rules: QuorumRules,
    chance: Chance,
    calls: Calls,
    backoff: Backoff,
    servers: ServerStates<QuorumAttempt<S>>,
    state: State<S>,
    no_quorum_attempts: u32,
    /// The current attempt is already counted in `no_quorum_attempts`.
    counted: bool,
}

#[derive(Clone, Copy, Debug)]
enum State<S> {
    Idle,
    Asking(Asking<S>),
    Pausing { resource: S, until: Nanos },
    Held(QuorumAttempt<S>),
    Releasing(Releasing<S>),
}

/// What an attempt tries to own on every server: the resource, under one fresh token.
#[derive(Clone, Copy, Debug)]
struct QuorumAttempt<S> {
    resource: S,
    token: Token,
}

#[derive(Clone, Copy, Debug)]
struct Asking<S> {
    attempt: QuorumAttempt<S>,
    /// The time before the first send: the lease counts from here on all servers.
    began: Nanos,
    deadline: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Releasing<S> {
    attempt: QuorumAttempt<S>,
    deadline: Nanos,
    why: Why,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// Too few servers granted.
    NoQuorum,
    /// Enough servers granted, but the lease had practically ended.
    TooLate,
}

impl<S: Resource> Quorum<S> {
    pub(crate) fn new(rules: QuorumRules, spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            servers: ServerStates::new(spec.servers),
            spec,
            rules,
            chance,
            calls: Calls::default(),
            backoff: Backoff::default(),
            state: State::Idle,
            no_quorum_attempts: 0,
            counted: false,
        }
    }

    fn acquire(&mut self, now: Nanos, resource: S, out: &mut Actions) {
        match self.state {
            State::Idle => {
                self.backoff = Backoff::begin(now);
                self.no_quorum_attempts = 0;
                self.attempt(now, resource, out);
            }
            State::Held(_) => panic!("Acquire, but the last grant was not released"),
            State::Asking(_) | State::Pausing { .. } | State::Releasing(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(attempt) => self.send_release(now, attempt, Why::Release, out),
            State::Idle | State::Asking(_) | State::Pausing { .. } | State::Releasing(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Idle | State::Pausing { .. } => self.settle(Outcome::Released, out),
            // No need to wait for replies: each release arrives behind the command that it undoes.
            State::Asking(asking) => self.send_release(now, asking.attempt, Why::Cancel, out),
            State::Held(attempt) => self.send_release(now, attempt, Why::Release, out),
            State::Releasing(releasing) => match releasing.why {
                Why::NoQuorum | Why::TooLate => {
                    let why = Why::Cancel;
                    self.state = State::Releasing(Releasing { why, ..releasing });
                }
                // The release was already sent; its one settlement answers both requests.
                Why::Release | Why::Cancel => {}
            },
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        if let Some(server) = self.servers.asked_by(call) {
            self.asked(server, reply, out);
        } else if let Some(server) = self.servers.released_by(call) {
            self.release_answered(server, call, reply, out);
        } else {
            // A reply to an earlier attempt. It describes an earlier state of the server, and a release of what it may
            // have taken was sent after it.
            return;
        }
        self.go_on(now, out);
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        self.servers.lost(call);
        self.go_on(now, out);
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(Asking { deadline, .. }) => match check_deadline(now, deadline, out) {
                Deadline::Ahead => {}
                Deadline::Passed => {
                    self.servers.give_up_asking();
                    self.go_on(now, out);
                }
            },
            State::Releasing(Releasing { deadline, .. }) => match check_deadline(now, deadline, out) {
                Deadline::Ahead => {}
                Deadline::Passed => {
                    self.servers.give_up_releasing();
                    self.go_on(now, out);
                }
            },
            State::Pausing { resource, until } if now >= until => self.attempt(now, resource, out),
            State::Pausing { until, .. } => out.wake_at(until),
            // The wake-up was for calls that have been answered since.
            State::Idle | State::Held(_) => {}
        }
    }

    fn attempt(&mut self, now: Nanos, resource: S, out: &mut Actions) {
        self.backoff.attempt();
        self.servers.begin();
        self.counted = false;
        let token = self.chance.token();
        let asking = Asking {
            attempt: QuorumAttempt { resource, token },
            began: now,
            deadline: now,
        };
        let first = match self.rules.fanout {
            Fanout::Multiplexed => self.servers.count(),
            Fanout::Sequential => 1,
        };
        self.ask(now, asking, 0..first, out);
    }

    fn ask(&mut self, now: Nanos, asking: Asking<S>, servers: std::ops::Range<u16>, out: &mut Actions) {
        for server in servers {
            self.send_take(asking.attempt, server, ScriptForm::Sha, out);
        }
        let deadline = now.after(self.rules.node_timeout(&self.spec));
        out.wake_at(deadline);
        self.state = State::Asking(Asking { deadline, ..asking });
    }

    fn send_take(&mut self, attempt: QuorumAttempt<S>, server: u16, form: ScriptForm, out: &mut Actions) {
        let call = self.calls.fresh();
        let command = attempt.resource.take(attempt.token, self.spec.lease.ttl().0, form);
        out.send(call, ServerId(server), command);
        let may_be_unknown = command.as_source().is_some();
        self.servers.of(server).take = TakeState::Waiting { call, may_be_unknown };
    }

    fn asked(&mut self, server: u16, reply: Reply, out: &mut Actions) {
        let state = self.servers.of(server);
        state.take = match (S::take_reply(reply), reply) {
            (Some(Taken::Mine), _) => TakeState::Granted,
            (Some(Taken::Theirs), _) => TakeState::Refused,
            (None, Reply::Error(ErrorKind::NoScript)) if state.take.may_be_unknown() => {
                match self.state {
                    State::Asking(asking) => return self.send_take(asking.attempt, server, ScriptForm::Source, out),
                    // The attempt ended without this server, which has taken nothing.
                    State::Idle | State::Pausing { .. } | State::Held(_) | State::Releasing(_) => {
                        TakeState::Failed(ErrorKind::NoScript)
                    }
                }
            }
            (None, Reply::Error(kind)) => match TakeEffect::of(kind) {
                TakeEffect::Nothing => TakeState::Failed(kind),
                TakeEffect::Unknown => TakeState::Unclear(kind),
            },
            (None, _) => TakeState::Unclear(ErrorKind::Unexpected),
        };
    }

    /// Goes on after the state of a server has changed.
    fn go_on(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Asking(asking) => self.judge(now, asking, out),
            State::Releasing(releasing) => {
                if matches!(releasing.why, Why::NoQuorum) {
                    self.count_no_quorum();
                }
                self.conclude(now, releasing, out);
            }
            // A grant that came after the attempt was given up.
            State::Pausing { .. } => self.count_no_quorum(),
            // A held lock already has its quorum, so a late grant changes nothing for the client; the `ServerState`
            // records it for the release. In `Idle` the release has already been sent.
            State::Idle | State::Held(_) => {}
        }
    }

    fn judge(&mut self, now: Nanos, asking: Asking<S>, out: &mut Actions) {
        let granted = self.servers.granted();
        let (waiting, unasked) = (self.servers.waiting(), self.servers.unasked());
        if granted + waiting + unasked < self.servers.quorum() {
            return self.fail(now, asking.attempt, out);
        }
        match self.rules.fanout {
            Fanout::Multiplexed if granted < self.servers.quorum() => {}
            Fanout::Sequential if waiting > 0 => {}
            Fanout::Sequential if unasked > 0 => {
                let next = self.servers.count() - unasked;
                self.ask(now, asking, next..next + 1, out);
            }
            Fanout::Multiplexed | Fanout::Sequential => self.grant(now, asking, out),
        }
    }

    fn grant(&mut self, now: Nanos, asking: Asking<S>, out: &mut Actions) {
        let until = self.spec.lease.until_less(self.rules.skew, asking.began);
        if until > now {
            self.state = State::Held(asking.attempt);
            out.settle(Outcome::Held {
                lasts: Lasts::Until(until),
                fence: None,
            });
        } else {
            self.send_release(now, asking.attempt, Why::TooLate, out);
        }
    }

    fn fail(&mut self, now: Nanos, attempt: QuorumAttempt<S>, out: &mut Actions) {
        match self.servers.common_error() {
            Some(kind) => {
                self.send_releases(attempt, out);
                self.settle(Outcome::Failed(kind), out);
            }
            None => self.send_release(now, attempt, Why::NoQuorum, out),
        }
    }

    /// Counts an attempt that took some of the servers and found so many of the others taken that no quorum was left;
    /// an attempt that failed by timeouts or errors does not count. Checked again at each reply, because the one grant
    /// may be the last of the replies.
    fn count_no_quorum(&mut self) {
        if !self.counted && self.servers.granted() > 0 && self.servers.others_prevail() {
            self.counted = true;
            self.no_quorum_attempts = self.no_quorum_attempts.saturating_add(1);
        }
    }

    fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl<S: Resource> LockMachine for Quorum<S> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, S::of(keys), out),
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

    fn no_quorum_attempts(&self) -> u32 {
        self.no_quorum_attempts
    }
}
