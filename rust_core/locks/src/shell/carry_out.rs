//! What follows from an answer: the shell sends, holds, pauses, undoes and settles as the lock says.
#![expect(
    clippy::inline_always,
    reason = "on the way from a reply to a grant the compiler has to see what a lock can return: a mutex costs a sixth more without"
)]

use crate::backoff::Next as Attempt;
use crate::calls::{CallIds, TakeEffect};
use crate::script_form::source_after;
use crate::{ErrorKind, Fence, Lasts, Nanos, Outcome, Reply};

use super::{After, Ending, Left, Lock, Next, NoReply, Run, State, Undone};

impl<L: Lock> Run<'_, L> {
    #[inline(always)]
    pub(super) fn answered(&mut self, step: L::Step, reply: Reply) {
        let is_unknown = reply == Reply::Error(ErrorKind::NoScript);
        if is_unknown && self.lock.may_resend(step, &self.turn) && self.resent(step, reply) {
            // The lease counts from the second send: the first one took nothing.
            self.turn.core.sent = self.turn.now;
            return;
        }
        let next = self.lock.answer(step, reply, &mut self.turn);
        self.carry_out_inline(next);
    }

    /// Sends the script of this step as source, if the server did not know its SHA-1.
    #[inline(never)]
    fn resent(&mut self, step: L::Step, reply: Reply) -> bool {
        let form = self.turn.core.form;
        let source = source_after(reply, form, || self.lock.command(step, &self.turn));
        let Some(source) = source else { return false };
        self.lock.before_send(step, &self.turn);
        let (to, over) = self.lock.route(step);
        self.turn.core.call = self.turn.send_to(to, over, source);
        self.turn.core.form = source.form();
        self.await_until(self.lock.deadline(step, &self.turn));
        true
    }

    /// The request was cancelled, and the reply tells whether there is anything to undo.
    pub(super) fn withdrawn(&mut self, step: L::Step, reply: Reply) {
        let next = self.lock.answer(step, reply, &mut self.turn);
        let (is_taken, otherwise) = match next {
            Next::Ask(next) | Next::Confirm(next) => {
                self.turn.core.sent = self.turn.now;
                (self.lock.can_undo(next, &self.turn), Ending::Released)
            }
            Next::Failed(_, TakeEffect::Unknown) => (self.lock.can_undo(step, &self.turn), Ending::Unknown),
            Next::Granted(_) | Next::Undo(_) | Next::Abandon(_) => (true, Ending::Released),
            Next::Busy | Next::Failed(_, TakeEffect::Nothing) | Next::Settle(_) => (false, Ending::Released),
            Next::Stay
            | Next::AskAgain(_)
            | Next::Await(..)
            | Next::Expect(..)
            | Next::Become(_)
            | Next::Wait(..)
            | Next::Withdraw
            | Next::Pause(_)
            | Next::Hold(..)
            | Next::KeepHolding(..)
            | Next::Conflict
            | Next::UndoBy(..) => unreachable!("{next:?} at a step that waits for its reply when it is cancelled"),
        };
        if is_taken {
            self.undo(L::UNDO, After::CANCEL);
        } else {
            self.give_up(otherwise);
        }
    }

    pub(super) fn unanswered(&mut self, step: L::Step, why: NoReply) {
        let next = self.lock.no_reply(step, why, &mut self.turn);
        self.carry_out(next);
    }

    /// As `carry_out`. Here the compiler sees what a lock can return, and drops the rest: the steps that lead to a
    /// grant and a release are the most frequent ones.
    #[inline(always)]
    pub(super) fn carry_out_inline(&mut self, next: Next<L::Step>) {
        match next {
            Next::Ask(step) => self.ask_now(step),
            Next::Granted(fence) => self.granted(fence),
            Next::Hold(lasts, fence) => self.hold(lasts, fence),
            Next::Undo(after) => self.undo(L::UNDO, after),
            Next::Settle(ending) => self.give_up(ending),
            other => self.carry_out(other),
        }
    }

    #[inline(never)]
    pub(super) fn carry_out(&mut self, next: Next<L::Step>) {
        match next {
            Next::Stay => {}
            Next::Ask(step) => self.ask_now(step),
            Next::Confirm(step) => {
                let timeout = self.turn.core.spec.reply_timeout;
                self.ask(step, self.turn.core.sent.after(timeout).after(timeout));
            }
            Next::AskAgain(step) => self.send(step),
            Next::Await(step, deadline) => {
                (self.turn.core.state, self.turn.core.call) = (State::Asking(step), CallIds::NONE);
                self.await_until(deadline);
            }
            Next::Expect(step, call) => {
                (self.turn.core.state, self.turn.core.call) = (State::Asking(step), call);
                self.await_until(self.turn.reply_deadline());
            }
            Next::Become(step) => self.turn.core.state = State::Asking(step),
            Next::Wait(step, until) => {
                self.turn.core.state = State::Waiting(step);
                self.await_until(until);
            }
            Next::Withdraw => {
                if let State::Asking(step) = self.turn.core.state {
                    self.turn.core.state = State::Withdrawing(step);
                }
            }
            Next::Granted(fence) => self.granted(fence),
            Next::Hold(lasts, fence) => self.hold(lasts, fence),
            Next::KeepHolding(until, outcome) => {
                (self.turn.core.state, self.turn.core.until) = (State::Held, until);
                self.turn.out.settle(outcome);
            }
            Next::Busy => {
                let next = self.turn.after_refusal();
                self.pause_or_give_up(next);
            }
            Next::Pause(until) => self.pause(until),
            Next::Conflict => self.conflict(),
            Next::Undo(after) => self.undo(L::UNDO, after),
            Next::UndoBy(step, after) => self.undo(step, after),
            Next::Failed(kind, TakeEffect::Nothing) => self.give_up(Ending::Failed(kind)),
            Next::Failed(kind, TakeEffect::Unknown) => self.abandon(Ending::Failed(kind)),
            Next::Abandon(ending) => self.abandon(ending),
            Next::Settle(ending) => self.give_up(ending),
        }
    }

    #[inline(always)]
    fn ask_now(&mut self, step: L::Step) {
        self.turn.core.sent = self.turn.now;
        self.ask(step, self.lock.deadline(step, &self.turn));
    }

    #[inline(always)]
    fn ask(&mut self, step: L::Step, deadline: Nanos) {
        self.send(step);
        self.turn.core.state = State::Asking(step);
        self.await_until(deadline);
    }

    #[inline(always)]
    fn send(&mut self, step: L::Step) {
        self.lock.before_send(step, &self.turn);
        let (command, (to, over)) = (self.lock.command(step, &self.turn), self.lock.route(step));
        self.turn.core.call = self.turn.send_to(to, over, command);
        self.turn.core.form = command.form();
    }

    fn await_until(&mut self, until: Nanos) {
        self.turn.core.until = until;
        self.turn.out.wake_at(until);
    }

    /// The lease counts from before the send: a delayed reply, or a holder that was paused, must not lengthen it.
    #[inline(always)]
    fn granted(&mut self, fence: Option<Fence>) {
        let until = self.lock.lease(&self.turn.core.spec).until(self.turn.core.sent);
        if until > self.turn.now {
            return self.hold(Lasts::Until(until), fence);
        }
        match self.turn.core.state {
            State::Asking(step) if !self.lock.can_undo(step, &self.turn) => self.late(),
            State::Asking(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..)
            | State::Idle
            | State::Conflicted(_) => self.undo(L::UNDO, After::TooLate),
        }
    }

    fn hold(&mut self, lasts: Lasts, fence: Option<Fence>) {
        self.turn.core.state = State::Held;
        self.turn.core.until = match lasts {
            Lasts::Until(until) => until,
            Lasts::Session | Lasts::Unbounded => Nanos::NEVER,
        };
        self.turn.out.settle(Outcome::Held { lasts, fence });
        if let Some(renewal) = self.lock.renewal() {
            renewal.start(&mut self.turn);
        }
    }

    fn late(&mut self) {
        let next = self.turn.after_late_grant();
        self.pause_or_give_up(next);
    }

    fn pause_or_give_up(&mut self, next: Attempt) {
        match next {
            Attempt::TryAt(until) => self.pause(until),
            Attempt::GiveUp(refusal) => self.give_up(Ending::Refused(refusal)),
        }
    }

    pub(super) fn pause(&mut self, until: Nanos) {
        self.turn.core.state = State::Pausing;
        self.await_until(until);
    }

    /// The pause counts from here, because the driver may take its time until it retries.
    fn conflict(&mut self) {
        self.turn.core.state = match self.turn.after_refusal() {
            Attempt::TryAt(until) => {
                self.turn.core.until = until;
                State::Conflicted(None)
            }
            Attempt::GiveUp(refusal) => State::Conflicted(Some(refusal)),
        };
        self.turn.out.settle(Outcome::Conflict);
    }

    fn undo(&mut self, step: L::Step, after: After) {
        self.send(step);
        self.turn.core.state = State::Undoing(step, after);
        self.await_until(self.turn.reply_deadline());
        match after {
            After::Release | After::Settle(_) => {
                self.lock.clean_up(Left::Undoing, &mut self.turn);
            }
            // Another attempt may follow.
            After::TooLate | After::Again => {}
        }
    }

    #[inline(always)]
    pub(super) fn undo_answered(&mut self, step: L::Step, after: After, reply: Reply) {
        if reply == Reply::Error(ErrorKind::NoScript) && self.resent(step, reply) {
            return;
        }
        match (self.lock.undone(step, reply, &mut self.turn), after) {
            (Undone::SentAgain, _) => self.send(step),
            (Undone::By(other), after) => self.undo(other, after),
            (Undone::Failed(kind), after) => self.undo_failed(after, Ending::Failed(kind)),
            (Undone::WasHeld, After::Release) => self.settle(Outcome::Released),
            (Undone::WasLost, After::Release) => self.settle(Outcome::Expired),
            (Undone::WasHeld | Undone::WasLost, After::TooLate) => self.late(),
            (Undone::WasHeld | Undone::WasLost, After::Again) => self.carry_out(Next::Busy),
            (Undone::WasHeld | Undone::WasLost, After::Settle(ending)) => self.settle(ending.into()),
        }
    }

    pub(super) fn undo_unanswered(&mut self, after: After, why: NoReply) {
        self.lock.undo_unanswered(why, &mut self.turn);
        self.undo_failed(after, Ending::Unknown);
    }

    fn undo_failed(&mut self, after: After, ending: Ending) {
        if after == After::TooLate {
            self.lock.clean_up(Left::Unclear, &mut self.turn);
        }
        self.settle(ending.into());
    }

    /// Settles now, and sends an undo whose reply nobody awaits. If the connection still stands, it follows the earlier
    /// commands on it. Sent as source, because nobody could resend it after a `NOSCRIPT`.
    fn abandon(&mut self, ending: Ending) {
        let can_undo = match self.turn.core.state {
            State::Asking(step) | State::Withdrawing(step) | State::Waiting(step) => {
                self.lock.can_undo(step, &self.turn)
            }
            State::Idle | State::Conflicted(_) | State::Pausing | State::Held | State::Undoing(..) => true,
        };
        if can_undo {
            let (command, (to, over)) = (self.lock.command(L::UNDO, &self.turn), self.lock.route(L::UNDO));
            self.turn.send_to(to, over, command.unawaited());
        }
        self.lock.clean_up(Left::Unclear, &mut self.turn);
        self.settle(ending.into());
    }

    /// Settles when nothing is taken.
    fn give_up(&mut self, ending: Ending) {
        self.lock.clean_up(Left::Nothing, &mut self.turn);
        self.settle(ending.into());
    }

    pub(super) fn settle(&mut self, outcome: Outcome) {
        self.turn.core.state = State::Idle;
        self.turn.out.settle(outcome);
    }
}
