//! What a machine that wraps a `Leased` needs from it.

use crate::calls::SERVER;
use crate::claim;
use crate::kept::Renewable;
use crate::recipe::Recipe;
use crate::{Actions, CallId, Chance, Command, Nanos, Spec};

use super::{Grant, Leased, State, Why};

impl<R: Recipe> Leased<R> {
    /// The current grant.
    pub(crate) const fn held(&self) -> Option<Grant> {
        match self.state {
            State::Held(grant) => Some(grant),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                None
            }
        }
    }

    /// Releases a grant that was never reported to the client, because its lease had practically ended when the lock
    /// could be used. Goes on as after any grant that came too late.
    pub(crate) fn reject(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(grant) => self.give_back(now, grant.claim, Why::TooLate, out),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                unreachable!("rejected, but nothing is held")
            }
        }
    }

    /// A call id for a command of the wrapping machine: all calls of a client share one numbering.
    pub(crate) const fn fresh_call(&mut self) -> CallId {
        self.calls.fresh()
    }
}

impl<R: Recipe> Renewable for Leased<R> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    fn granted(&self) -> Option<claim::Grant> {
        let Grant { claim, until } = self.held()?;
        let (key, token) = (claim.key, claim.token);
        Some(claim::Grant {
            claim: claim::Claim { key, token },
            until,
        })
    }

    fn prolong(&mut self, until: Nanos) {
        match &mut self.state {
            State::Held(grant) => grant.until = until,
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                unreachable!("prolonged, but nothing is held")
            }
        }
    }

    fn send(&mut self, command: Command, out: &mut Actions) -> CallId {
        let call = self.fresh_call();
        out.send_over(R::LANE, call, SERVER, command);
        call
    }
}
