//! What `fair-queue` does with a reply, and what it sends.

use super::{ALIVE, Asking, Bell, Confirming, FairQueue, Held, Leaving, Pausing, State, Waiting, Way, Why};
use crate::backoff::Next;
use crate::calls::{Effect, SERVER};
use crate::claim::Claim;
use crate::{
    Actions, CallId, Command, ErrorKind, Key, Lane, Lasts, Lease, Nanos, Outcome, Refusal, Reply, Script, ScriptForm,
    Token,
};

impl FairQueue {
    pub(super) fn attempt(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        self.backoff.attempt();
        self.was_cut = false;
        self.stale_ring = false;
        let token = self.chance.token();
        self.ask(now, Claim { key, token }, ScriptForm::Sha, false, out);
    }

    pub(super) fn ask(&mut self, now: Nanos, claim: Claim, form: ScriptForm, placed: bool, out: &mut Actions) {
        let waits = placed || matches!(self.backoff.wait_to_be_told(now, &self.spec.retry), Next::TryAt(_));
        let alive = if waits { self.alive_ms() } else { 0 };
        let call = self.calls.fresh();
        let numbers = [self.spec.lease.ttl().0, alive];
        out.send(call, SERVER, claim.run(Script::QueueTake, form, numbers));
        out.wake_at(now.after(self.spec.patience));
        self.state = State::Asking(Asking {
            claim,
            call,
            sent: now,
            form,
            placed,
            rung: false,
        });
    }

    const fn alive_ms(&self) -> u64 {
        self.beat.0 * ALIVE
    }

