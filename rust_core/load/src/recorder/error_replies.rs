//! Every error reply of a trial, counted by phase, code and server, with the first text of each.
//!
//! Promises: warm-up and drain are counted too; a normal reply costs nothing here; memory is bounded, whatever the
//! servers send. Errors that are part of a lock's normal operation are not counted. With Postgres these are conflicts
//! with another transaction and locks that are taken. With Redis these are `BUSYGROUP` (the group exists),
//! and errors after which the lock sends a further command unless it was cancelled: `NOSCRIPT` (it sends the script as
//! source) and `ERR no such key` (it asks by a script why a `RENAME` found no list).

use locks::Nanos;

use crate::clients::Doing;
use crate::transport::ErrorText;

/// The most rows that a thread keeps. Servers choose the codes, so there may be any number of them.
const MOST_ROWS: usize = 64;
/// The code of the row that counts errors beyond `MOST_ROWS`.
const FURTHER: &str = "(further codes)";

/// What the client was doing when it sent the call that got an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPhase {
    Acquire,
    Renew,
    Release,
    /// The call was one of the guarded work.
    Guard,
    /// The call belongs to no acquire, hold or release, such as a log-in.
    Other,
}

impl ErrorPhase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Guard => "guard",
            Self::Other => "other",
        }
    }

    pub(crate) const fn of(doing: Doing) -> Self {
        match doing {
            Doing::Acquiring | Doing::Entering => Self::Acquire,
            // While it is held, a lock sends only renewals.
            Doing::Holding => Self::Renew,
            Doing::Releasing | Doing::Cancelling => Self::Release,
            Doing::Idle | Doing::Pausing => Self::Other,
        }
    }
}

/// Error replies of one phase, code and server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    pub phase: ErrorPhase,
    /// The first word of an error reply of Redis, or the SQLSTATE of one of Postgres.
    pub code: String,
    pub server: u16,
    pub count: u64,
    /// How many of `count` came before the window began.
    pub warmup: u64,
    /// The first reply's text: at most 200 characters, control characters escaped.
    pub first: String,
    pub first_at: Nanos,
}

/// The circumstances of an error reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) phase: ErrorPhase,
    pub(super) server: u16,
    pub(super) at: Nanos,
    pub(super) in_warmup: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ErrorReplies {
    rows: Vec<ErrorReply>,
}

impl ErrorReplies {
    pub(super) fn count(&mut self, came: Came, ErrorText { code, text }: &ErrorText) {
        let warmup = u64::from(came.in_warmup);
        let place = |rows: &[ErrorReply], code: &str| {
            let same = |row: &ErrorReply| row.phase == came.phase && row.server == came.server && row.code == code;
            rows.iter().position(same)
        };
        let full = self.rows.len() >= MOST_ROWS;
        let found = place(&self.rows, code).or_else(|| full.then(|| place(&self.rows, FURTHER)).flatten());
        match found {
            Some(row) => {
                self.rows[row].count += 1;
                self.rows[row].warmup += warmup;
            }
            None => self.rows.push(ErrorReply {
                phase: came.phase,
                code: if full { FURTHER } else { code }.to_owned(),
                server: came.server,
                count: 1,
                warmup,
                first: text.clone(),
                first_at: came.at,
            }),
        }
    }

    /// Adds the rows of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for theirs in &other.rows {
            let same = |ours: &&mut ErrorReply| {
                (ours.phase, ours.server, &ours.code) == (theirs.phase, theirs.server, &theirs.code)
            };
            match self.rows.iter_mut().find(same) {
                Some(ours) => {
                    ours.count += theirs.count;
                    ours.warmup += theirs.warmup;
                    if theirs.first_at < ours.first_at {
                        ours.first.clone_from(&theirs.first);
                        ours.first_at = theirs.first_at;
                    }
                }
                None => self.rows.push(theirs.clone()),
            }
        }
    }

    pub(crate) fn into_rows(self) -> Vec<ErrorReply> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(phase: ErrorPhase, at: u64, in_warmup: bool) -> Came {
        Came {
            phase,
            server: 0,
            at: Nanos(at),
            in_warmup,
        }
    }

    fn error(code: &str, text: &str) -> ErrorText {
        ErrorText {
            code: code.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn replies_are_counted_by_phase_and_code_and_the_first_text_stays() {
        let mut replies = ErrorReplies::default();
        replies.count(came(ErrorPhase::Release, 1, true), &error("NOPERM", "first"));
        replies.count(came(ErrorPhase::Release, 2, false), &error("NOPERM", "second"));
        replies.count(came(ErrorPhase::Acquire, 3, false), &error("NOPERM", "third"));
        let rows = replies.into_rows();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.phase.name(), row.count, row.warmup, &*row.first))
            .collect();
        assert_eq!(told, [("release", 2, 1, "first"), ("acquire", 1, 0, "third")]);
    }

    #[test]
    fn the_text_that_came_first_stays_when_threads_are_added_up() {
        let (mut late, mut early) = (ErrorReplies::default(), ErrorReplies::default());
        late.count(came(ErrorPhase::Renew, 9, false), &error("ERR", "late"));
        early.count(came(ErrorPhase::Renew, 5, true), &error("ERR", "early"));
        late.add(&early);
        let row = &late.into_rows()[0];
        assert_eq!((row.count, row.warmup, &*row.first), (2, 1, "early"));
    }

    #[test]
    fn a_server_that_invents_codes_fills_no_memory_and_every_reply_is_counted() {
        let mut replies = ErrorReplies::default();
        for number in 0..10_000 {
            let came = came(ErrorPhase::Acquire, number, false);
            replies.count(came, &error(&format!("E{number}"), ""));
        }
        let rows = replies.into_rows();
        assert_eq!(rows.len(), MOST_ROWS + 1);
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 10_000);
        assert_eq!(rows[MOST_ROWS].code, FURTHER);
    }
}
