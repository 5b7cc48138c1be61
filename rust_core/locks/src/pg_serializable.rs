//! `pg-serializable`: the work within one serializable transaction, repeated if the server cannot serialize it.
//!
//! ```text
//!    Idle ──▶ Read ─────────────────────▶ Held ──▶ Write ───────────▶ Idle
//!             BEGIN SERIALIZABLE; SELECT           UPDATE; COMMIT
//!             └── 40001, 40P01 ──▶ Undo ◀───── 40001, 40P01 ──┘
//!                                  ROLLBACK ──▶ the next attempt, or Conflicted
//! ```
//! `Optimistic` has the states and the rest of the algorithm. The transaction is in a session of this client alone; if
//! the session ends during the work, nothing is written.

use crate::optimistic::OptimisticStatements;
use crate::{ConnectionKind, Statement, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "pg-serializable",
    owns_connection: true,
    statements: &[
        Statement::SerializableRead,
        Statement::SerializableWrite,
        Statement::Rollback,
    ],
    ..Traits::OPTIMISTIC
};

#[derive(Debug)]
pub(crate) enum PgSerializable {}

impl OptimisticStatements for PgSerializable {
    const CONNECTION: ConnectionKind = ConnectionKind::Own;
    const READ: Statement = Statement::SerializableRead;
    const WRITE: Statement = Statement::SerializableWrite;
    const UNDO: Option<Statement> = Some(Statement::Rollback);
    const GUARDED: bool = false;
}
