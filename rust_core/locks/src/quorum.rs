//! A lock over several servers, held by the client that more than half of them granted: what `redlock` and `multilock`
//! have in common. They differ in what they take on each server, which is their `Resource`.
//!
//! ```text
//!          Acquire            a quorum in time     Release, Cancel
//!    Idle ─────────▶ Ask ─────────────────────▶ Held ──────────────▶ Release ─────▶ Idle
//!                    │   ▲                                              ▲ │
//!                    │   │ Woke                                         │ │ released, and the
//!                    │   └── Pausing ◀──────────────────────────────────│─┘ policy allows another
//!                    └── no quorum any more, or too late; Cancel ───────┘
//! ```
//! Not drawn: errors of so many servers that no further attempt could succeed end in `Idle` at once.
//!
//! The `ServerState` of each server outlives the attempt: a release follows its own `SET` on the same connection, and a
//! release that meets `NOSCRIPT` is sent again as source, whatever the client is doing by then.

use crate::backoff::Next as Attempt;
use crate::calls::{TakeEffect, Taken};
use crate::script_form::PendingScript;
use crate::shell::{Ending, Lock, Next, NoReply, State, Turn};
use crate::{CallId, Command, ConnectionKind, ErrorKind, Key, KeyList, Lasts, Mode, Nanos, Reply, ServerId, Token};

mod releasing;
mod resource;
mod rules;
mod server_states;

pub(crate) use resource::Resource;
pub(crate) use rules::MOST_NODES;
pub use rules::{Fanout, QuorumRules};
use server_states::{ServerStates, TakeState};

#[derive(Debug)]
pub(crate) struct Quorum<S> {
    rules: QuorumRules,
    resource: S,
    servers: ServerStates<QuorumAttempt<S>>,
    /// The time before the first send: the lease counts from here on all servers.
    began: Nanos,
    no_quorum_attempts: u32,
    /// The current attempt is already counted in `no_quorum_attempts`.
    counted: bool,
}

/// What an attempt tries to own on every server: the resource, under one fresh token.
#[derive(Clone, Copy, Debug)]
struct QuorumAttempt<S> {
    resource: S,
    token: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The commands that take.
    Ask,
    /// The commands that release.
    Release(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// Too few servers granted.
    NoQuorum,
    /// Enough servers granted, but the lease had practically ended.
    TooLate,
}

impl<S: Resource> Lock for Quorum<S> {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Ask;
    const UNDO: Step = Step::Release(Why::Release);
    const MANY_KEYS: bool = true;
    const SERVERS_VOTE: bool = true;

    fn request(&mut self, keys: KeyList, _mode: Mode) {
        self.resource = S::of(keys);
        self.no_quorum_attempts = 0;
    }

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        turn.count_attempt();
        turn.draw_owner();
        self.servers.begin();
        self.counted = false;
        self.began = turn.now;
        let first = match self.rules.fanout {
            Fanout::Multiplexed => self.servers.count(),
            Fanout::Sequential => 1,
        };
        self.ask(0..first, turn)
    }

    /// What each server is asked for, or told to release.
    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Ask => self.resource.take(turn.owner(), turn.lease_ms()),
            Step::Release(_) => self.resource.release(turn.owner()),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        unreachable!("{reply:?} to {step:?}, but each server has a call of its own")
    }

    fn no_reply(&mut self, step: Step, _why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Ask => self.servers.give_up_asking(),
            Step::Release(_) => self.servers.give_up_releasing(),
        }
        self.go_on(turn)
    }

    fn cancel(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            // No need to wait for replies: each release arrives behind the command that it undoes.
            Step::Ask => self.send_release(Why::Cancel, turn),
            Step::Release(Why::NoQuorum | Why::TooLate) => Next::Become(Step::Release(Why::Cancel)),
            // The release was already sent; its one settlement answers both requests.
            Step::Release(Why::Release | Why::Cancel) => Next::Stay,
        }
    }

    fn release(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.send_release(Why::Release, turn)
    }

    fn on_side_call(&mut self, call: CallId, reply: Option<Reply>, turn: &mut Turn<'_, Self>) -> Option<Next<Step>> {
        match reply {
            None => self.servers.lost(call),
            Some(reply) => {
                if let Some(server) = self.servers.asked_by(call) {
                    self.asked(server, reply, turn);
                } else if let Some(server) = self.servers.released_by(call) {
                    self.release_answered(server, call, reply, turn);
                } else {
                    // A reply to an earlier attempt. It describes an earlier state of the server, and a release of what
                    // it may have taken was sent after it.
                    return Some(Next::Stay);
                }
            }
        }
        Some(self.go_on(turn))
    }

    fn no_quorum_attempts(&self) -> u32 {
        self.no_quorum_attempts
    }

    fn awaits_vote(&self, step: Step, call: CallId) -> bool {
        step == Step::Ask && self.servers.asked_by(call).is_some()
    }
}

