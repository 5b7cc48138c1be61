//! `semaphore`: at most `permits` holders at once. A sorted set holds their tokens, each with the end of its own lease
//! by the server's clock; the script that takes removes expired tokens, then counts.
//!
//! `Leased` has its states. Promises at most that many holders while no work outlives the lease, the server keeps its
//! data and its clock does not jump; a dead holder's permit is free again after one lease, and only its own.

use crate::recipe::{Answer, Claim, Recipe};
use crate::{Command, Reply, Script, ScriptForm};

#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) permits: u32,
}

impl Recipe for Semaphore {
    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        Command::Run {
            script: Script::SemaphoreTake,
            form: ScriptForm::Sha,
            key: claim.key,
            token: claim.token,
            numbers: [u64::from(self.permits), lease_ms],
        }
    }

    fn taken(&self, reply: Reply) -> Answer {
        Answer::of_script(reply)
    }

    fn give_back(&self, claim: Claim) -> Command {
        Command::Run {
            script: Script::SemaphoreGiveBack,
            form: ScriptForm::Sha,
            key: claim.key,
            token: claim.token,
            numbers: [0, 0],
        }
    }
}
