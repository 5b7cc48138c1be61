//! What the optimistic strategies share: they lock nothing while the work goes on. The work's effect is written only if
//! nobody else has written meanwhile; otherwise the whole work is repeated. `OptimisticStatements` says what a strategy
//! reads and writes.
//!
//! ```text
//!          Acquire             read            Release, Cancel           written
//!    Idle ─────────▶ Read ──────────▶ Held ───────────────────▶ Write ───────────▶ Idle
//!                    ▲ │ conflict      │ Disconnected            │ conflict: settles Conflict
//!               Woke │ ▼               ▼                         ▼
//!                   Pausing          Gone ──▶ Idle            Conflicted
//!                      ▲                                         │ Retry: the next attempt
//!                      └─────────────────────────────────────────┘
//! ```
//! Not drawn: an open transaction is ended before a conflict or an error goes on (`Undo`); what ends in `Idle` at
//! once (an error, `Unknown`, a Cancel before it is held, a Retry when the policy allows no further attempt).
//!
//! Promises: an acknowledged write was based on a value that nobody had changed since; `Conflict` means that nothing
//! was written; no attempt follows one whose write may have been carried out; no transaction stays open during a pause.
//! Does not promise exclusion of the work: two clients may work at once, one of them in vain.

use crate::calls::{SERVER, is_conflict};
use crate::shell::{Ending, Lock, Next, NoReply, State, Turn};
use crate::{Command, ConnectionKind, ErrorKind, Lasts, Reply, ServerId, Statement};

/// The statements that read before the work and write after it.
pub(crate) trait OptimisticStatements: std::fmt::Debug {
    const CONNECTION: ConnectionKind;
    /// Returns the value that was read, which is at least 0.
    const READ: Statement;
    /// Takes the value that was read; returns a row if it was written.
    const WRITE: Statement;
    /// Ends the transaction that the read opened, if it was not committed.
    const UNDO: Option<Statement>;
    /// Whether a write that returns no row means that another client wrote first.
    const GUARDED: bool;
}

#[derive(Debug)]
pub(crate) struct Optimistic<E> {
    /// The value that the work is based on.
    read: u64,
    /// The session that was to write the effect of the work has ended.
    gone: bool,
    statements: std::marker::PhantomData<E>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read,
    Write,
    /// Ends a failed transaction.
    Undo(Then),
}

/// What follows when no transaction is open any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Another attempt, if the policy allows one.
    Again,
    /// The work has to be repeated.
    Conflict,
    Settle(Ending),
}

impl<E: OptimisticStatements> Lock for Optimistic<E> {
    type Step = Step;
    type Owner = ();
    const FIRST: Step = Step::Read;
    const UNDO: Step = Step::Undo(Then::Again);
    const RELEASE_ENDS_THE_REQUEST: bool = true;

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.gone = false;
        turn.count_attempt();
        Next::Ask(Step::Read)
    }

    fn route(&self, _step: Step) -> (ServerId, ConnectionKind) {
        (SERVER, E::CONNECTION)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Read => E::READ.about(turn.key(), [0, 0]),
            Step::Write => E::WRITE.about(turn.key(), [self.read, 0]),
            Step::Undo(_) => E::UNDO
                .expect("an open transaction can be ended")
                .about(turn.key(), [0, 0]),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (Step::Undo(then), reply) => {
                if !reply.is_ok() {
                    // The transaction then ends with the session.
                    hang_up::<E>(turn);
                }
                follow(then)
            }
            (Step::Read, Reply::Int(read @ 0..)) => {
                self.read = read.cast_unsigned();
                Next::Hold(Lasts::Unbounded, None)
            }
            // The id of the row; its value does not matter.
            (Step::Write, Reply::Int(_)) => Next::Settle(Ending::Released),
            (Step::Write, Reply::Nil) if E::GUARDED => {
                turn.count_conflict();
                undo::<E>(Then::Conflict)
            }
            (Step::Read | Step::Write, Reply::Error(ErrorKind::SessionEnded)) => {
                hang_up::<E>(turn);
                Next::Settle(Ending::Failed(ErrorKind::SessionEnded))
            }
            (Step::Read | Step::Write, Reply::Error(kind)) if is_conflict(kind) => {
                turn.count_conflict();
                undo::<E>(if step == Step::Read {
                    Then::Again
                } else {
                    Then::Conflict
                })
            }
            // Also the reply without a row: the key has no row. Or another program has written the column.
            (Step::Read | Step::Write, other) => undo::<E>(Then::Settle(Ending::Failed(other.failure()))),
        }
    }

    fn no_reply(&mut self, step: Step, why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if why == NoReply::TimedOut {
            hang_up::<E>(turn);
        }
        match step {
            Step::Read | Step::Write => Next::Settle(Ending::Unknown),
            // The end of a session also ends its transaction.
            Step::Undo(then) => follow(then),
        }
    }

    fn cancel(&mut self, step: Step, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        let released = Then::Settle(Ending::Released);
        match step {
            // Sent behind the read on the same connection. A statement that only reads leaves nothing.
            Step::Read => undo::<E>(released),
            Step::Undo(Then::Again) => Next::Become(Step::Undo(released)),
            // Its one settlement answers both requests.
            Step::Write | Step::Undo(Then::Conflict | Then::Settle(_)) => Next::Stay,
        }
    }

    fn release(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.gone {
            // The session has ended, and its transaction with it: nothing is written and nothing must be undone.
            Next::Settle(Ending::Expired)
        } else {
            Next::Ask(Step::Write)
        }
    }

    fn disconnected(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        // There was no belief to end, but there is nothing left to commit. While a call is awaited, `Lost` reports it.
        self.gone |= turn.state() == State::Held && E::CONNECTION == ConnectionKind::Own;
        Next::Stay
    }
}

impl<E> Optimistic<E> {
    pub(crate) const fn new() -> Self {
        Self {
            read: 0,
            gone: false,
            statements: std::marker::PhantomData,
        }
    }
}

/// Goes on after the end of the transaction, if one is open.
const fn undo<E: OptimisticStatements>(then: Then) -> Next<Step> {
    match E::UNDO {
        Some(_) => Next::Ask(Step::Undo(then)),
        None => follow(then),
    }
}

const fn follow(then: Then) -> Next<Step> {
    match then {
        Then::Again => Next::Busy,
        Then::Conflict => Next::Conflict,
        Then::Settle(ending) => Next::Settle(ending),
    }
}

/// A session whose replies fail to come is closed; a session that other clients use stays open.
fn hang_up<E: OptimisticStatements>(turn: &mut Turn<'_, Optimistic<E>>) {
    match E::CONNECTION {
        ConnectionKind::Own => turn.out.hang_up(),
        ConnectionKind::SharedByClients | ConnectionKind::Subscribing | ConnectionKind::Guard => {}
    }
}
