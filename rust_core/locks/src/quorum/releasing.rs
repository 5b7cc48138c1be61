//! The release half of the lock: removes from all servers what an attempt or a hold left there.

use super::{Attempt, Quorum, QuorumAttempt, Step, Why};
use crate::quorum::Resource;
use crate::quorum::server_states::{ReleaseState, TakeState};
use crate::script_form::PendingScript;
use crate::shell::{Ending, Next, Turn};
use crate::{CallId, ConnectionKind, Reply, ServerId};

impl<S: Resource> Quorum<S> {
    pub(super) fn send_release(&mut self, why: Why, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.send_releases(turn);
        let timeout = match why {
            Why::Release => turn.spec().reply_timeout,
            // A dead server must not delay the next attempt.
            Why::Cancel | Why::NoQuorum | Why::TooLate => self.rules.node_timeout(turn.spec()),
        };
        match self.conclude(why, turn) {
            Next::Stay => Next::Await(Step::Release(why), turn.now.after(timeout)),
            next => next,
        }
    }

    pub(super) fn send_releases(&mut self, turn: &mut Turn<'_, Self>) {
        let (resource, token) = (self.resource, turn.owner());
        let command = resource.release(token);
        for server in 0..self.servers.count() {
            let state = self.servers.of(server);
            let command = match state.take {
                // Nothing was sent, so nothing can have been taken.
                TakeState::Unasked => continue,
                // Sent as source: a NOSCRIPT may come after a later release has replaced the record of this one.
                TakeState::Waiting(_) | TakeState::Silent(_) | TakeState::Lost => command.unawaited(),
                TakeState::Granted | TakeState::Refused | TakeState::Failed(_) | TakeState::Unclear(_) => command,
            };
            let call = turn.send_to(ServerId(server), ConnectionKind::SharedByClients, command);
            state.releases(
                call,
                PendingScript::new(call, command),
                QuorumAttempt { resource, token },
            );
        }
    }

    /// Settles, or goes on, if the replies to the releases decide that; otherwise waits for more of them.
    pub(super) fn conclude(&mut self, why: Why, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if why == Why::Release {
            return self.servers.released().map_or(Next::Stay, Next::Settle);
        }
        if why == Why::NoQuorum {
            self.count_no_quorum();
        }
        // Who gives up wants to know what is left. Another attempt needs no reply of a server that was silent, and whose
        // release is sent: it would be silent again.
        let left = match why {
            Why::Cancel | Why::Release => self.servers.left(),
            Why::NoQuorum | Why::TooLate => self.servers.left_for_the_next(),
        };
        let Some(left) = left else {
            return Next::Stay; // A server that may hold something of this client still owes a reply.
        };
        let next = match why {
            // The servers that may still hold something of this client could be a quorum.
            Why::Cancel | Why::NoQuorum | Why::TooLate if left >= self.servers.quorum() => {
                return Next::Settle(Ending::Unknown);
            }
            Why::Cancel | Why::Release => return Next::Settle(Ending::Released),
            Why::NoQuorum => turn.after_refusal(),
            Why::TooLate => turn.after_late_grant(),
        };
        match (next, why) {
            (Attempt::TryAt(until), _) => Next::Pause(until),
            // No other client had the lock: lost replies or errors prevented the quorum.
            (Attempt::GiveUp(_), Why::NoQuorum) if !self.servers.others_prevail() => Next::Settle(Ending::Unknown),
            (Attempt::GiveUp(refusal), _) => Next::Settle(Ending::Refused(refusal)),
        }
    }

    pub(super) fn release_answered(&mut self, server: u16, call: CallId, reply: Reply, turn: &mut Turn<'_, Self>) {
        let unconfirmed = self
            .servers
            .of(server)
            .unconfirmed
            .take_if(|release| release.script.is(call));
        let source = unconfirmed.and_then(|release| {
            let QuorumAttempt { resource, token } = release.attempt;
            release.script.source_after(reply, || resource.release(token))
        });
        let release = match (source, reply) {
            (Some(source), _) => {
                ReleaseState::Waiting(turn.send_to(ServerId(server), ConnectionKind::SharedByClients, source))
            }
            (None, Reply::Int(1)) => ReleaseState::Deleted,
            (None, Reply::Int(0)) => ReleaseState::Absent,
            (None, other) => ReleaseState::Failed(other.failure()),
        };
        // The reply may belong to a release of an earlier attempt; only the reply to the current release is recorded.
        let state = self.servers.of(server);
        if state.release == ReleaseState::Waiting(call) {
            state.release = release;
        }
    }
}
