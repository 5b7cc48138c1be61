//! The judge: whether a lock was ever given twice, and who had to wait for whom.
//!
//! A driver tells the `Checker` what happens to each client, in the order of stamps. The checker keeps two intervals
//! for each grant, both half-open: *belief*, while the holder may think the lock is its own, and *work*, while it goes
//! on as if it were. More beliefs of one key at once than their modes and permits allow are a double grant; a grant
//! beside work that went on past its belief is a lease overrun. Where the lock promises more, fences and the order of
//! service are judged too: one file a property.
//!
//! Promises: a verdict that depends on nothing but the events; constant time an event, but for a grant that breaks a
//! rule, which may have to look through the key's holders for who is in its way, and for the end of one that such a
//! grant was made beside; no allocation after construction, but for one when the first client asks to share, and for
//! grants beside believers in sessions; at most 64 bytes a client and 64 a key for a plain lock.
//! Does not promise: that the stamps are right. A stamp taken too late for a grant, or too early for a release, hides
//! an overlap that happened.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod checker;
mod contention;
mod crowd;
mod endings;
mod event;
mod exclusion;
mod fairness;
mod fences;
mod fifo;
mod findings;
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
