//! Child locks taken one after another, as `RedissonMultiLock` of Redisson (3.x) does, and `RedissonRedLock`, which
//! inherits from it and lets a minority fail.
//!
//! ```text
//!          Acquire         the last child taken            renewed        Release, Cancel
//!    Idle ─────────▶ Ask ──────────────────────▶ Renew ────────────▶ Held ─────────────────▶ Release ─────▶ Idle
//!                     ▲ │ └── too many failed, out of time; Cancel ──│──────────────────────▶ ▲ │
//!                Woke │ │ busy                    └─ too late; Cancel ───────────────────────▶─┘ │ released, and the
//!                     │ ▼                                                                         │ policy allows another
//!                   Poll            Ask, from the first child ◀────────────────────────────────┘
//! ```
//! Not drawn: each child that is taken or has failed leads to the next one, still `Ask`.
//!
//! The order of commands, and which replies are checked, are Redisson's, with three exceptions: a busy child is asked
//! again by the retry policy, where Redisson waits for a message; a child is not a hash with a count, because nothing
//! nests here; and a server with errors or without replies ends the request once too many children have failed, where
//! Redisson asks again without a pause.

use crate::backoff::Backoff;
use crate::script_form::PendingScript;
use crate::shell::{Ending, Lock, Next, NoReply, State, Turn};
use crate::{
    CallId, Command, ConnectionKind, Key, KeyList, Lasts, Mode, Nanos, Refusal, Reply, RetryKind, Script, ServerId,
    Token,
};

mod collecting;
mod round;
mod rules;

use round::Round;
pub use rules::{Children, RedissonRules};

#[derive(Debug)]
pub(crate) struct Redisson {
    rules: RedissonRules,
    servers: u16,
    began: Nanos,
    /// When the wait budget ends; `NEVER` when the request does not wait.
    budget_end: Nanos,
    pass: Pass,
    child: Child,
    /// The renewals, or the releases, that are under way, and when they were sent.
    round: Round,
    round_sent: Nanos,
}

/// The child that is currently asked.
#[derive(Clone, Copy, Debug, Default)]
struct Child {
    polls: Backoff,
    began: Nanos,
    deadline: Nanos,
}

/// One attempt: a pass over the children, with its own token.
#[derive(Clone, Copy, Debug)]
struct Pass {
    keys: KeyList,
    at: u16,
    failed: u16,
    /// One bit per child.
    taken: u32,
}

impl Pass {
    const fn over(keys: KeyList) -> Self {
        Self {
            keys,
            at: 0,
            failed: 0,
            taken: 0,
        }
    }

    /// How many children are taken.
    const fn count(self) -> u16 {
        self.taken.count_ones() as u16
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The `SET` of a child.
    Ask,
    /// The child is busy; waits until the next attempt.
    Poll,
    /// Some renewals have no reply yet.
    Renew,
    /// Some releases have no reply yet.
    Release(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The holder has finished its work.
    Release,
    /// The request was cancelled before it was settled.
    Cancel,
    /// Too many children were busy, or the wait budget ended.
    Again,
    /// All children were taken, but some were lost meanwhile, or the lease had practically ended.
    TooLate,
    /// Too many children failed; this is the outcome of the last failure.
    End(Ending),
}

impl Lock for Redisson {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Ask;
    const UNDO: Step = Step::Release(Why::Release);
    const MANY_KEYS: bool = true;
    const SERVERS_VOTE: bool = true;

    fn request(&mut self, keys: KeyList, _mode: Mode) {
        self.pass = Pass::over(self.rules.children.keys(keys));
    }

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        (self.began, self.budget_end) = (turn.now, turn.now);
        self.begin_pass(turn)
    }

    fn route(&self, _step: Step) -> (ServerId, ConnectionKind) {
        (self.server_of(self.pass.at), ConnectionKind::SharedByClients)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Ask | Step::Poll => Command::SetNxPx {
                key: self.key_of(self.pass.at),
                token: turn.owner(),
                lease_ms: self.collecting_ms(turn),
            },
            Step::Renew | Step::Release(_) => self.command_to(self.pass.at, step, turn),
        }
    }

    fn answer(&mut self, _step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.asked(reply, turn)
    }

    fn no_reply(&mut self, step: Step, _why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Ask | Step::Poll => self.child_timed_out(turn),
            Step::Renew | Step::Release(_) => {
                self.round.give_up();
                self.go_on(step, turn)
            }
        }
    }

    fn cancel(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            // No need to wait for the reply: the release arrives behind the SET that it undoes.
            Step::Ask => {
                self.pass.taken |= 1 << self.pass.at;
                self.send_release(Why::Cancel, turn)
            }
            Step::Poll | Step::Renew => self.send_release(Why::Cancel, turn),
            Step::Release(Why::Again | Why::TooLate | Why::End(_)) => Next::Become(Step::Release(Why::Cancel)),
            // The release was already sent; its one settlement answers both requests.
            Step::Release(Why::Release | Why::Cancel) => Next::Stay,
        }
    }

    fn due(&mut self, _step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if turn.now >= self.child.deadline {
            self.child_failed(Why::Again, turn)
        } else {
            self.ask()
        }
    }

    fn release(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.send_release(Why::Release, turn)
    }

    fn on_side_call(&mut self, call: CallId, reply: Option<Reply>, turn: &mut Turn<'_, Self>) -> Option<Next<Step>> {
        let step = match turn.state() {
            State::Asking(step @ (Step::Renew | Step::Release(_))) => step,
            // No round is under way.
            State::Asking(Step::Ask | Step::Poll)
            | State::Idle
            | State::Conflicted(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..) => return None,
        };
        let (child, script) = self.round.child_of(call)?;
        match reply.and_then(|reply| script.source_after(reply, || self.command_to(child, step, turn))) {
            Some(source) => {
                self.send(child, source, turn);
                return Some(Next::Stay);
            }
            None => self.round.answered(child, reply),
        }
        Some(self.go_on(step, turn))
    }
}

