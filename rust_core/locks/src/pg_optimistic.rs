//! `pg-optimistic`: reads the version of the row, and after the work writes only if the version is unchanged.
//!
//! ```text
//!    Idle ──▶ Read ──────────────▶ Held ──▶ Write ───────────────────────────▶ Idle
//!             SELECT version                UPDATE .. WHERE version = mine
//!                                           └── no row: Conflicted ──▶ the whole work again
//! ```
//! `Optimistic` has the states and the rest of the algorithm. Each statement is a transaction of its own, so this lock
//! needs no session of its own and leaves no transaction open.

use crate::optimistic::OptimisticStatements;
use crate::{ConnectionKind, Statement, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "pg-optimistic",
    statements: &[Statement::VersionRead, Statement::VersionWrite],
    ..Traits::OPTIMISTIC
};

#[derive(Debug)]
pub(crate) enum PgOptimistic {}

impl OptimisticStatements for PgOptimistic {
    const CONNECTION: ConnectionKind = ConnectionKind::SharedByClients;
    const READ: Statement = Statement::VersionRead;
    const WRITE: Statement = Statement::VersionWrite;
    const UNDO: Option<Statement> = None;
    const GUARDED: bool = true;
}
