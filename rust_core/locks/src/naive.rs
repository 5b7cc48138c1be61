//! `naive`: takes with `SETNX key 1` and `EXPIRE key s`, releases with `DEL key`. What many programs do, reproduced
//! exactly.
//!
//! ```text
//!          Acquire           1           1, 0 in time        Release, Cancel
//!    Idle ─────────▶ SetNx ────▶ Expire ──────────────▶ Held ─────────────────▶ Del ─────────▶ Idle
//!                    │ ▲ │        │ └── Cancel ──────────────────────────────────▶ ▲
//!                  0 │ │ └────────│── Cancel ──▶ Withdrawing ── 1 ─────────────────┘
//!                    ▼ │ Woke     │ 1, 0 too late, and the policy allows another
//!                   Pausing ◀─────┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! Promises exclusion only while nobody crashes, no reply is lost and no work outlives the lease: a key whose `EXPIRE`
//! was never sent stays for ever, and `DEL` does not check who owns the lock. These flaws are kept on purpose, but only
//! for holders: a grant that no client held is not deleted once its lease may have ended, because no client would see
//! the effect.

use crate::shell::{After, Ending, Lock, Next, Turn};
use crate::{Command, Lease, Reply, Spec, Traits};

/// Its lease is rounded up to a second, far more than the clock-skew margin.
pub(crate) const TRAITS: Traits = Traits {
    name: "naive",
    takes_skew_margin_off: false,
    ..Traits::LEASE
};

#[derive(Debug)]
pub(crate) struct Naive;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    SetNx,
    /// Other clients already see the key as taken.
    Expire,
    Del,
}

impl Lock for Naive {
    type Step = Step;
    type Owner = ();
    const FIRST: Step = Step::SetNx;
    const UNDO: Step = Step::Del;

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        let key = turn.key();
        match step {
            Step::SetNx => Command::SetNx { key },
            Step::Expire => Command::Expire {
                key,
                seconds: self.lease(turn.spec()).ttl().0 / 1_000,
            },
            Step::Del => Command::Del { key },
        }
    }

    fn lease(&self, spec: &Spec) -> Lease {
        spec.lease.in_whole_seconds()
    }

    fn answer(&mut self, step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (Step::SetNx, Reply::Int(1)) => Next::Ask(Step::Expire),
            (Step::SetNx, Reply::Int(0)) => Next::Busy,
            // 0 means that the key is gone: another client's unchecked DEL removed it. Naive code ignores this reply,
            // and so does this lock: it believes, and the checker sees the consequences.
            (Step::Expire, Reply::Int(0 | 1)) => Next::Granted(None),
            (Step::SetNx, other) => Next::failed(other),
            (Step::Expire | Step::Del, other) => Next::Abandon(Ending::Failed(other.failure())),
        }
    }

    fn cancel(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            // The lock is certainly taken, and on one connection the DEL arrives behind the EXPIRE: no need to wait.
            Step::Expire if self.can_undo(step, turn) => Next::Undo(After::CANCEL),
            Step::Expire => Next::Settle(Ending::Unknown),
            Step::SetNx | Step::Del => Next::Withdraw,
        }
    }

    /// The key names no owner. So only the client whose `SETNX` was granted owns it, and only until the lease that the
    /// `EXPIRE` may have set ends; a `SETNX` whose reply is lost leaves its key for ever.
    fn can_undo(&self, step: Step, turn: &Turn<'_, Self>) -> bool {
        step == Step::Expire && turn.now < self.lease(turn.spec()).until(turn.sent())
    }
}
