//! `fenced`: a lock that numbers its grants. One script takes the key and increments a counter that never expires. The
//! number comes with the grant, for a resource that refuses a client with an older number.
//!
//! `Leased` has its states, and `AutoRenewal` those of a renewed hold. Promises what they do, and fences that grow with
//! every grant of a key while the counter survives. If the counter cannot be incremented, nothing is taken.

use std::sync::Arc;

use crate::auto_renewal::AutoRenewal;
use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, TakeReply};
use crate::leased::Leased;
use crate::{Chance, Command, Fence, Nanos, Reply, Script, ScriptForm, Spec};

#[derive(Debug)]
pub(crate) struct Fenced;

/// Renewed three times per lease, or not at all.
pub(crate) fn fenced(spec: Arc<Spec>, chance: Chance, renews: bool) -> AutoRenewal<Leased<Fenced>> {
    AutoRenewal::new(Leased::new(spec, chance, Fenced), renews.then_some(3), Nanos::NEVER)
}

impl LeaseProtocol for Fenced {
    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        Command::Run {
            script: Script::FencedTake,
            form: ScriptForm::Sha,
            key: attempt.key,
            token: attempt.token,
            numbers: [lease_ms, 0],
        }
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        match reply {
            Reply::Int(count) => match u64::try_from(count).ok().and_then(std::num::NonZeroU64::new) {
                Some(fence) => TakeReply::Granted(Some(Fence(fence))),
                // Another program has written the counter.
                None => TakeReply::Unexpected,
            },
            Reply::Nil => TakeReply::Busy,
            Reply::Ok | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                TakeReply::Unexpected
            }
        }
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        attempt.compare_and_delete()
    }
}
