//! `replicated`: a `mutex` that counts as granted only once enough replicas have it: `SET key token NX PX ttl`, then
//! `WAIT replicas timeout`. If too few replicas confirmed in time, the lock is released and tried again as the policy
//! says.
//!
//! `Shell` has its states; two commands lie between `Asking` and `Held`. All commands use the client's own connection,
//! because `WAIT` blocks it and counts only what was written over it.
//!
//! Promises what `mutex` does. A server that fails over loses fewer locks, but may lose some: a replica without the key
//! may be promoted, and a replica with the key may not have it on disk.

use crate::args::Args;
use crate::calls::{SERVER, TakeEffect};
use crate::shell::{After, Lock, Next, Turn};
use crate::{Command, ConnectionKind, Nanos, Reply, Script, ServerId, Spec, SpecError, Strategy, Token, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "replicated",
    owns_connection: true,
    scripts: &[Script::CompareAndDelete],
    ..Traits::LEASE
};

pub(crate) fn with(replicas: u32, timeout_ms: u32, args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    Ok(Strategy::Replicated {
        replicas: args.count("replicas", replicas.into(), 1, 100)? as u32,
        timeout_ms: args.count("timeout_ms", timeout_ms.into(), 1, 60_000)? as u32,
    })
}

pub(crate) fn check(timeout_ms: u32, spec: &Spec) -> Result<(), SpecError> {
    let timeout = Nanos::from_millis(timeout_ms.into());
    if timeout >= spec.reply_timeout || timeout >= Nanos::from(spec.lease.ttl()) {
        return Err(SpecError::BadArgument {
            strategy: TRAITS.name,
            argument: "timeout_ms",
            wanted: "shorter than the lease and than the reply timeout".to_owned(),
        });
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) replicas: u32,
    pub(crate) timeout_ms: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Take,
    Wait,
    Release,
}

impl Lock for Replicated {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Take;
    const UNDO: Step = Step::Release;

    fn route(&self, _step: Step) -> (ServerId, ConnectionKind) {
        (SERVER, ConnectionKind::Own)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Take => turn.set_if_absent(),
            Step::Wait => Command::Wait {
                replicas: self.replicas.into(),
                timeout_ms: self.timeout_ms.into(),
            },
            Step::Release => turn.compare_and_delete(),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (Step::Take, Reply::Ok) => Next::Confirm(Step::Wait),
            (Step::Take | Step::Release, other) => Next::of_set(other),
            (Step::Wait, Reply::Int(count)) if count >= i64::from(self.replicas) => Next::Granted(None),
            (Step::Wait, Reply::Int(0..)) => Next::Undo(After::TooLate),
            // The lock is taken, whatever the error says of the confirmation.
            (Step::Wait, other) => Next::Failed(other.failure(), TakeEffect::Unknown),
        }
    }
}