    /// The lease of a handed-over lock. If its waiter has died, the lock is free again no later than any holder's, and
    /// no later than its place would have ended. All clients of a lock have the same lease and beat, so the waiter
    /// knows this length.
    fn handed_over_for(&self) -> Lease {
        let alive = Lease::new(self.alive_ms().cast_signed()).expect("a beat is short");
        self.spec.lease.min(alive)
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Int(0) => {
                let until = self.spec.lease.until(asking.sent);
                if until > now {
                    self.hold(now, asking.claim, until, None, out);
                } else {
                    self.leave(now, asking.claim, Why::TooLate, out);
                }
            }
            Reply::Int(1) if asking.placed => self.queued(now, asking, out),
            Reply::Int(2) => {
                out.queued();
                if asking.placed {
                    // The earlier place lapsed on the server, or the lock that was handed over did.
                    self.backoff.attempt();
                    self.stale_ring = true;
                }
                self.queued(now, asking, out);
            }
            Reply::Int(-1) if !asking.placed => {
                let refusal = match self.backoff.wait_to_be_told(now, &self.spec.retry) {
                    Next::GiveUp(refusal) => refusal,
                    Next::TryAt(_) => Refusal::Busy,
                };
                self.settle(Outcome::Refused(refusal), out);
            }
            Reply::Error(ErrorKind::NoScript) if asking.form == ScriptForm::Sha => {
                self.ask(now, asking.claim, ScriptForm::Source, asking.placed, out);
                self.keep_ring(asking.rung);
            }
            Reply::Error(kind) => match Effect::of(kind) {
                Effect::Nothing if !asking.placed => self.settle(Outcome::Failed(kind), out),
                Effect::Nothing | Effect::Unknown => self.abandon(asking.claim, Outcome::Failed(kind), out),
            },
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.abandon(asking.claim, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn hold(&mut self, now: Nanos, claim: Claim, until: Nanos, confirming: Option<Confirming>, out: &mut Actions) {
        self.state = State::Held(Held {
            claim,
            until,
            confirming,
            since: now,
            told: None,
        });
        out.settle(Outcome::Held {
            lasts: Lasts::Until(until),
            fence: None,
        });
    }

    /// The wake-up came: the server handed the lock over after it had carried out the last beat, so not before that
    /// beat was sent.
    pub(super) fn handed_over(&mut self, now: Nanos, waiting: Waiting, out: &mut Actions) {
        let Waiting { claim, beat_sent, .. } = waiting;
        let until = self.handed_over_for().until(beat_sent);
        if until <= now {
            return self.ask(now, claim, ScriptForm::Sha, true, out);
        }
        let confirming = self.confirm(now, claim, ScriptForm::Sha, out);
        self.hold(now, claim, until, Some(confirming), out);
    }

    /// Sets the whole lease, and asks for the successor.
    fn confirm(&mut self, now: Nanos, claim: Claim, form: ScriptForm, out: &mut Actions) -> Confirming {
        let call = self.calls.fresh();
        let numbers = [self.spec.lease.ttl().0, u64::from(self.wants_heir)];
        out.send(call, SERVER, claim.run(Script::QueueConfirm, form, numbers));
        Confirming { call, sent: now, form }
    }

    pub(super) fn confirmed(&mut self, now: Nanos, mut held: Held, reply: Reply, out: &mut Actions) {
        let Some(confirming) = held.confirming.take() else {
            return;
        };
        let until = self.spec.lease.until(confirming.sent);
        match reply {
            Reply::Int(0) | Reply::Token(_) if now < held.until => {
                let heir = if let Reply::Token(heir) = reply {
                    Some(heir)
                } else {
                    None
                };
                held.told = Some((now, heir));
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
                held.confirming = Some(self.confirm(now, held.claim, ScriptForm::Source, out));
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
    const fn keep_ring(&mut self, rung: bool) {
        if let State::Asking(asking) = &mut self.state {
            asking.rung = rung;
        }
    }

    /// The server has put this client into its queue.
    fn queued(&mut self, now: Nanos, asking: Asking, out: &mut Actions) {
        let claim = asking.claim;
        let end = match self.backoff.wait_to_be_told(now, &self.spec.retry) {
            Next::TryAt(end) => end,
            Next::GiveUp(refusal) => return self.leave(now, claim, Why::Refused(refusal), out),
        };
        if asking.rung {
            return self.ask(now, claim, ScriptForm::Sha, true, out);
        }
        if self.bell.is_none_or(|bell| bell.token != claim.token) {
            self.listen(claim, out);
        }
        let beat_at = now.after(self.until_the_next_beat());
        self.state = State::Waiting(Waiting {
            claim,
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

    pub(super) fn listen(&mut self, claim: Claim, out: &mut Actions) {
        if self.bell.is_some() {
            // A pop of an earlier request still blocks the connection: the new one would wait behind it.
            out.hang_up();
        }
        let call = self.calls.fresh();
        let token = claim.token;
        let command = Command::AwaitBell {
            key: claim.key,
            token,
            timeout_ms: self.alive_ms(),
        };
        out.send_over(Lane::Own, call, SERVER, command);
        self.bell = Some(Bell { call, token });
    }

    pub(super) fn give_back(&mut self, now: Nanos, held: Held, out: &mut Actions) {
        match (held.told, held.confirming) {
            (Some((told, _)), _) => {
                let takes = told.since(held.since);
                // With a quarter to spare, because reply times vary.
                self.wants_heir = now.since(held.since) >= Nanos(takes.0 + takes.0 / 4);
            }
            (None, Some(_)) => self.wants_heir = false,
            // The lock was taken by `queue_take` and not handed over.
            (None, None) => {}
        }
        match held.told {
            Some((_, Some(heir))) if now < held.until => self.hand_over(now, held.claim, heir, out),
            Some(_) | None => self.leave(now, held.claim, Why::Release, out),
        }
    }

    /// Wakes the successor. It owns the lock from then on, and keeps the first place until it has received the wake-up.
    fn hand_over(&mut self, now: Nanos, claim: Claim, heir: Token, out: &mut Actions) {
        let Claim { key, token } = claim;
        let call = self.calls.fresh();
        out.send(call, SERVER, Command::HandOver { key, token, heir });
        out.wake_at(now.after(self.spec.patience));
        self.state = State::Leaving(Leaving {
            claim,
            call,
            sent: now,
            way: Way::ByName,
            listens: false,
            why: Why::Release,
        });
    }

    pub(super) fn leave(&mut self, now: Nanos, claim: Claim, why: Why, out: &mut Actions) {
        let listens = self.listens(claim);
        self.send_leave(now, claim, ScriptForm::Sha, listens, why, out);
    }

    fn listens(&self, claim: Claim) -> bool {
        self.bell.is_some_and(|bell| bell.token == claim.token)
    }

    fn send_leave(&mut self, now: Nanos, claim: Claim, form: ScriptForm, listens: bool, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, self.leaving(claim, form, listens));
        out.wake_at(now.after(self.spec.patience));
        self.state = State::Leaving(Leaving {
            claim,
            call,
            sent: now,
            way: Way::Script(form),
            listens,
            why,
        });
    }

    fn leaving(&self, claim: Claim, form: ScriptForm, listens: bool) -> Command {
        claim.run(
            Script::QueueLeave,
            form,
            [self.handed_over_for().ttl().0, u64::from(listens)],
        )
    }

    pub(super) fn left(&mut self, now: Nanos, leaving: Leaving, reply: Reply, out: &mut Actions) {
        match (reply, leaving.why) {
            (Reply::Ok, _) if leaving.way == Way::ByName => self.settle(Outcome::Released, out),
            // The successor has gone, or the lease has ended: the script tells which.
            (Reply::Error(_), why) if leaving.way == Way::ByName => self.leave(now, leaving.claim, why, out),
            (Reply::Int(0), Why::Release) => self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => self.settle(Outcome::Released, out),
            // 1: the lock had been handed to this client meanwhile, and the script handed it on.
            (Reply::Int(0 | 1), Why::Refused(refusal)) => self.settle(Outcome::Refused(refusal), out),
            (Reply::Int(0 | 1), Why::TooLate) => {
                match self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance) {
                    Next::TryAt(until) => {
                        let key = leaving.claim.key;
                        self.state = State::Pausing(Pausing { key, until });
                        out.wake_at(until);
                    }
                    Next::GiveUp(refusal) => self.settle(Outcome::Refused(refusal), out),
                }
            }
            (Reply::Error(ErrorKind::NoScript), why) if leaving.way == Way::Script(ScriptForm::Sha) => {
                self.send_leave(now, leaving.claim, ScriptForm::Source, leaving.listens, why, out);
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
    pub(super) fn abandon(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        let last_word = self.leaving(claim, ScriptForm::Source, self.listens(claim));
        out.send(self.calls.fresh(), SERVER, last_word);
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
