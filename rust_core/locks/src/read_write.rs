//! `read-write`: many readers, or one writer. The writer's token is the value of the lock's key; the readers are a
//! sorted set, each with the end of its own lease by the server's clock.
//!
//! With `prefer: writers` a refused writer leaves a reservation, and new readers wait while one exists. Each attempt
//! renews the reservation; the grant or giving up removes it; and it expires by itself: a dead writer delays readers
//! for at most the longest pause of the retry policy plus the reply timeout plus 1 ms.
//!
//! `Leased` has its states. Promises exclusion between a writer and all others while no work outlives the lease, the
//! server keeps its data and its clock does not jump; a dead holder frees only its own share, after one lease. Does not
//! promise order among writers, nor, with `prefer: readers`, that a writer is ever served.

use crate::recipe::{Answer, Claim, Recipe};
use crate::{Command, Mode, Nanos, Reply, Script, ScriptForm, Spec};

/// Which clients go first when readers and writers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    Readers,
    Writers,
}

#[derive(Debug)]
pub(crate) struct ReadWrite {
    /// How long a waiting writer's reservation lasts; 0: writers make none.
    claim_ms: u64,
}

impl ReadWrite {
    pub(crate) fn new(prefer: Prefer, spec: &Spec) -> Self {
        let claim_ms = match (prefer, spec.retry.longest_pause()) {
            // A client that does not try again reserves nothing.
            (Prefer::Readers, _) | (Prefer::Writers, None) => 0,
            // The reservation has to last from one attempt to the next: the reply timeout and the pause.
            (Prefer::Writers, Some(pause)) => to_millis(pause.after(spec.patience)),
        };
        Self { claim_ms }
    }

    fn run(script: Script, claim: Claim, numbers: [u64; 2]) -> Command {
        Command::Run {
            script,
            form: ScriptForm::Sha,
            key: claim.key,
            token: claim.token,
            numbers,
        }
    }
}

/// Rounded up, and at most the longest lease that a server accepts.
fn to_millis(length: Nanos) -> u64 {
    length.0.div_ceil(1_000_000).min(crate::Lease::LONGEST.0)
}

impl Recipe for ReadWrite {
    const SHARES: bool = true;
    /// The server stores a waiting writer's reservation under its token.
    const ONE_TOKEN: bool = true;

    fn take(&self, claim: Claim, lease_ms: u64) -> Command {
        match claim.mode {
            Mode::Shared => Self::run(Script::ReadTake, claim, [lease_ms, 0]),
            Mode::Exclusive => Self::run(Script::WriteTake, claim, [lease_ms, self.claim_ms]),
        }
    }

    fn taken(&self, reply: Reply) -> Answer {
        Answer::of_script(reply)
    }

    fn give_back(&self, claim: Claim) -> Command {
        match claim.mode {
            Mode::Shared => Self::run(Script::ReadGiveBack, claim, [0, 0]),
            Mode::Exclusive => Self::run(Script::WriteGiveBack, claim, [0, 0]),
        }
    }

    fn forget(&self, claim: Claim) -> Option<Command> {
        match claim.mode {
            Mode::Exclusive if self.claim_ms > 0 => Some(self.give_back(claim)),
            Mode::Exclusive | Mode::Shared => None,
        }
    }
}
