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

use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, TakeReply};
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
    reservation_ms: u64,
}

impl ReadWrite {
    pub(crate) fn new(prefer: Prefer, spec: &Spec) -> Self {
        let reservation_ms = match (prefer, spec.retry.longest_pause()) {
            // A client that does not try again reserves nothing.
            (Prefer::Readers, _) | (Prefer::Writers, None) => 0,
            // The reservation has to last from one attempt to the next: the reply timeout and the pause.
            (Prefer::Writers, Some(pause)) => to_millis(pause.after(spec.reply_timeout)),
        };
        Self { reservation_ms }
    }

    fn run(script: Script, attempt: LeaseAttempt, numbers: [u64; 2]) -> Command {
        Command::Run {
            script,
            form: ScriptForm::Sha,
            key: attempt.key,
            token: attempt.token,
            numbers,
        }
    }
}

/// Rounded up, and at most the longest lease that a server accepts.
fn to_millis(length: Nanos) -> u64 {
    length.0.div_ceil(1_000_000).min(crate::Lease::LONGEST.0)
}

impl LeaseProtocol for ReadWrite {
    const SHARES: bool = true;
    /// The server stores a waiting writer's reservation under its token.
    const ONE_TOKEN: bool = true;

    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        match attempt.mode {
            Mode::Shared => Self::run(Script::ReadTake, attempt, [lease_ms, 0]),
            Mode::Exclusive => Self::run(Script::WriteTake, attempt, [lease_ms, self.reservation_ms]),
        }
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        TakeReply::of_script(reply)
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        match attempt.mode {
            Mode::Shared => Self::run(Script::ReadRelease, attempt, [0, 0]),
            Mode::Exclusive => Self::run(Script::WriteRelease, attempt, [0, 0]),
        }
    }

    fn clean_up(&self, attempt: LeaseAttempt) -> Option<Command> {
        match attempt.mode {
            Mode::Exclusive if self.reservation_ms > 0 => Some(self.release(attempt)),
            Mode::Exclusive | Mode::Shared => None,
        }
    }
}
