//! The judge: whether a lock was ever given twice, and who had to wait for whom.
//!
//! A driver tells the `Checker` what happens to each client, in the order of stamps. The checker keeps two intervals
//! for each grant, both half-open: *belief*, while the holder may think the lock is its own, and *work*, while it goes
//! on as if it were. Two beliefs of one key that overlap are a double grant; a grant beside work that went on past its
//! belief is a lease overrun.
//!
//! Promises: a verdict that depends on nothing but the events; constant time an event in all but contrived cases; no
//! allocation after construction; at most 64 bytes a client and 64 a key.
//! Does not promise: that the stamps are right. A stamp taken too late for a grant, or too early for a release, hides
//! an overlap that happened. And it judges exclusive locks only: no readers, no semaphores.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod checker;
mod event;
mod fairness;
mod lost_updates;
mod merge;
mod report;
mod table;
mod violations;

pub use checker::Checker;
pub use event::{ClientId, Event};
pub use fairness::jain;
pub use lost_updates::{LostUpdates, UpdateVerdict};
pub use merge::Merge;
pub use report::{Figures, GrantSpan, Report, Violation, ViolationCounts, ViolationKind};
