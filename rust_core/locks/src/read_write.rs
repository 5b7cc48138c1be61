//! `read-write`: many readers, or one writer. The writer's token is the lock's key; the readers are a sorted set, each
//! with the end of its own lease by the server's clock.
//!
//! With `prefer: writers` a writer that is refused leaves a claim, and new readers wait while one stands. It is made anew
//! by each attempt, taken away by the grant or by giving up, and ends by itself: a dead writer holds readers up no longer
//! than the longest pause of the retry policy and the patience, plus 1 ms.
//!
//! Its states are those of `Leased`. Promises exclusion between a writer and everybody else while nobody outlives the
//! lease, the server keeps its data and its clock does not jump; a dead holder frees its own share only, after one
//! lease. Does not promise order among writers, nor, with `prefer: readers`, that a writer is ever served.

use crate::recipe::{Answer, Claim, Recipe};
use crate::{Command, Mode, Nanos, Reply, Script, ScriptForm, Spec};

/// Who goes first when both wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    Readers,
    Writers,
}

#[derive(Debug)]
pub(crate) struct ReadWrite {
    /// How long a waiting writer's claim lasts; 0: it makes none.
    claim_ms: u64,
}

impl ReadWrite {
    pub(crate) fn new(prefer: Prefer, spec: &Spec) -> Self {
        let claim_ms = match (prefer, spec.retry.longest_pause()) {
            // Who does not try again claims nothing.
            (Prefer::Readers, _) | (Prefer::Writers, None) => 0,
            // It has to last from one attempt to the next: the answer, the pause, and the way.
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

/// Rounded up, and no longer than a lease: what a server takes.
fn to_millis(length: Nanos) -> u64 {
    length.0.div_ceil(1_000_000).min(crate::Lease::LONGEST.0)
}

impl Recipe for ReadWrite {
    const SHARES: bool = true;
    /// A waiting writer's claim stands under its token.
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
