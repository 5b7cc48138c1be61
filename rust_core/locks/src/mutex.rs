//! `mutex`: takes with `SET key token NX PX ttl`, releases with a compare-and-delete.
//!
//! `Shell` has its states and its promises: exclusion while no work outlives the lease and the server keeps its data;
//! a dead holder's lock is free again after one lease.

use crate::shell::{LeaseStep, Lock, Next, Turn};
use crate::{Command, Reply, Script, Token, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "mutex",
    scripts: &[Script::CompareAndDelete],
    ..Traits::LEASE
};

/// Zero-sized, so that a client of a mutex stays as small as possible.
#[derive(Debug)]
pub(crate) struct Mutex;

impl Lock for Mutex {
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
}
