//! `fenced`: a lock that numbers its grants. One script takes the key and increments a counter that never expires. The
//! number comes with the grant, for a resource that refuses a client with an older number.
//!
//! `Shell` has its states, and `Renewal` those of a renewed hold. Promises what they do, and fences that grow with
//! every grant of a key while the counter survives. If the counter cannot be incremented, nothing is taken.

use crate::args::Args;
use crate::renewal::Renewal;
use crate::shell::{LeaseStep, Lock, Next, Turn};
use crate::{Command, Reply, Script, SpecError, Strategy, Token, Traits};

pub(crate) const fn traits(renews: bool) -> Traits {
    Traits {
        name: "fenced",
        fences: true,
        scripts: if renews {
            &[Script::FencedTake, Script::CompareAndDelete, Script::CompareAndExpire]
        } else {
            &[Script::FencedTake, Script::CompareAndDelete]
        },
        ..Traits::LEASE
    }
}

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let renews = args.choice("renew", &[("ttl/3", true), ("off", false)])?;
    Ok(Strategy::Fenced { renews })
}

#[derive(Debug)]
pub(crate) struct Fenced {
    pub(crate) renewal: Option<Renewal>,
}

impl Lock for Fenced {
    type Step = LeaseStep;
    type Owner = Token;
    const FIRST: LeaseStep = LeaseStep::Take;
    const UNDO: LeaseStep = LeaseStep::Release;

    fn command(&self, step: LeaseStep, turn: &Turn<'_, Self>) -> Command {
        match step {
            LeaseStep::Take => turn.script(Script::FencedTake, [turn.lease_ms(), 0]),
            LeaseStep::Release => turn.compare_and_delete(),
        }
    }

    fn answer(&mut self, _step: LeaseStep, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        Next::of_fence(reply)
    }

    fn renewal(&mut self) -> Option<&mut Renewal> {
        self.renewal.as_mut()
    }
}
