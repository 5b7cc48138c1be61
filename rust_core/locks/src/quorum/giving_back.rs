//! The release half of the machine: removes from all servers what an attempt or a hold left there.

use super::{Claim, GivingBack, Quorum, State, Why};
use crate::backoff::Next;
use crate::quorum::Stake;
use crate::quorum::seats::{Ask, Back};
use crate::{Actions, CallId, ErrorKind, Nanos, Outcome, Reply, ScriptForm, ServerId};

impl<S: Stake> Quorum<S> {
    pub(super) fn give_back(&mut self, now: Nanos, claim: Claim<S>, why: Why, out: &mut Actions) {
        self.send_give_backs(claim, out);
        let patience = match why {
            Why::Release => self.spec.patience,
            // A dead server must not delay the next attempt.
            Why::Cancel | Why::NoQuorum | Why::TooLate => self.rules.node_timeout(&self.spec),
        };
        let deadline = now.after(patience);
        self.state = State::GivingBack(GivingBack { claim, deadline, why });
        self.go_on(now, out);
        if let State::GivingBack(_) = self.state {
            out.wake_at(deadline);
        }
    }

    pub(super) fn send_give_backs(&mut self, claim: Claim<S>, out: &mut Actions) {
        for server in 0..self.seats.count() {
            let seat = self.seats.of(server);
            let form = match seat.ask {
                // Nothing was sent, so nothing can have been taken.
                Ask::Unasked => continue,
                // Sent as source: a NOSCRIPT may come after a later release has replaced the record of this one.
                Ask::Waiting { .. } | Ask::Silent { .. } | Ask::Lost => ScriptForm::Source,
                Ask::Granted | Ask::Refused | Ask::Failed(_) | Ask::Unclear(_) => ScriptForm::Sha,
            };
            let call = self.calls.fresh();
            seat.gives_back(call, form, claim);
            out.send(call, ServerId(server), claim.stake.give_back(claim.token, form));
        }
    }

    pub(super) fn conclude(&mut self, now: Nanos, back: GivingBack<S>, out: &mut Actions) {
        if let Why::Release = back.why {
            if let Some(outcome) = self.seats.released() {
                self.settle(outcome, out);
            }
            return;
        }
        let Some(left) = self.seats.left() else {
            return; // A server that may hold something of this client still owes a reply.
        };
        let (retry, chance) = (&self.spec.retry, &mut self.chance);
        let next = match back.why {
            // The servers that may still hold something of this client could be a quorum.
            Why::Cancel | Why::NoQuorum | Why::TooLate if left >= self.seats.quorum() => {
                return self.settle(Outcome::Unknown, out);
            }
            Why::Cancel | Why::Release => return self.settle(Outcome::Released, out),
            Why::NoQuorum => self.backoff.after_refusal(now, retry, chance),
            Why::TooLate => self.backoff.after_late_grant(now, retry, chance),
        };
        match next {
            Next::TryAt(until) => {
                let stake = back.claim.stake;
                self.state = State::Pausing { stake, until };
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => {
                let outcome = match back.why {
                    // No other client had the lock: lost replies or errors prevented the quorum.
                    Why::NoQuorum if !self.seats.others_prevail() => Outcome::Unknown,
                    Why::NoQuorum | Why::TooLate | Why::Cancel | Why::Release => Outcome::Refused(refusal),
                };
                self.settle(outcome, out);
            }
        }
    }

    pub(super) fn given_back(&mut self, server: u16, call: CallId, reply: Reply, out: &mut Actions) {
        let seat = self.seats.of(server);
        let owed = seat.owed.take_if(|owed| owed.call == call);
        let back = match (owed, reply) {
            (Some(owed), Reply::Error(ErrorKind::NoScript)) => {
                let again = self.calls.fresh();
                let command = owed.claim.stake.give_back(owed.claim.token, ScriptForm::Source);
                out.send(again, ServerId(server), command);
                Back::Waiting(again)
            }
            (_, Reply::Int(1)) => Back::Deleted,
            (_, Reply::Int(0)) => Back::Absent,
            (_, Reply::Error(kind)) => Back::Failed(kind),
            (
                _,
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
            ) => Back::Failed(ErrorKind::Unexpected),
        };
        // The reply may belong to a release of an earlier attempt; only the reply to the current release is recorded.
        let seat = self.seats.of(server);
        if seat.back == Back::Waiting(call) {
            seat.back = back;
        }
    }
}
