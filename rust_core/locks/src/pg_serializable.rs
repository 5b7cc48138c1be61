//! `pg-serializable`: the work within one serializable transaction, done again where the server cannot place it.
//!
//! ```text
//!    Idle ──▶ Reading ──────────────────▶ Held ──▶ Writing ─────────▶ Idle
//!             BEGIN SERIALIZABLE; SELECT           UPDATE; COMMIT
//!             └── 40001, 40P01 ──▶ Undoing ◀── 40001, 40P01 ──┘
//!                                  ROLLBACK ──▶ the next attempt, or Conflicted
//! ```
//! The states are those of `Optimistic`, which tells the rest. The transaction is in a session of the client's own; when
//! that ends during the work, nothing is written.

use crate::optimistic::Effect;
use crate::{Lane, Statement};

#[derive(Debug)]
pub(crate) enum PgSerializable {}

impl Effect for PgSerializable {
    const LANE: Lane = Lane::Own;
    const READ: Statement = Statement::SerializableRead;
    const WRITE: Statement = Statement::SerializableWrite;
    const UNDO: Option<Statement> = Some(Statement::Rollback);
    const GUARDED: bool = false;
}
