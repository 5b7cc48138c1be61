//! `semaphore`: at most `permits` holders at once. A sorted set holds their tokens, each with the end of its own lease
//! by the server's clock; the script that takes removes expired tokens, then counts.
//!
//! `Shell` has its states. Promises at most that many holders while no work outlives the lease, the server keeps its
//! data and its clock does not jump; a dead holder's permit is free again after one lease, and only its own.

use crate::args::Args;
use crate::shell::{LeaseStep, Lock, Next, Turn};
use crate::{Command, Reply, Script, SpecError, Strategy, Token, Traits};

pub(crate) const fn traits(permits: u32) -> Traits {
    Traits {
        name: "semaphore",
        permits,
        scripts: &[Script::SemaphoreTake, Script::SemaphoreRelease],
        ..Traits::LEASE
    }
}

pub(crate) fn with(permits: u32, args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let permits = args.count("permits", permits.into(), 1, 1_000)? as u32;
    Ok(Strategy::Semaphore { permits })
}

#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) permits: u32,
}

impl Lock for Semaphore {
    type Step = LeaseStep;
    type Owner = Token;
    const FIRST: LeaseStep = LeaseStep::Take;
    const UNDO: LeaseStep = LeaseStep::Release;

    fn command(&self, step: LeaseStep, turn: &Turn<'_, Self>) -> Command {
        match step {
            LeaseStep::Take => turn.script(Script::SemaphoreTake, [self.permits.into(), turn.lease_ms()]),
            LeaseStep::Release => turn.script(Script::SemaphoreRelease, [0, 0]),
        }
    }

    fn answer(&mut self, _step: LeaseStep, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        Next::of_script(reply)
    }
}
