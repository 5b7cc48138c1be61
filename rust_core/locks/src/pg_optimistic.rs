//! `pg-optimistic`: reads the version of the row, and in the end writes only if it is the same still.
//!
//! ```text
//!    Idle ──▶ Reading ───────────▶ Held ──▶ Writing ─────────────────────────▶ Idle
//!             SELECT version                UPDATE .. WHERE version = mine
//!                                           └── no row: Conflicted ──▶ the whole work again
//! ```
//! The states are those of `Optimistic`, which tells the rest. Each statement is a transaction of its own, so it needs no
//! session of its own, and leaves nothing open.

use crate::optimistic::Effect;
use crate::{Lane, Statement};

#[derive(Debug)]
pub(crate) enum PgOptimistic {}

impl Effect for PgOptimistic {
    const LANE: Lane = Lane::Shared;
    const READ: Statement = Statement::VersionRead;
    const WRITE: Statement = Statement::VersionWrite;
    const UNDO: Option<Statement> = None;
    const GUARDED: bool = true;
}
