//! The release half of the machine: removes from all servers what an attempt or a hold left there.

use super::{Quorum, QuorumAttempt, Releasing, State, Why};
use crate::backoff::Next;
use crate::quorum::Resource;
use crate::quorum::server_states::{ReleaseState, TakeState};
use crate::{Actions, CallId, ErrorKind, Nanos, Outcome, Reply, ScriptForm, ServerId};

impl<S: Resource> Quorum<S> {
    pub(super) fn send_release(&mut self, now: Nanos, attempt: QuorumAttempt<S>, why: Why, out: &mut Actions) {
        self.send_releases(attempt, out);
        let reply_timeout = match why {
            Why::Release => self.spec.reply_timeout,
            // A dead server must not delay the next attempt.
            Why::Cancel | Why::NoQuorum | Why::TooLate => self.rules.node_timeout(&self.spec),
        };
        let deadline = now.after(reply_timeout);
        self.state = State::Releasing(Releasing { attempt, deadline, why });
        self.go_on(now, out);
        if let State::Releasing(_) = self.state {
            out.wake_at(deadline);
        }
    }

    pub(super) fn send_releases(&mut self, attempt: QuorumAttempt<S>, out: &mut Actions) {
        for server in 0..self.servers.count() {
            let state = self.servers.of(server);
            let form = match state.take {
                // Nothing was sent, so nothing can have been taken.
                TakeState::Unasked => continue,
                // Sent as source: a NOSCRIPT may come after a later release has replaced the record of this one.
                TakeState::Waiting { .. } | TakeState::Silent { .. } | TakeState::Lost => ScriptForm::Source,
                TakeState::Granted | TakeState::Refused | TakeState::Failed(_) | TakeState::Unclear(_) => {
                    ScriptForm::Sha
                }
            };
            let call = self.calls.fresh();
            state.releases(call, form, attempt);
            out.send(call, ServerId(server), attempt.resource.release(attempt.token, form));
        }
    }

    pub(super) fn conclude(&mut self, now: Nanos, releasing: Releasing<S>, out: &mut Actions) {
        if let Why::Release = releasing.why {
            if let Some(outcome) = self.servers.released() {
                self.settle(outcome, out);
            }
            return;
        }
        let Some(left) = self.servers.left() else {
            return; // A server that may hold something of this client still owes a reply.
        };
        let (retry, chance) = (&self.spec.retry, &mut self.chance);
        let next = match releasing.why {
            // The servers that may still hold something of this client could be a quorum.
            Why::Cancel | Why::NoQuorum | Why::TooLate if left >= self.servers.quorum() => {
                return self.settle(Outcome::Unknown, out);
            }
            Why::Cancel | Why::Release => return self.settle(Outcome::Released, out),
            Why::NoQuorum => self.backoff.after_refusal(now, retry, chance),
            Why::TooLate => self.backoff.after_late_grant(now, retry, chance),
        };
        match next {
            Next::TryAt(until) => {
                let resource = releasing.attempt.resource;
                self.state = State::Pausing { resource, until };
                out.wake_at(until);
            }
            Next::GiveUp(refusal) => {
                let outcome = match releasing.why {
                    // No other client had the lock: lost replies or errors prevented the quorum.
                    Why::NoQuorum if !self.servers.others_prevail() => Outcome::Unknown,
                    Why::NoQuorum | Why::TooLate | Why::Cancel | Why::Release => Outcome::Refused(refusal),
                };
                self.settle(outcome, out);
            }
        }
    }

    pub(super) fn release_answered(&mut self, server: u16, call: CallId, reply: Reply, out: &mut Actions) {
        let state = self.servers.of(server);
        let unconfirmed = state.unconfirmed.take_if(|unconfirmed| unconfirmed.call == call);
        let release = match (unconfirmed, reply) {
            (Some(unconfirmed), Reply::Error(ErrorKind::NoScript)) => {
                let again = self.calls.fresh();
                let command = unconfirmed
                    .attempt
                    .resource
                    .release(unconfirmed.attempt.token, ScriptForm::Source);
                out.send(again, ServerId(server), command);
                ReleaseState::Waiting(again)
            }
            (_, Reply::Int(1)) => ReleaseState::Deleted,
            (_, Reply::Int(0)) => ReleaseState::Absent,
            (_, Reply::Error(kind)) => ReleaseState::Failed(kind),
            (
                _,
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
            ) => ReleaseState::Failed(ErrorKind::Unexpected),
        };
        // The reply may belong to a release of an earlier attempt; only the reply to the current release is recorded.
        let state = self.servers.of(server);
        if state.release == ReleaseState::Waiting(call) {
            state.release = release;
        }
    }
}
