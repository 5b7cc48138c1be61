//! The checker: judges whether a lock was ever granted twice, and counts who had to wait for whom.
//!
//! A driver reports to the `Checker` what happens to each client, in the order of stamps. The checker keeps two
//! half-open intervals for each grant: *belief*, while the holder may think that it holds the lock, and *work*, while
//! it acts as if it did. More beliefs of one key at once than their modes and permits allow are a double grant; a grant
//! during work that outlived its belief is a lease overrun. For locks that promise more, fences and the order of
//! service are judged too, in one file per property.
//!
//! Promises: a verdict that depends on nothing but the events; constant time per event, except for a grant that breaks
//! a rule, which may have to search the key's holders for the one in its way, and for the end of a grant that such a
//! grant overlapped; no allocation after construction, except one when the first client asks to share, one per
//! grant that overlaps the belief of a session's holder, and one per death of a client; at most 64 bytes per client, 4
//! per key and 64 per key in use for a plain lock.
//! Does not promise that the stamps are right. A stamp taken too late for a grant, or too early for a release, hides a
//! real overlap.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod checker;
mod contention;
mod crowd;
mod deaths;
mod endings;
mod event;
mod exclusion;
mod fairness;
mod fences;
mod fifo;
mod findings;
mod keys;
mod lost_updates;
mod merge;
mod report;
mod rules;
mod sessions;
mod stalls;
mod table;
mod turns;
mod violations;

pub use checker::Checker;
pub use event::{ClientId, Event};
pub use fairness::jain;
pub use lost_updates::{LostUpdates, RowsVerdict, UpdateVerdict, judge_rows};
pub use merge::Merge;
pub use report::{Figures, GrantSpan, Report, Violation, ViolationCounts, ViolationKind};
pub use rules::{Order, Rules};
