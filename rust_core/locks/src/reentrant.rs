//! `reentrant`: a lock whose holder may enter it again; it is released with the last entry. The entries are counted on
//! the server, in a list that has the owner's token once per entry and whose lease each entry renews; or by the client,
//! on top of a `mutex`. The two differ in commands per grant.
//!
//! ```text
//!               Enter            Enter               counted by the client: all at once
//!            ┌─────────▶ the reply decides ───┐
//!          Held ◀─────────────────────────────┤
//!            ├─────────▶ the reply decides ───┘
//!            │  Release          Leave         not the last entry
//!            └── Release of the last entry, Cancel ──▶ Release, as in `Shell`
//! ```
//! `Shell` leads to `Held` and away from it. An entry that fails leaves the earlier ones as they were; a release that
//! does not settle as `Held` ends all of them.
//!
//! Promises: exclusion between owners while no work outlives the lease and the server keeps its data; one token for all
//! entries of a grant, so another owner's release is refused; an entry never takes a lock that was lost; a dead
//! holder's lock is free again one lease after its last entry. Leaving an entry and releasing the lock work even on a
//! server that has no memory for anything new.

use crate::args::Args;
use crate::calls::TakeEffect;
use crate::shell::{After, Ending, Lock, Next, NoReply, Turn, Undone};
use crate::{Command, ErrorKind, Lasts, Nanos, Outcome, Refusal, Reply, Script, SpecError, Strategy, Token, Traits};

/// Where the entries are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Server,
    Local,
}

pub(crate) const fn traits(count: Count) -> Traits {
    Traits {
        name: "reentrant",
        nests: true,
        scripts: match count {
            Count::Server => &[Script::ReentrantTake, Script::ReentrantEnter, Script::ReentrantLeave],
            Count::Local => &[Script::CompareAndDelete],
        },
        ..Traits::LEASE
    }
}

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let count = args.choice("count", &[("server", Count::Server), ("local", Count::Local)])?;
    Ok(Strategy::Reentrant { count })
}

#[derive(Debug)]
pub(crate) struct Reentrant {
    count: Count,
    /// The entries that were settled as held.
    entries: u64,
    /// The largest number that the server may have counted, which includes an entry whose reply was lost.
    at_most: u64,
    /// The end of belief while an entry is made or left.
    until: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Take,
    Enter,
    /// Leaves one entry that is not the last.
    Leave,
    Release,
}

impl Lock for Reentrant {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Take;
    const UNDO: Step = Step::Release;

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        (self.entries, self.at_most) = (1, 1);
        turn.count_attempt();
        turn.draw_owner();
        Next::Ask(Step::Take)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match (step, self.count) {
            (Step::Take, Count::Local) => turn.set_if_absent(),
            (Step::Take, Count::Server) => turn.script(Script::ReentrantTake, [turn.lease_ms(), 0]),
            (Step::Enter, _) => turn.script(Script::ReentrantEnter, [turn.lease_ms(), 0]),
            (Step::Leave, _) => turn.script(Script::ReentrantLeave, [1, 0]),
            (Step::Release, Count::Local) => turn.compare_and_delete(),
            (Step::Release, Count::Server) => turn.script(Script::ReentrantLeave, [self.at_most, 0]),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, self.count) {
            (Step::Enter, _) => self.entered(reply, turn),
            (Step::Leave, _) => self.left(reply, turn.now),
            (Step::Take | Step::Release, Count::Server) => Next::of_script(reply),
            (Step::Take | Step::Release, Count::Local) => Next::of_set(reply),
        }
    }

    /// Sent again after the end of belief, the script would renew the lease of a lock in which the client no longer
    /// believes.
    fn may_resend(&self, step: Step, turn: &Turn<'_, Self>) -> bool {
        step != Step::Enter || turn.now < self.until
    }

    fn no_reply(&mut self, step: Step, _why: NoReply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Enter => Next::KeepHolding(self.until, Outcome::Unknown),
            // Ends all entries, because their number is unknown.
            Step::Leave | Step::Take | Step::Release => Next::Abandon(Ending::Unknown),
        }
    }

    fn cancel(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Enter | Step::Leave => self.release_all(turn),
            Step::Take | Step::Release => Next::Withdraw,
        }
    }

    fn undone(&mut self, _step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Undone<Step> {
        match (self.count, reply) {
            (Count::Local, reply) => Undone::of_script(reply),
            // The number of entries that are left.
            (Count::Server, Reply::Int(0)) => Undone::WasHeld,
            (Count::Server, Reply::Nil) => Undone::WasLost,
            (Count::Server, other) => Undone::Failed(other.failure()),
        }
    }

    fn enter(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.until = turn.until();
        match self.count {
            _ if turn.now >= self.until => self.too_late(),
            Count::Local => {
                self.entries += 1;
                self.held()
            }
            Count::Server => {
                self.at_most += 1;
                Next::Ask(Step::Enter)
            }
        }
    }

    fn release(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.until = turn.until();
        match self.count {
            // All entries end with the lease.
            _ if self.entries == 1 || turn.now >= self.until => Next::Undo(After::Release),
            Count::Local => {
                self.entries -= 1;
                self.held()
            }
            Count::Server => Next::Ask(Step::Leave),
        }
    }

    /// Whatever is under way, all entries that the server may have counted are released.
    fn release_all(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        Next::Undo(After::Release)
    }
}

/// The replies to an entry, and to leaving one that is not the last.
impl Reentrant {
    pub(crate) const fn new(count: Count) -> Self {
        Self {
            count,
            entries: 0,
            at_most: 1,
            until: Nanos::ZERO,
        }
    }

    fn entered(&mut self, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let is_over = turn.now >= self.until;
        match reply {
            // A late reply revives nothing; this entry is released with the others.
            Reply::Int(2..) if is_over => self.too_late(),
            Reply::Int(2..) => {
                self.until = turn.spec().lease.until(turn.sent());
                self.entries += 1;
                self.held()
            }
            Reply::Nil => {
                // Belief ends here, so nothing is entered either.
                self.until = turn.now;
                turn.out.lapsed();
                self.too_late()
            }
            Reply::Error(ErrorKind::NoScript) if is_over => {
                self.at_most -= 1;
                self.too_late()
            }
            other => {
                match TakeEffect::of(other.failure()) {
                    TakeEffect::Nothing => self.at_most -= 1,
                    // The server may have counted the entry, so the last release includes it.
                    TakeEffect::Unknown => {}
                }
                Next::KeepHolding(self.until, Outcome::Failed(other.failure()))
            }
        }
    }

    fn left(&mut self, reply: Reply, now: Nanos) -> Next<Step> {
        match reply {
            Reply::Int(1..) => {
                self.entries -= 1;
                self.at_most -= 1;
                if now < self.until {
                    self.held()
                } else {
                    // All entries ended with the lease; the rest are released without waiting for the reply.
                    Next::Abandon(Ending::Expired)
                }
            }
            Reply::Nil => Next::Settle(Ending::Expired),
            // Also 0: entries must be left, unless another program has changed the count.
            other => Next::Abandon(Ending::Failed(other.failure())),
        }
    }

    const fn held(&self) -> Next<Step> {
        let lasts = Lasts::Until(self.until);
        Next::KeepHolding(self.until, Outcome::Held { lasts, fence: None })
    }

    const fn too_late(&self) -> Next<Step> {
        Next::KeepHolding(self.until, Outcome::Refused(Refusal::TooLate))
    }
}
