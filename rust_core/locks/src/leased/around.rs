//! What a machine that holds more than a lease, or keeps it, asks of the lock within it.

use crate::calls::SERVER;
use crate::claim;
use crate::kept::Renewable;
use crate::recipe::Recipe;
use crate::{Actions, CallId, Chance, Command, Nanos, Spec};

use super::{Grant, Leased, State, Why};

impl<R: Recipe> Leased<R> {
    /// What is held.
    pub(crate) const fn held(&self) -> Option<Grant> {
        match self.state {
            State::Held(grant) => Some(grant),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                None
            }
        }
    }

    /// Gives back what is held and that nobody was told of: its lease was as good as over when it could be used. Then
    /// goes on as after any grant that came too late.
    pub(crate) fn reject(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(grant) => self.give_back(now, grant.claim, Why::TooLate, out),
            State::Idle | State::Asking(..) | State::Withdrawing(..) | State::Pausing(..) | State::GivingBack(..) => {
                unreachable!("rejected, but nothing is held")
            }
        }
    }

    /// For a command that it knows nothing of: the calls of one client have one numbering.
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
