//! `fenced`: a lock that numbers its grants. One script takes the key and increments a counter that never expires. The
//! number comes with the grant, for a resource that refuses a client with an older number.
//!
//! `Leased` has its states, and `AutoRenewal` those of a renewed hold. Promises what they do, and fences that grow with
//! every grant of a key while the counter survives. If the counter cannot be incremented, nothing is taken.

use std::sync::Arc;

use crate::kept::Kept;
use crate::leased::Leased;
use crate::recipe::{Answer, Claim, Recipe};
use crate::{Chance, Command, Fence, Nanos, Reply, Script, ScriptForm, Spec};

#[derive(Debug)]
pub(crate) struct Fenced;

/// Renewed three times per lease, or not at all.
pub(crate) fn fenced(spec: Arc<Spec>, chance: Chance, renews: bool) -> Kept<Leased<Fenced>> {
    Kept::new(Leased::new(spec, chance, Fenced), renews.then_some(3), Nanos::NEVER)
}

impl Recipe for Fenced {
    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        Command::Run {
            script: Script::FencedTake,
            form: ScriptForm::Sha,
            key: claim.key,
            token: claim.token,
            numbers: [lease_ms, 0],
        }
    }

    fn taken(&self, reply: Reply) -> Answer {
        match reply {
            Reply::Int(count) => match u64::try_from(count).ok().and_then(std::num::NonZeroU64::new) {
                Some(fence) => Answer::Granted(Some(Fence(fence))),
                // Another program has written the counter.
                None => Answer::Odd,
            },
            Reply::Nil => Answer::Busy,
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Answer::Odd
            }
        }
    }

    fn give_back(&self, claim: Claim) -> Command {
        claim.compare_and_delete()
    }
}
