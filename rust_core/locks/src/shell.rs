//! The shell: what all locks do in the same way. It numbers the calls, knows the awaited one, gives up a reply that does
//! not come in time, ignores late replies, sends a script as source after `NOSCRIPT`, cancels, retries by the policy,
//! and settles. A `Lock` says what it sends, what the answers mean, and how it undoes.
//!
//! ```text
//!          Acquire            granted, held            Release, Cancel
//!    Idle ─────────▶ Asking ────────────────▶ Held ──────────────────▶ Undoing ───▶ Idle
//!                    │ ▲ │ └── granted too late, Cancel ────────────────▶ ▲ │
//!               busy │ │ └── Cancel ──▶ Withdrawing ── something is taken ─┘ │ was too late, and the
//!                    ▼ │ Woke                          (otherwise Idle)      │ policy allows another
//!                   Pausing ◀────────────────────────────────────────────────┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`); what keeps its state (a further command of
//! the attempt, a script that is sent again); `Waiting`, in which a lock waits for a time of its own; `Conflicted`, which
//! is idle until a `Retry` goes on with the same work.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; each request settles within the reply
//! timeout of its last call; no call id is used twice.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::calls::{CallIds, Deadline, check_deadline};
use crate::{
    Actions, CallId, Chance, Event, Key, KeyList, LockMachine, Mode, Nanos, Outcome, Refusal, Reply, ScriptForm, Spec,
};

mod carry_out;
mod lock;
mod turn;

pub(crate) use lock::{After, Ending, LeaseStep, Left, Lock, Next, NoReply, Owner, Undone};
use turn::Core;
pub(crate) use turn::Turn;

#[derive(Debug)]
pub(crate) struct Shell<L: Lock> {
    core: Core<L>,
    lock: L,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State<S> {
    Idle,
    /// Idle, but the work of the last grant is to be repeated; a refusal if the policy allows no further attempt.
    Conflicted(Option<Refusal>),
    /// The command of this step has no reply yet.
    Asking(S),
    /// As `Asking`, but the request was cancelled.
    Withdrawing(S),
    /// Waits for a time, or for a message.
    Waiting(S),
    /// Waits until the next attempt.
    Pausing,
    Held,
    /// The command of this step, which undoes, has no reply yet.
    Undoing(S, After),
}

impl<L: Lock> Shell<L> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, lock: L) -> Self {
        let core = Core {
            spec,
            chance,
            calls: CallIds::default(),
            backoff: Backoff::default(),
            owner: Owner::NOBODY,
            sent: Nanos::ZERO,
            until: Nanos::NEVER,
            call: CallIds::NONE,
            key: Key(0),
            form: ScriptForm::default(),
            state: State::Idle,
        };
        Self { core, lock }
    }
}

impl<L: Lock> LockMachine for Shell<L> {
    #[inline]
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        let core = &mut self.core;
        let mut run = Run {
            lock: &mut self.lock,
            turn: Turn { core, now, out },
        };
        match event {
            Event::Acquire { mode: Mode::Shared, .. } if !L::SHARES => {
                panic!("a shared Acquire, but it excludes everybody")
            }
            Event::Acquire { keys, mode } => run.acquire(keys, mode),
            Event::Retry => run.retry(),
            Event::Enter => run.enter(),
            Event::Extend => run.extend(),
            Event::Release => run.release(),
            Event::Cancel => run.cancel(),
            Event::Replied { call, reply } => run.replied(call, reply),
            Event::Lost { call } => run.lost(call),
            Event::Published { first } => {
                let next = run.lock.published(first, &mut run.turn);
                run.carry_out(next);
            }
            Event::Disconnected => {
                let next = run.lock.disconnected(&mut run.turn);
                run.carry_out(next);
            }
            Event::Woke => run.woke(),
        }
    }

    #[inline]
    fn attempts(&self) -> u32 {
        self.core.backoff.attempts()
    }

    fn no_quorum_attempts(&self) -> u32 {
        self.lock.no_quorum_attempts()
    }

    fn conflicts(&self) -> u32 {
        self.core.backoff.conflicts()
    }

    fn awaits_vote(&self, call: CallId) -> bool {
        match self.core.state {
            State::Asking(step) => self.core.call == call || self.lock.awaits_vote(step, call),
            State::Idle
            | State::Conflicted(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..) => false,
        }
    }

    fn servers_vote() -> bool {
        L::SERVERS_VOTE
    }

    fn is_placed(&self, now: Nanos) -> bool {
        self.lock.is_placed(self.core.state, self.core.sent, now)
    }
}

/// The lock, and the event that it handles.
struct Run<'a, L: Lock> {
    lock: &'a mut L,
    turn: Turn<'a, L>,
}

