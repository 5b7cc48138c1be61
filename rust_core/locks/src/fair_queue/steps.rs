//! What `fair-queue` does with a reply, and what it sends.

use super::{ALIVE, Asking, Confirming, FairQueue, Held, LeaveBy, Leaving, Pausing, State, Waiting, WakeupPop, Why};
use crate::backoff::Next;
use crate::calls::{SERVER, TakeEffect};
use crate::grant::Attempt;
use crate::{
    Actions, CallId, Command, ConnectionKind, ErrorKind, Key, Lasts, Lease, Nanos, Outcome, Refusal, Reply, Script,
    ScriptForm, Token,
};

impl FairQueue {
    pub(super) fn attempt(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        self.backoff.attempt();
        self.was_cut = false;
        self.stale_wakeup = false;
        let token = self.chance.token();
        self.ask(now, Attempt { key, token }, ScriptForm::Sha, false, out);
    }

    pub(super) fn ask(&mut self, now: Nanos, attempt: Attempt, form: ScriptForm, placed: bool, out: &mut Actions) {
        let waits = placed || matches!(self.backoff.wait_for_message(now, &self.spec.retry), Next::TryAt(_));
        let alive = if waits { self.alive_ms() } else { 0 };
        let call = self.calls.fresh();
        let numbers = [self.spec.lease.ttl().0, alive];
        out.send(call, SERVER, attempt.run(Script::QueueTake, form, numbers));
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Asking(Asking {
            attempt,
            call,
            sent: now,
            form,
            placed,
            woken: false,
        });
    }

    const fn alive_ms(&self) -> u64 {
        self.beat.0 * ALIVE
    }