impl<S: Resource> Quorum<S> {
    pub(crate) fn new(rules: QuorumRules, servers: u16) -> Self {
        Self {
            rules,
            resource: S::of(KeyList::one(Key(0))),
            servers: ServerStates::new(servers),
            began: Nanos::ZERO,
            no_quorum_attempts: 0,
            counted: false,
        }
    }

    fn ask(&mut self, servers: std::ops::Range<u16>, turn: &mut Turn<'_, Self>) -> Next<Step> {
        for server in servers {
            self.send_take(server, self.command(Step::Ask, turn), turn);
        }
        Next::Await(Step::Ask, turn.now.after(self.rules.node_timeout(turn.spec())))
    }

    fn send_take(&mut self, server: u16, command: Command, turn: &mut Turn<'_, Self>) {
        let call = turn.send_to(ServerId(server), ConnectionKind::SharedByClients, command);
        self.servers.of(server).take = TakeState::Waiting(PendingScript::new(call, command));
    }

    fn asked(&mut self, server: u16, reply: Reply, turn: &mut Turn<'_, Self>) {
        let take = self.servers.of(server).take;
        let source = take
            .script()
            .and_then(|script| script.source_after(reply, || self.command(Step::Ask, turn)));
        if let (Some(source), State::Asking(Step::Ask)) = (source, turn.state()) {
            return self.send_take(server, source, turn);
        }
        let kind = reply.failure();
        self.servers.of(server).take = match (S::take_reply(reply), TakeEffect::of(kind)) {
            (Some(Taken::Mine), _) => TakeState::Granted,
            (Some(Taken::Theirs), _) => TakeState::Refused,
            // The attempt ended without this server, which has taken nothing.
            (None, _) if source.is_some() => TakeState::Failed(ErrorKind::NoScript),
            (None, TakeEffect::Nothing) => TakeState::Failed(kind),
            (None, TakeEffect::Unknown) => TakeState::Unclear(kind),
        };
    }

    /// Goes on after the state of a server has changed.
    fn go_on(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match turn.state() {
            State::Asking(Step::Ask) => self.judge(turn),
            State::Asking(Step::Release(why)) => self.conclude(why, turn),
            // A grant that came after the attempt was given up.
            State::Pausing => {
                self.count_no_quorum();
                Next::Stay
            }
            // A held lock already has its quorum, so a late grant changes nothing for the client; the `ServerState`
            // records it for the release. In `Idle` the release has already been sent.
            State::Idle
            | State::Conflicted(_)
            | State::Held
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Undoing(..) => Next::Stay,
        }
    }

    fn judge(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let (granted, quorum) = (self.servers.granted(), self.servers.quorum());
        let (waiting, unasked) = (self.servers.waiting(), self.servers.unasked());
        if granted + waiting + unasked < quorum {
            return match self.servers.common_error() {
                Some(kind) => {
                    self.send_releases(turn);
                    Next::Settle(Ending::Failed(kind))
                }
                None => self.send_release(Why::NoQuorum, turn),
            };
        }
        match self.rules.fanout {
            Fanout::Multiplexed if granted < quorum => Next::Stay,
            Fanout::Sequential if waiting > 0 => Next::Stay,
            Fanout::Sequential if unasked > 0 => {
                let next = self.servers.count() - unasked;
                self.ask(next..next + 1, turn)
            }
            Fanout::Multiplexed | Fanout::Sequential => {
                let until = turn.spec().lease.until_less(self.rules.skew, self.began);
                if until > turn.now {
                    Next::Hold(Lasts::Until(until), None)
                } else {
                    self.send_release(Why::TooLate, turn)
                }
            }
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
}
