//! What a machine that wraps a `Leased` needs from it.

use crate::auto_renewal::Renewable;
use crate::calls::SERVER;
use crate::grant;
use crate::lease_protocol::{LeaseAttempt, LeaseProtocol};
use crate::{Actions, CallId, Chance, Command, Nanos, Outcome, Spec};

use super::{Grant, Leased, State, Why};

impl<R: LeaseProtocol> Leased<R> {
    /// The current grant.
    pub(crate) const fn held(&self) -> Option<Grant> {
        match self.state {
            State::Held(grant) => Some(grant),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::Releasing(..) => {
                None
            }
        }
    }

    /// Releases a grant that was never reported to the client, because its lease had practically ended when the lock
    /// could be used. Goes on as after any grant that came too late.
    pub(crate) fn reject(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(grant) => self.send_release(now, grant.attempt, Why::TooLate, out),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::Releasing(..) => {
                unreachable!("rejected, but nothing is held")
            }
        }
    }

    /// A call id for a command of the wrapping machine: all calls of a client share one numbering.
    pub(crate) const fn fresh_call(&mut self) -> CallId {
        self.calls.fresh()
    }

    /// Settles now, and releases in case the command that takes was, or will be, carried out.
    pub(crate) fn abandon(&mut self, attempt: LeaseAttempt, outcome: Outcome, out: &mut Actions) {
        self.send_unawaited(self.protocol.release(attempt), out);
        self.settle(outcome, out);
    }

    /// Sends a command whose reply nobody awaits. If the connection still stands, it follows the earlier commands on
    /// it. Sent as source, because nobody could resend it after a NOSCRIPT.
    pub(super) fn send_unawaited(&mut self, command: Command, out: &mut Actions) {
        self.send(command.as_source().unwrap_or(command), out);
    }

    pub(crate) fn settle(&mut self, outcome: Outcome, out: &mut Actions) {
        self.state = State::Idle;
        out.settle(outcome);
    }
}

impl<R: LeaseProtocol> Renewable for Leased<R> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    fn granted(&self) -> Option<grant::Grant> {
        let Grant { attempt, until } = self.held()?;
        let (key, token) = (attempt.key, attempt.token);
        Some(grant::Grant {
            attempt: grant::Attempt { key, token },
            until,
        })
    }

    fn prolong(&mut self, until: Nanos) {
        match &mut self.state {
            State::Held(grant) => grant.until = until,
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::Releasing(..) => {
                unreachable!("prolonged, but nothing is held")
            }
        }
    }

    fn send(&mut self, command: Command, out: &mut Actions) -> CallId {
        let call = self.fresh_call();
        out.send_over(R::CONNECTION, call, SERVER, command);
        call
    }
}
