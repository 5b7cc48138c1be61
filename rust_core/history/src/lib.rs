//! Histories of lock events, which a program in any language can write: the format, and the judging of such histories.
//!
//! `docs/judge.md` describes the format. `Reading` takes the bytes of files, merges the histories by their times and
//! gives them to `check::Checker`. `RecordedTrial` turns what the load threads of a trial have recorded in binary form
//! into lines of the format.
//!
//! Promises: no bytes, however wrong, make the reader panic; every error names the file and the line. The history of a
//! trial, read again, gives the checker the same events in the same order as the trial gave.
//! Does not do: opening files; bytes are handed in. Memory grows by about 60 bytes per event of one history.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod header;
mod line;
mod merging;
mod reading;
mod record;
mod recorded_trial;
mod recordings;
mod section;

pub use header::{Clock, Exclusion, Header, JudgedBy, Ordering, Promises, TrialName, VERSION};
pub use merging::Judged;
pub use reading::{FormatError, Reading};
pub use record::{Record, SIZE as RECORD_SIZE};
pub use recorded_trial::{Preamble, RecordedTrial};
pub use recordings::{Recordings, read_recording};
