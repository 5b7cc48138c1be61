//! `watchdog`: a `mutex` whose lease is renewed while it is held, by a script that compares the token before it sets
//! the expiry.
//!
//! `Shell` has its states while it is taken and released, `Renewal` those while it is held. Promises what they do:
//! exclusion also for work that outlives the first lease, as long as renewals get replies; a dead holder's lock is free
//! again after one lease. `max_hold` limits the renewals: then the lock is free at the latest one lease after the
//! longest hold, even if its holder lives.

use crate::args::Args;
use crate::renewal::Renewal;
use crate::shell::{LeaseStep, Lock, Next, Turn};
use crate::{Command, Lease, Millis, Reply, Script, SpecError, Strategy, Token, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "watchdog",
    scripts: &[Script::CompareAndDelete, Script::CompareAndExpire],
    ..Traits::LEASE
};

/// `renewals_per_ttl`: how many renewals fall into one lease. `max_hold_ms`: see `Strategy::Watchdog`.
pub(crate) fn with(renewals_per_ttl: u32, args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    Ok(Strategy::Watchdog {
        renewals_per_ttl: args.count("renewals_per_ttl", renewals_per_ttl.into(), 2, 20)? as u32,
        max_hold: Some(Millis(args.count("max_hold_ms", 0, 0, Lease::LONGEST.0)?)).filter(|most| most.0 > 0),
    })
}

#[derive(Debug)]
pub(crate) struct Watchdog {
    pub(crate) renewal: Renewal,
}

impl Lock for Watchdog {
    type Step = LeaseStep;
    type Owner = Token;
    const FIRST: LeaseStep = LeaseStep::Take;
    const UNDO: LeaseStep = LeaseStep::Release;

    fn command(&self, step: LeaseStep, turn: &Turn<'_, Self>) -> Command {
        match step {
            LeaseStep::Take => turn.set_if_absent(),
            LeaseStep::Release => turn.compare_and_delete(),
        }
    }

    fn answer(&mut self, _step: LeaseStep, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        Next::of_set(reply)
    }

    fn renewal(&mut self) -> Option<&mut Renewal> {
        Some(&mut self.renewal)
    }
}
