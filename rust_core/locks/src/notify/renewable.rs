//! What the renewals need from `notify`.

use super::{Notify, State};
use crate::auto_renewal::Renewable;
use crate::calls::SERVER;
use crate::grant::Grant;
use crate::{Actions, CallId, Chance, Command, Nanos, Spec};

impl Renewable for Notify {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    fn granted(&self) -> Option<Grant> {
        match self.state {
            State::Held(grant) => Some(grant),
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Releasing(_) => None,
        }
    }

    fn prolong(&mut self, until: Nanos) {
        match &mut self.state {
            State::Held(grant) => grant.until = until,
            State::Idle
            | State::Asking(_)
            | State::Subscribing(_)
            | State::Listening(_)
            | State::Yielding(_)
            | State::Pausing(_)
            | State::Releasing(_) => unreachable!("prolonged, but nothing is held"),
        }
    }

    fn send(&mut self, command: Command, out: &mut Actions) -> CallId {
        let call = self.calls.fresh();
        out.send(call, SERVER, command);
        call
    }
}
