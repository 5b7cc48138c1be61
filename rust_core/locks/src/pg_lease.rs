//! `pg-lease`: a row with an owner and an expiry, taken and released by one statement each. No transaction stays open,
//! so it works behind a pooler and needs no session of its own.
//!
//! `Shell` has the states and the rest of the algorithm. Promises what it does, on the clock of the database:
//! exclusion while no work outlives the lease, and fences that grow with every grant. A release that meets another
//! transaction is sent again until the reply timeout has passed. A row is never deleted, so its fence never decreases.

use crate::calls::{SERVER, is_conflict};
use crate::shell::{LeaseStep, Lock, Next, Turn, Undone};
use crate::{Command, Reply, Statement, Token, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "pg-lease",
    database: Some(SERVER),
    fences: true,
    statements: &[Statement::LeaseTake, Statement::LeaseRelease],
    ..Traits::LEASE
};

#[derive(Debug)]
pub(crate) struct PgLease;

impl Lock for PgLease {
    type Step = LeaseStep;
    type Owner = Token;
    const FIRST: LeaseStep = LeaseStep::Take;
    const UNDO: LeaseStep = LeaseStep::Release;

    fn command(&self, step: LeaseStep, turn: &Turn<'_, Self>) -> Command {
        match step {
            LeaseStep::Take => Statement::LeaseTake.for_owner(turn.key(), turn.owner(), [turn.lease_ms(), 0]),
            LeaseStep::Release => Statement::LeaseRelease.for_owner(turn.key(), turn.owner(), [0, 0]),
        }
    }

    /// The statement waits for transactions that write the row at this moment. If the server ends that wait, or, at a
    /// stricter isolation level, ends the statement, one of those transactions has the row.
    fn answer(&mut self, _step: LeaseStep, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<LeaseStep> {
        match reply.error() {
            Some(kind) if is_conflict(kind) => {
                if kind.is_conflict() {
                    turn.count_conflict();
                }
                Next::Busy
            }
            Some(_) | None => Next::of_fence(reply),
        }
    }

    /// A client that tries to take the row reads it, which is enough to make this statement fail at the stricter
    /// isolation levels. Without a retry the row would stay taken until its lease ends.
    fn undone(&mut self, _step: LeaseStep, reply: Reply, turn: &mut Turn<'_, Self>) -> Undone<LeaseStep> {
        match reply {
            Reply::Error(kind) if is_conflict(kind) => {
                turn.count_conflict();
                Undone::SentAgain
            }
            Reply::Int(_) => Undone::WasHeld,
            Reply::Nil => Undone::WasLost,
            other => Undone::Failed(other.failure()),
        }
    }
}
