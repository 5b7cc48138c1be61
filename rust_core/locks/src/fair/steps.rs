//! What `fair` does with a reply, and what it sends.

use super::{Asking, BLOCK, Claim, Fair, GivingBack, LENGTH, Pausing, Reading, State, Unanswered, Why};
use crate::backoff::Next;
use crate::calls::{Effect, SERVER};
use crate::{Actions, Command, EntryId, ErrorKind, Key, Lane, Lasts, Nanos, Outcome, Refusal, Reply, ScriptForm};

impl Fair {
    pub(super) fn open(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        let opening = self.send(now, key, Command::CreateQueue { key }, out);
        self.state = State::Opening(opening);
    }

    pub(super) fn opened(&mut self, now: Nanos, key: Key, reply: Reply, out: &mut Actions) {
        match reply {
            // An error without a known code will also be the reply to the next command.
            Reply::Ok | Reply::Error(ErrorKind::BusyGroup | ErrorKind::Other) => {
                self.open = Some(key);
                self.add(now, key, out);
            }
            Reply::Error(kind) => self.settle(Outcome::Failed(kind), out),
            Reply::Nil | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    pub(super) fn add(&mut self, now: Nanos, key: Key, out: &mut Actions) {
        let token = self.chance.token();
        let adding = self.send(now, key, Command::AddTicket { key, token }, out);
        self.state = State::Adding(adding);
    }

    fn send(&mut self, now: Nanos, key: Key, command: Command, out: &mut Actions) -> Unanswered {
        let call = self.calls.fresh();
        out.send(call, SERVER, command);
        out.wake_at(now.after(self.spec.patience));
        Unanswered { key, call, sent: now }
    }

    pub(super) fn added(&mut self, now: Nanos, key: Key, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Entry(own) => {
                // Also for a replacement ticket: the earlier ticket, and its place, are gone.
                out.queued();
                self.start_reading(now, key, own, out);
            }
            Reply::Error(kind) => self.settle(Outcome::Failed(kind), out),
            Reply::Ok | Reply::Nil | Reply::Int(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    /// The request was cancelled while the ticket was being added.
    pub(super) fn withdrawn(&mut self, key: Key, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Entry(own) => self.drop_ticket(key, own, out),
            // There is no ticket, and no lock was asked for.
            Reply::Error(_)
            | Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {}
        }
        self.settle(Outcome::Released, out);
    }

    fn start_reading(&mut self, now: Nanos, key: Key, own: EntryId, out: &mut Actions) {
        let left = self.backoff.left(now, &self.spec.retry).min(BLOCK);
        // `BLOCK 0` would block for ever.
        let timeout_ms = (left.0 / 1_000_000).max(1);
        let call = self.calls.fresh();
        let token = self.reader;
        out.send_over(Lane::Own, call, SERVER, Command::ReadTicket { key, token, timeout_ms });
        let until = now.after(Nanos::from_millis(timeout_ms)).after(self.spec.patience);
        out.wake_at(until);
        self.state = State::Reading(Reading { key, own, call, until });
    }

    pub(super) fn read(&mut self, now: Nanos, reading: Reading, reply: Reply, out: &mut Actions) {
        let Reading { key, own, .. } = reading;
        match reply {
            Reply::Entry(ticket) => self.attempt(now, key, ticket, out),
            // This client's ticket must have been handed to another reader.
            Reply::Nil => {
                if self.backoff.left(now, &self.spec.retry) > Nanos::ZERO {
                    self.add(now, key, out);
                } else {
                    self.drop_ticket(key, own, out);
                    self.settle(Outcome::Refused(Refusal::TimedOut), out);
                }
            }
            // `NOGROUP`, or the stream was deleted while the read blocked.
            Reply::Error(ErrorKind::Other) if !self.reopened => {
                self.reopened = true;
                self.open = None;
                self.drop_ticket(key, own, out);
                self.open(now, key, out);
            }
            Reply::Error(kind) => {
                self.open = None;
                self.drop_ticket(key, own, out);
                self.settle(Outcome::Failed(kind), out);
            }
            Reply::Ok | Reply::Int(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.drop_ticket(key, own, out);
                self.settle(Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    pub(super) fn attempt(&mut self, now: Nanos, key: Key, ticket: EntryId, out: &mut Actions) {
        self.backoff.attempt();
        let token = self.chance.token();
        let lease_ms = self.spec.lease.ttl().0;
        let call = self.calls.fresh();
        out.send(call, SERVER, Command::SetNxPx { key, token, lease_ms });
        out.wake_at(now.after(self.spec.patience));
        let claim = Claim { key, token, ticket };
        self.state = State::Asking(Asking { claim, call, sent: now });
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        let Claim { key, ticket, .. } = asking.claim;
        match reply {
            Reply::Ok => {
                let until = self.spec.lease.until(asking.sent);
                if until > now {
                    self.state = State::Held(asking.claim);
                    out.settle(Outcome::Held {
                        lasts: Lasts::Until(until),
                        fence: None,
                    });
                } else {
                    self.give_back(now, asking.claim, Why::TooLate, out);
                }
            }
            Reply::Nil => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(key, ticket, next, out);
            }
            Reply::Error(kind) => match Effect::of(kind) {
                Effect::Nothing => {
                    self.hand_in(key, ticket, out);
                    self.settle(Outcome::Failed(kind), out);
                }
                Effect::Unknown => self.abandon(asking.claim, Outcome::Failed(kind), out),
            },
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.abandon(asking.claim, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    fn go_on(&mut self, key: Key, ticket: EntryId, next: Next, out: &mut Actions) {
        match next {
            Next::TryAt(until) => {
                self.state = State::Pausing(Pausing { key, ticket, until });
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => {
                self.hand_in(key, ticket, out);
                self.settle(Outcome::Refused(refusal), out);
            }
        }
    }

    pub(super) fn give_back(&mut self, now: Nanos, claim: Claim, why: Why, out: &mut Actions) {
        self.delete(now, claim, ScriptForm::Sha, why, out);
        match why {
            Why::Release | Why::Cancel => {
                self.hand_in(claim.key, claim.ticket, out);
                let trim = Command::TrimQueue {
                    key: claim.key,
                    length: LENGTH,
                };
                out.send(self.calls.fresh(), SERVER, trim);
            }
            Why::TooLate => {} // The next attempt needs the ticket.
        }
    }

    fn delete(&mut self, now: Nanos, claim: Claim, form: ScriptForm, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, claim.delete(form));
        out.wake_at(now.after(self.spec.patience));
        self.state = State::GivingBack(GivingBack {
            claim,
            call,
            sent: now,
            form,
            why,
        });
    }

    pub(super) fn given_back(&mut self, now: Nanos, back: GivingBack, reply: Reply, out: &mut Actions) {
        let Claim { key, ticket, .. } = back.claim;
        let failed = match (reply, back.why) {
            (Reply::Int(0), Why::Release) => return self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => {
                return self.settle(Outcome::Released, out);
            }
            (Reply::Int(0 | 1), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                return self.go_on(key, ticket, next, out);
            }
            (Reply::Error(ErrorKind::NoScript), why) if back.form == ScriptForm::Sha => {
                return self.delete(now, back.claim, ScriptForm::Source, why, out);
            }
            (Reply::Error(kind), _) => kind,
            (
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
                _,
            ) => ErrorKind::Unexpected,
        };
        // If the key still exists, its lease frees it.
        self.hand_in_if_kept(back, out);
        self.settle(Outcome::Failed(failed), out);
    }

    /// The current call will get no reply.
    pub(super) fn unanswered(&mut self, out: &mut Actions) {
        let outcome = Outcome::Unknown;
        match self.state {
            State::Reading(Reading { key, own, .. }) => {
                self.drop_ticket(key, own, out);
                self.settle(outcome, out);
            }
            State::Asking(asking) => self.abandon(asking.claim, outcome, out),
            State::GivingBack(back) => {
                self.hand_in_if_kept(back, out);
                self.settle(outcome, out);
            }
            // At worst a ticket remains whose id nobody knows; some reader takes it, or it is trimmed.
            State::Opening(_) | State::Adding(_) | State::Withdrawing(_) => self.settle(outcome, out),
            State::Idle | State::Pausing(_) | State::Held(_) => unreachable!("no call of these is waited for"),
        }
    }

    fn hand_in_if_kept(&mut self, back: GivingBack, out: &mut Actions) {
        match back.why {
            Why::TooLate => self.hand_in(back.claim.key, back.claim.ticket, out),
            Why::Release | Why::Cancel => {} // The ticket was handed in with the compare-and-delete.
        }
    }

    /// Acknowledges and deletes the ticket that was read. Nobody waits for the replies: a failure leaves a pending
    /// ticket, which harms nobody.
    pub(super) fn hand_in(&mut self, key: Key, ticket: EntryId, out: &mut Actions) {
        let entry = ticket;
        out.send(self.calls.fresh(), SERVER, Command::AckTicket { key, entry });
        self.drop_ticket(key, ticket, out);
    }

    pub(super) fn drop_ticket(&mut self, key: Key, entry: EntryId, out: &mut Actions) {
        out.send(self.calls.fresh(), SERVER, Command::DropTicket { key, entry });
    }

    /// Settles now, and sends a release in case the `SET` was, or will be, carried out. If the connection still stands,
    /// the release follows the `SET` on it.
    fn abandon(&mut self, claim: Claim, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        out.send(self.calls.fresh(), SERVER, claim.delete(ScriptForm::Source));
        self.hand_in(claim.key, claim.ticket, out);
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}
