//! What `fair` does with a reply, and what it sends.

use super::{Asking, BLOCK, Fair, LENGTH, Pausing, Reading, Releasing, State, TicketAttempt, Why};
use crate::backoff::Next;
use crate::calls::{PendingKeyCall, SERVER, TakeEffect};
use crate::{
    Actions, Command, ConnectionKind, EntryId, ErrorKind, Key, Lasts, Nanos, Outcome, Refusal, Reply, ScriptForm,
};

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

    fn send(&mut self, now: Nanos, key: Key, command: Command, out: &mut Actions) -> PendingKeyCall {
        let call = self.calls.fresh();
        out.send(call, SERVER, command);
        out.wake_at(now.after(self.spec.reply_timeout));
        PendingKeyCall { key, call, sent: now }
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
        out.send_over(
            ConnectionKind::Own,
            call,
            SERVER,
            Command::ReadTicket { key, token, timeout_ms },
        );
        let until = now.after(Nanos::from_millis(timeout_ms)).after(self.spec.reply_timeout);
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
        out.wake_at(now.after(self.spec.reply_timeout));
        let attempt = TicketAttempt { key, token, ticket };
        self.state = State::Asking(Asking {
            attempt,
            call,
            sent: now,
        });
    }

    pub(super) fn asked(&mut self, now: Nanos, asking: Asking, reply: Reply, out: &mut Actions) {
        let TicketAttempt { key, ticket, .. } = asking.attempt;
        match reply {
            Reply::Ok => {
                let until = self.spec.lease.until(asking.sent);
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
            Reply::Nil => {
                let next = self.backoff.after_refusal(now, &self.spec.retry, &mut self.chance);
                self.go_on(key, ticket, next, out);
            }
            Reply::Error(kind) => match TakeEffect::of(kind) {
                TakeEffect::Nothing => {
                    self.hand_in(key, ticket, out);
                    self.settle(Outcome::Failed(kind), out);
                }
                TakeEffect::Unknown => self.abandon(asking.attempt, Outcome::Failed(kind), out),
            },
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.abandon(asking.attempt, Outcome::Failed(ErrorKind::Unexpected), out);
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

    pub(super) fn send_release(&mut self, now: Nanos, attempt: TicketAttempt, why: Why, out: &mut Actions) {
        self.delete(now, attempt, ScriptForm::Sha, why, out);
        match why {
            Why::Release | Why::Cancel => {
                self.hand_in(attempt.key, attempt.ticket, out);
                let trim = Command::TrimQueue {
                    key: attempt.key,
                    length: LENGTH,
                };
                out.send(self.calls.fresh(), SERVER, trim);
            }
            Why::TooLate => {} // The next attempt needs the ticket.
        }
    }

    fn delete(&mut self, now: Nanos, attempt: TicketAttempt, form: ScriptForm, why: Why, out: &mut Actions) {
        let call = self.calls.fresh();
        out.send(call, SERVER, attempt.delete(form));
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Releasing(Releasing {
            attempt,
            call,
            sent: now,
            form,
            why,
        });
    }

    pub(super) fn release_answered(&mut self, now: Nanos, releasing: Releasing, reply: Reply, out: &mut Actions) {
        let TicketAttempt { key, ticket, .. } = releasing.attempt;
        let failed = match (reply, releasing.why) {
            (Reply::Int(0), Why::Release) => return self.settle(Outcome::Expired, out),
            (Reply::Int(1), Why::Release) | (Reply::Int(0 | 1), Why::Cancel) => {
                return self.settle(Outcome::Released, out);
            }
            (Reply::Int(0 | 1), Why::TooLate) => {
                let next = self.backoff.after_late_grant(now, &self.spec.retry, &mut self.chance);
                return self.go_on(key, ticket, next, out);
            }
            (Reply::Error(ErrorKind::NoScript), why) if releasing.form == ScriptForm::Sha => {
                return self.delete(now, releasing.attempt, ScriptForm::Source, why, out);
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
        self.hand_in_if_kept(releasing, out);
        self.settle(Outcome::Failed(failed), out);
    }

    /// The current call will get no reply.
    pub(super) fn no_reply(&mut self, out: &mut Actions) {
        let outcome = Outcome::Unknown;
        match self.state {
            State::Reading(Reading { key, own, .. }) => {
                self.drop_ticket(key, own, out);
                self.settle(outcome, out);
            }
            State::Asking(asking) => self.abandon(asking.attempt, outcome, out),
            State::Releasing(releasing) => {
                self.hand_in_if_kept(releasing, out);
                self.settle(outcome, out);
            }
            // At worst a ticket remains whose id nobody knows; some reader takes it, or it is trimmed.
            State::Opening(_) | State::Adding(_) | State::Withdrawing(_) => self.settle(outcome, out),
            State::Idle | State::Pausing(_) | State::Held(_) => unreachable!("no call is under way in these states"),
        }
    }

    fn hand_in_if_kept(&mut self, releasing: Releasing, out: &mut Actions) {
        match releasing.why {
            Why::TooLate => self.hand_in(releasing.attempt.key, releasing.attempt.ticket, out),
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
    fn abandon(&mut self, attempt: TicketAttempt, outcome: Outcome, out: &mut Actions) {
        // Sent as source: nobody waits for the reply, so nobody could resend after a NOSCRIPT.
        out.send(self.calls.fresh(), SERVER, attempt.delete(ScriptForm::Source));
        self.hand_in(attempt.key, attempt.ticket, out);
        self.settle(outcome, out);
    }

    pub(super) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}
