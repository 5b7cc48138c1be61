//! `semaphore`: at most `permits` holders at once. A sorted set holds their tokens, each with the end of its own lease
//! by the server's clock; the script that takes removes expired tokens, then counts.
//!
//! `Leased` has its states. Promises at most that many holders while no work outlives the lease, the server keeps its
//! data and its clock does not jump; a dead holder's permit is free again after one lease, and only its own.

use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, TakeReply};
use crate::{Command, Reply, Script, ScriptForm};

#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) permits: u32,
}

impl LeaseProtocol for Semaphore {
    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        Command::Run {
            script: Script::SemaphoreTake,
            form: ScriptForm::Sha,
            key: attempt.key,
            token: attempt.token,
            numbers: [u64::from(self.permits), lease_ms],
        }
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        TakeReply::of_script(reply)
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        Command::Run {
            script: Script::SemaphoreRelease,
            form: ScriptForm::Sha,
            key: attempt.key,
            token: attempt.token,
            numbers: [0, 0],
        }
    }
}