impl Redisson {
    pub(crate) fn new(rules: RedissonRules, servers: u16) -> Self {
        Self {
            round: Round::new(rules.most_children(servers)),
            rules,
            servers,
            began: Nanos::ZERO,
            budget_end: Nanos::ZERO,
            pass: Pass::over(KeyList::one(Key(0))),
            child: Child::default(),
            round_sent: Nanos::ZERO,
        }
    }

    fn renew(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.send_round(Step::Renew, self.pass.taken, turn);
        Next::Await(Step::Renew, turn.reply_deadline())
    }

    fn send_release(&mut self, why: Why, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let to = match why {
            Why::Release => u32::MAX >> (32 - u32::from(self.children())),
            Why::Cancel | Why::Again | Why::TooLate | Why::End(_) => self.pass.taken,
        };
        let step = Step::Release(why);
        self.send_round(step, to, turn);
        match self.go_on(step, turn) {
            Next::Stay => Next::Await(step, turn.reply_deadline()),
            next => next,
        }
    }

    /// Sends the renewals, or the releases, of these children, in order and without waiting in between.
    fn send_round(&mut self, step: Step, children: u32, turn: &mut Turn<'_, Self>) {
        self.round.begin();
        self.round_sent = turn.now;
        for child in (0..32).filter(|child| children & 1 << child != 0) {
            self.send(child, self.command_to(child, step, turn), turn);
        }
    }

    fn send(&mut self, child: u16, command: Command, turn: &mut Turn<'_, Self>) {
        let call = turn.send_to(self.server_of(child), ConnectionKind::SharedByClients, command);
        self.round.sent(child, PendingScript::new(call, command));
    }

    fn command_to(&self, child: u16, step: Step, turn: &Turn<'_, Self>) -> Command {
        let (key, token) = (self.key_of(child), turn.owner());
        match step {
            Step::Renew => Command::by_sha(Script::CompareAndExpire, key, token, [turn.lease_ms(), 0]),
            Step::Ask | Step::Poll | Step::Release(_) => Command::compare_and_delete(key, token),
        }
    }

    /// Goes on when the last reply, or loss, of the round has come.
    fn go_on(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            _ if self.round.is_under_way() => Next::Stay,
            Step::Release(why) => self.release_answered(why, turn),
            Step::Renew | Step::Ask | Step::Poll => self.renewed(turn),
        }
    }

    fn renewed(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let until = match self.rules.children {
            Children::PerServer => turn.now.after(turn.spec().lease.ttl().into()),
            Children::PerKey => match self.round.outcome(self.pass.count()) {
                Ending::Released => turn.spec().lease.until(self.round_sent),
                Ending::Expired => return self.send_release(Why::TooLate, turn),
                other => return self.send_release(Why::End(other), turn),
            },
        };
        if until > turn.now {
            Next::Hold(Lasts::Until(until), None)
        } else {
            self.send_release(Why::TooLate, turn)
        }
    }

    fn release_answered(&mut self, why: Why, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (why, self.round.is_certain()) {
            (Why::Release, _) => {
                let needed = self.rules.children.needed(self.pass.count());
                Next::Settle(self.round.outcome(needed))
            }
            (Why::End(ending), _) => Next::Settle(ending),
            // If the keys still exist, their leases free them.
            (Why::Cancel | Why::Again | Why::TooLate, false) => Next::Settle(Ending::Unknown),
            (Why::Cancel, true) => Next::Settle(Ending::Released),
            (Why::Again, true) => self.start_again(Refusal::Busy, Refusal::TimedOut, turn),
            (Why::TooLate, true) => self.start_again(Refusal::TooLate, Refusal::TooLate, turn),
        }
    }

    /// Starts the next pass at once, as Redisson does: the wait for the children was pause enough.
    fn start_again(&mut self, used_up: Refusal, too_long: Refusal, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let retry = &turn.spec().retry;
        let most = retry.max_attempts.unwrap_or(u32::MAX);
        if retry.kind == RetryKind::None || turn.backoff().attempts() >= most {
            Next::Settle(Ending::Refused(used_up))
        } else if turn.now >= self.began.after(retry.max_wait) {
            Next::Settle(Ending::Refused(too_long))
        } else {
            self.begin_pass(turn)
        }
    }

    fn children(&self) -> u16 {
        self.rules.count(self.pass.keys, self.servers)
    }

    fn server_of(&self, child: u16) -> ServerId {
        self.rules.children.server_of(self.pass.keys, child, self.servers)
    }

    fn key_of(&self, child: u16) -> Key {
        self.rules.children.key_of(self.pass.keys, child)
    }
}
