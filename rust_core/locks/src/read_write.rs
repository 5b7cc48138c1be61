//! `read-write`: many readers, or one writer. The writer's token is the value of the lock's key; the readers are a
//! sorted set, each with the end of its own lease by the server's clock.
//!
//! With `prefer: writers` a refused writer leaves a reservation, and new readers wait while one exists. Each attempt
//! renews the reservation; the grant or giving up removes it; and it expires by itself: a dead writer delays readers
//! for at most the longest pause of the retry policy plus the reply timeout plus 1 ms.
//!
//! `Shell` has its states. Promises exclusion between a writer and all others while no work outlives the lease, the
//! server keeps its data and its clock does not jump; a dead holder frees only its own share, after one lease. Does not
//! promise order among writers, nor, with `prefer: readers`, that a writer is ever served.

use crate::args::Args;
use crate::shell::{LeaseStep, Left, Lock, Next, Turn};
use crate::{Command, KeyList, Lease, Mode, Nanos, Reply, Script, Spec, SpecError, Strategy, Token, Traits};

/// Which clients go first when readers and writers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    Readers,
    Writers,
}

pub(crate) const TRAITS: Traits = Traits {
    name: "read-write",
    shares: true,
    scripts: &[
        Script::ReadTake,
        Script::ReadRelease,
        Script::WriteTake,
        Script::WriteRelease,
    ],
    ..Traits::LEASE
};

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let prefer = args.choice("prefer", &[("readers", Prefer::Readers), ("writers", Prefer::Writers)])?;
    Ok(Strategy::ReadWrite { prefer })
}

#[derive(Debug)]
pub(crate) struct ReadWrite {
    mode: Mode,
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
        Self {
            mode: Mode::Exclusive,
            reservation_ms,
        }
    }
}

/// Rounded up, and at most the longest lease that a server accepts.
fn to_millis(length: Nanos) -> u64 {
    length.0.div_ceil(1_000_000).min(Lease::LONGEST.0)
}

impl Lock for ReadWrite {
    type Step = LeaseStep;
    type Owner = Token;
    const FIRST: LeaseStep = LeaseStep::Take;
    const UNDO: LeaseStep = LeaseStep::Release;
    const SHARES: bool = TRAITS.shares;

    fn request(&mut self, _keys: KeyList, mode: Mode) {
        self.mode = mode;
    }

    /// Keeps the token, because the server stores a waiting writer's reservation under it. No attempt follows one whose
    /// reply is missing, so a late command of an earlier attempt cannot be mistaken for a current one.
    fn attempt(&mut self, turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        turn.count_attempt();
        Next::Ask(LeaseStep::Take)
    }

    fn command(&self, step: LeaseStep, turn: &Turn<'_, Self>) -> Command {
        match (step, self.mode) {
            (LeaseStep::Take, Mode::Shared) => turn.script(Script::ReadTake, [turn.lease_ms(), 0]),
            (LeaseStep::Take, Mode::Exclusive) => {
                turn.script(Script::WriteTake, [turn.lease_ms(), self.reservation_ms])
            }
            (LeaseStep::Release, Mode::Shared) => turn.script(Script::ReadRelease, [0, 0]),
            (LeaseStep::Release, Mode::Exclusive) => turn.script(Script::WriteRelease, [0, 0]),
        }
    }

    fn answer(&mut self, _step: LeaseStep, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        Next::of_script(reply)
    }

    /// Removes the reservation. A release that was sent removes it, too.
    fn clean_up(&mut self, left: Left, turn: &mut Turn<'_, Self>) {
        if left == Left::Nothing && self.mode == Mode::Exclusive && self.reservation_ms > 0 {
            turn.send(self.command(LeaseStep::Release, turn).unawaited());
        }
    }
}