    /// The lease of a handed-over lock. If its waiter has died, the lock is free again no later than any holder's, and
    /// no later than its place would have ended. All clients of a lock have the same lease and beat, so the waiter
    /// knows this length.
    fn handed_over_for(&self) -> Lease {
        let alive = Lease::new(self.alive_ms().cast_signed()).expect("a few beats are shorter than the longest lease");
        self.spec.lease.min(alive)
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Int(0) => {
                let until = self.spec.lease.until(asking.sent);
                if until > now {
                    self.hold(now, asking.attempt, until, None, out);
                } else {
                    self.leave(now, asking.attempt, Why::TooLate, out);
                }
            }
            Reply::Int(1) if asking.placed => self.queued(now, asking, out),
            Reply::Int(2) => {
                out.queued();
                if asking.placed {
                    // The earlier place lapsed on the server, or the lock that was handed over did.
                    self.backoff.attempt();
                    self.stale_wakeup = true;
                }
                self.queued(now, asking, out);
            }
            Reply::Int(-1) if !asking.placed => {
                let refusal = match self.backoff.wait_for_message(now, &self.spec.retry) {
                    Next::GiveUp(refusal) => refusal,
                    Next::TryAt(_) => Refusal::Busy,
                };
                self.settle(Outcome::Refused(refusal), out);
            }
            Reply::Error(ErrorKind::NoScript) if asking.form == ScriptForm::Sha => {
                self.ask(now, asking.attempt, ScriptForm::Source, asking.placed, out);
                self.keep_wakeup(asking.woken);
            }
            Reply::Error(kind) => match TakeEffect::of(kind) {
                TakeEffect::Nothing if !asking.placed => self.settle(Outcome::Failed(kind), out),
                TakeEffect::Nothing | TakeEffect::Unknown => self.abandon(asking.attempt, Outcome::Failed(kind), out),
            },
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.abandon(asking.attempt, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn hold(&mut self, now: Nanos, attempt: Attempt, until: Nanos, confirming: Option<Confirming>, out: &mut Actions) {
        self.state = State::Held(Held {
            attempt,
            until,
            confirming,
            since: now,
            confirmed: None,
        });
        out.settle(Outcome::Held {
            lasts: Lasts::Until(until),
            fence: None,
        });
    }

    /// The wake-up came: the server handed the lock over after it had carried out the last beat, so not before that
    /// beat was sent.
    pub(super) fn handed_over(&mut self, now: Nanos, waiting: Waiting, out: &mut Actions) {
        let Waiting { attempt, beat_sent, .. } = waiting;
        let until = self.handed_over_for().until(beat_sent);
        if until <= now {
            return self.ask(now, attempt, ScriptForm::Sha, true, out);
        }
        let confirming = self.confirm(now, attempt, ScriptForm::Sha, out);
        self.hold(now, attempt, until, Some(confirming), out);
    }

    /// Sets the whole lease, and asks for the successor.
    fn confirm(&mut self, now: Nanos, attempt: Attempt, form: ScriptForm, out: &mut Actions) -> Confirming {
        let call = self.calls.fresh();
        let numbers = [self.spec.lease.ttl().0, u64::from(self.wants_successor)];
        out.send(call, SERVER, attempt.run(Script::QueueConfirm, form, numbers));
        Confirming { call, sent: now, form }
    }

    pub(super) fn confirmed(&mut self, now: Nanos, mut held: Held, reply: Reply, out: &mut Actions) {
        let Some(confirming) = held.confirming.take() else {
            return;
        };
        let until = self.spec.lease.until(confirming.sent);
        match reply {
            Reply::Int(0) | Reply::Token(_) if now < held.until => {
                let successor = if let Reply::Token(successor) = reply {
                    Some(successor)
                } else {
                    None
                };
                held.confirmed = Some((now, successor));
                if until > held.until {
                    held.until = until;
                    out.renewed(Lasts::Until(until));
                }
            }
            // A reply after the end of the lease revives nothing.
            Reply::Int(0) | Reply::Token(_) => {}
            // The hand-over ended earlier than this client believed.
            Reply::Int(-1) => out.lapsed(),
            Reply::Error(ErrorKind::NoScript) if confirming.form == ScriptForm::Sha => {
                held.confirming = Some(self.confirm(now, held.attempt, ScriptForm::Source, out));
            }
            // The whole lease is not set; the hand-over lasts for its own time all the same.
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => {}
        }
        self.state = State::Held(held);
    }

    /// The script was sent again as source: a wake-up since the first send still counts.
    const fn keep_wakeup(&mut self, woken: bool) {
        if let State::Asking(asking) = &mut self.state {
            asking.woken = woken;
        }
    }

    /// The server has put this client into its queue.
    fn queued(&mut self, now: Nanos, asking: Asking, out: &mut Actions) {
        let attempt = asking.attempt;
        let end = match self.backoff.wait_for_message(now, &self.spec.retry) {
            Next::TryAt(end) => end,
            Next::GiveUp(refusal) => return self.leave(now, attempt, Why::Refused(refusal), out),
        };
        if asking.woken {
            return self.ask(now, attempt, ScriptForm::Sha, true, out);
        }
        if self.pop.is_none_or(|pop| pop.token != attempt.token) {
            self.start_pop(attempt, out);
        }
        let beat_at = now.after(self.until_the_next_beat());
        self.state = State::Waiting(Waiting {
            attempt,
            beat_sent: asking.sent,
            beat_at,
            end,
        });
        out.wake_at(beat_at.min(end));
    }

    /// A beat, or up to a quarter more, so that waiters that came together do not stay in step.
    fn until_the_next_beat(&mut self) -> Nanos {
        let beat = Nanos::from(self.beat);
        beat.after(Nanos(self.chance.below(beat.0 / 4 + 1)))
    }

    pub(super) fn start_pop(&mut self, attempt: Attempt, out: &mut Actions) {
        if self.pop.is_some() {
            // A pop of an earlier request still blocks the connection: the new one would wait behind it.
            out.hang_up();
        }
        let call = self.calls.fresh();
        let token = attempt.token;
        let command = Command::AwaitWakeup {
            key: attempt.key,
            token,
            timeout_ms: self.alive_ms(),
        };
        out.send_over(ConnectionKind::Own, call, SERVER, command);
        self.pop = Some(WakeupPop { call, token });
    }

    pub(super) fn send_release(&mut self, now: Nanos, held: Held, out: &mut Actions) {
        match (held.confirmed, held.confirming) {
            (Some((confirmed, _)), _) => {
                let takes = confirmed.since(held.since);
                // With a quarter to spare, because reply times vary.
                self.wants_successor = now.since(held.since) >= Nanos(takes.0 + takes.0 / 4);
            }
            (None, Some(_)) => self.wants_successor = false,
            // The lock was taken by `queue_take` and not handed over.
            (None, None) => {}
        }
        match held.confirmed {
            Some((_, Some(successor))) if now < held.until => self.hand_over(now, held.attempt, successor, out),
            Some(_) | None => self.leave(now, held.attempt, Why::Release, out),
        }
    }

    /// Wakes the successor. It owns the lock from then on, and keeps the first place until it has received the wake-up.
    fn hand_over(&mut self, now: Nanos, attempt: Attempt, successor: Token, out: &mut Actions) {
        let Attempt { key, token } = attempt;
        let call = self.calls.fresh();
        out.send(call, SERVER, Command::HandOver { key, token, successor });
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Leaving(Leaving {
            attempt,
            call,
            sent: now,
            by: LeaveBy::HandOver,
            may_block: false,
            why: Why::Release,
        });
    }

    pub(super) fn leave(&mut self, now: Nanos, attempt: Attempt, why: Why, out: &mut Actions) {
        let may_block = self.may_block(attempt);
        self.send_leave(now, attempt, ScriptForm::Sha, may_block, why, out);
    }

    fn may_block(&self, attempt: Attempt) -> bool {
        self.pop.is_some_and(|pop| pop.token == attempt.token)
    }

    fn send_leave(
        &mut self,
        now: Nanos,
        attempt: Attempt,
        form: ScriptForm,
        may_block: bool,
        why: Why,
        out: &mut Actions,
    ) {
        let call = self.calls.fresh();
        out.send(call, SERVER, self.leaving(attempt, form, may_block));
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Leaving(Leaving {
            attempt,
            call,
            sent: now,
            by: LeaveBy::Script(form),
            may_block,
            why,
        });
    }

    fn leaving(&self, attempt: Attempt, form: ScriptForm, may_block: bool) -> Command {
        attempt.run(
            Script::QueueLeave,
            form,
            [self.handed_over_for().ttl().0, u64::from(may_block)],
        )
    }

    pub(super) fn left(&mut self, now: Nanos, leaving: Leaving, reply: Reply, out: &mut Actions) {
        match (reply, leaving.why) {
            (Reply::Ok, _) if leaving.by == LeaveBy::HandOver => self.settle(Outcome::Released, out),
            // The successor has gone, or the lease has ended: the script tells which.
            (Reply::Error(_), why) if leaving.by == LeaveBy::HandOver => self.leave(now, leaving.attempt, why, out),
            (Reply::Int(0), Why::Release) => self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => self.settle(Outcome::Released, out),
            // 1: the lock had been handed to this client meanwhile, and the script handed it on.
            (Reply::Int(0 | 1), Why::Refused(refusal)) => self.settle(Outcome::Refused(refusal), out),
            (Reply::Int(0 | 1), Why::TooLate) => {
                match self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance) {
                    Next::TryAt(until) => {
                        let key = leaving.attempt.key;
                        self.state = State::Pausing(Pausing { key, until });
                        out.wake_at(until);
                    }
                    Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
                }
            }
            (Reply::Error(ErrorKind::NoScript), why) if leaving.by == LeaveBy::Script(ScriptForm::Sha) => {
                self.send_leave(now, leaving.attempt, ScriptForm::Source, leaving.may_block, why, out);
            }
            // After an error the lock, if it exists, is freed by its lease, and the place ends `ALIVE` beats after the
            // last beat.
            (Reply::Int(0 | 1), Why::Failed(kind)) | (Reply::Error(kind), _) => self.settle(Outcome::Failed(kind), out),
            (
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
                _,
            ) => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    /// Settles now, and leaves the queue in case `queue_take` was, or will be, carried out. If the connection still
    /// stands, the release follows that script on it.
    pub(super) fn abandon(&mut self, attempt: Attempt, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        let release = self.leaving(attempt, ScriptForm::Source, self.may_block(attempt));
        out.send(self.calls.fresh(), SERVER, release);
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl Held {
    pub(super) fn is_confirmed_by(&self, call: CallId) -> bool {
        self.confirming.is_some_and(|confirming| confirming.call == call)
    }
}