/// The events. `carry_out.rs` has what follows from them.
impl<L: Lock> Run<'_, L> {
    fn acquire(&mut self, keys: KeyList, mode: Mode) {
        match self.turn.core.state {
            State::Idle | State::Conflicted(_) => {
                self.turn.core.backoff = Backoff::begin(self.turn.now);
                self.turn.core.key = if L::MANY_KEYS { keys.as_slice()[0] } else { keys.only() };
                self.lock.request(keys, mode);
                let next = self.lock.begin(&mut self.turn);
                self.carry_out_inline(next);
            }
            State::Held => panic!("Acquire, but the last grant was not released"),
            State::Asking(_) | State::Withdrawing(_) | State::Waiting(_) | State::Pausing | State::Undoing(..) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn retry(&mut self) {
        match self.turn.core.state {
            State::Conflicted(None) => self.pause(self.turn.core.until),
            State::Conflicted(Some(refusal)) => self.settle(Ending::Refused(refusal).into()),
            State::Idle
            | State::Asking(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..) => panic!("Retry, but the last request did not settle as a conflict"),
        }
    }

    fn enter(&mut self) {
        self.expect_held("Enter");
        let next = self.lock.enter(&mut self.turn);
        self.carry_out(next);
    }

    fn extend(&mut self) {
        self.expect_held("Extend");
        let renewal = self.lock.renewal().expect("Extend, but it renews no lease");
        renewal.extend(&mut self.turn);
    }

    fn release(&mut self) {
        self.expect_held("Release");
        self.forget_conflicts();
        let next = self.lock.release(&mut self.turn);
        self.carry_out_inline(next);
    }

    fn expect_held(&self, request: &str) {
        match self.turn.core.state {
            State::Held => {}
            State::Idle | State::Conflicted(_) => panic!("{request}, but nothing is held"),
            State::Asking(_) | State::Withdrawing(_) | State::Waiting(_) | State::Pausing | State::Undoing(..) => {
                panic!("{request}, but the last request is not settled")
            }
        }
    }

    fn forget_conflicts(&mut self) {
        if !L::RELEASE_ENDS_THE_REQUEST {
            self.turn.core.backoff.forget_conflicts();
        }
    }

    fn cancel(&mut self) {
        let next = match self.turn.core.state {
            State::Idle | State::Conflicted(_) => return self.settle(Outcome::Released),
            State::Pausing => Next::Settle(Ending::Released),
            State::Asking(step) | State::Waiting(step) => self.lock.cancel(step, &mut self.turn),
            State::Held => {
                self.forget_conflicts();
                self.lock.release_all(&mut self.turn)
            }
            State::Undoing(step, after) => match after {
                After::TooLate | After::Again | After::Settle(_) => {
                    if after == After::TooLate {
                        self.lock.clean_up(Left::Unclear, &mut self.turn);
                    }
                    self.turn.core.state = State::Undoing(step, After::CANCEL);
                    Next::Stay
                }
                // The release was already sent; its one settlement answers both requests.
                After::Release => Next::Stay,
            },
            // Already cancelled; its one settlement answers both requests.
            State::Withdrawing(_) => Next::Stay,
        };
        self.carry_out(next);
    }

    fn replied(&mut self, call: CallId, reply: Reply) {
        if let Some(next) = self.lock.on_side_call(call, Some(reply), &mut self.turn) {
            return self.carry_out(next);
        }
        match self.turn.core.state {
            State::Asking(current) => {
                if let Some(step) = self.awaited(current, call) {
                    self.answered(step, reply);
                }
            }
            State::Withdrawing(current) => {
                if let Some(step) = self.awaited(current, call) {
                    self.withdrawn(step, reply);
                }
            }
            State::Undoing(step, after) if self.turn.core.call == call => self.undo_answered(step, after, reply),
            State::Held => {
                if let Some(renewal) = self.lock.renewal() {
                    renewal.on_reply(call, Some(reply), &mut self.turn);
                }
            }
            // A reply to a call that was given up. It describes an earlier state of the server, and what the call may
            // have taken has been undone.
            State::Undoing(..) | State::Idle | State::Conflicted(_) | State::Waiting(_) | State::Pausing => {}
        }
    }

    fn lost(&mut self, call: CallId) {
        if let Some(next) = self.lock.on_side_call(call, None, &mut self.turn) {
            return self.carry_out(next);
        }
        match self.turn.core.state {
            State::Asking(current) | State::Withdrawing(current) => {
                if let Some(step) = self.awaited(current, call) {
                    self.unanswered(step, NoReply::Lost);
                }
            }
            State::Undoing(_, after) if self.turn.core.call == call => self.undo_unanswered(after, NoReply::Lost),
            State::Held => {
                if let Some(renewal) = self.lock.renewal() {
                    renewal.on_reply(call, None, &mut self.turn);
                }
            }
            // The lost call was given up, and its lease frees what it may have taken.
            State::Undoing(..) | State::Idle | State::Conflicted(_) | State::Waiting(_) | State::Pausing => {}
        }
    }

    /// The step that awaits this call. Any other call was given up.
    fn awaited(&self, current: L::Step, call: CallId) -> Option<L::Step> {
        match self.turn.core.call {
            CallIds::NONE => self.lock.step_of(call),
            awaited => (awaited == call).then_some(current),
        }
    }

    fn woke(&mut self) {
        match self.turn.core.state {
            State::Held => {
                if let Some(renewal) = self.lock.renewal() {
                    renewal.woke(&mut self.turn);
                }
                return;
            }
            // The wake-up was for a call that has been answered since.
            State::Idle | State::Conflicted(_) => return,
            State::Asking(_) | State::Withdrawing(_) | State::Waiting(_) | State::Pausing | State::Undoing(..) => {}
        }
        let until = self.turn.core.until;
        match (
            check_deadline(self.turn.now, until, self.turn.out),
            self.turn.core.state,
        ) {
            (Deadline::Ahead, _) => {}
            (Deadline::Passed, State::Asking(step) | State::Withdrawing(step)) => {
                self.unanswered(step, NoReply::TimedOut);
            }
            (Deadline::Passed, State::Undoing(_, after)) => self.undo_unanswered(after, NoReply::TimedOut),
            (Deadline::Passed, State::Waiting(step)) => {
                let next = self.lock.due(step, &mut self.turn);
                self.carry_out(next);
            }
            (Deadline::Passed, State::Pausing) => {
                let next = self.lock.attempt(&mut self.turn);
                self.carry_out(next);
            }
            (Deadline::Passed, State::Idle | State::Conflicted(_) | State::Held) => {
                unreachable!("these states wait for no time")
            }
        }
    }
}

#[cfg(test)]
mod tests;
