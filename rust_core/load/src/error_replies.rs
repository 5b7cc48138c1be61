//! Every error reply of a trial, counted by phase, code and server, with the first text of each.
//!
//! Promises: warm-up and drain are counted too; a normal reply costs nothing here; memory is bounded, whatever the
//! servers send. Errors that are part of a lock's normal operation are not counted. With Postgres these are conflicts
//! with another transaction and locks that are taken. With Redis these are `BUSYGROUP` (the group exists),
//! and errors after which the lock sends a further command unless it was cancelled: `NOSCRIPT` (it sends the script as
//! source) and `ERR no such key` (it asks by a script why a `RENAME` found no list).

use locks::{CallId, ErrorKind, Event, Nanos, Reply};
use wire::postgres::{self, LogInError, ServerError};
use wire::{error_code, error_text, parse_frame};

use crate::client::Doing;
use crate::connection::{Awaited, Broken};
use crate::thread::Thread;

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
    /// The call belongs to no acquire, hold or release, such as a log-in.
    Other,
}

impl ErrorPhase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Other => "other",
        }
    }

    const fn of(doing: Doing) -> Self {
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
struct Came {
    phase: ErrorPhase,
    server: u16,
    at: Nanos,
    in_warmup: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ErrorReplies {
    rows: Vec<ErrorReply>,
}

impl ErrorReplies {
    fn count(&mut self, came: Came, code: &str, text: impl FnOnce() -> String) {
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
                first: text(),
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

impl Thread {
    /// Passes an error reply of Redis, with these bytes, to the client that awaits it, and counts it.
    #[cold]
    pub(crate) fn dispatch_error(&mut self, index: u32, now: Nanos, awaited: Awaited, kind: ErrorKind, bytes: &[u8]) {
        let sent_before = self.counters.all_commands;
        // A request that was cancelled meanwhile sends nothing further.
        let is_over = self.clients[awaited.client as usize].doing != awaited.doing;
        self.dispatch_reply(awaited.client, now, awaited.call, Reply::Error(kind));
        let expected = match kind {
            ErrorKind::BusyGroup => true,
            ErrorKind::NoScript | ErrorKind::NoSuchKey => is_over || self.counters.all_commands > sent_before,
            _ => false,
        };
        if expected {
            return; // The error is part of the lock's normal operation.
        }
        let Ok(Some((frame, _))) = parse_frame(bytes) else {
            return;
        };
        let came = self.came(index, now, Some(awaited));
        let code = error_code(&frame).unwrap_or_default();
        self.error_replies
            .count(came, &code, || error_text(&frame).unwrap_or_default());
    }

    /// Counts an error reply of a database.
    #[cold]
    pub(crate) fn count_server_error(
        &mut self,
        index: u32,
        now: Nanos,
        awaited: Option<Awaited>,
        refusal: &ServerError,
    ) {
        if refusal.kind().is_contention() {
            return;
        }
        let came = self.came(index, now, awaited);
        self.error_replies
            .count(came, &refusal.sqlstate(), || refusal.text.clone());
    }

    /// Counts the error with which a server ended a connection, or refused a log-in after the trial had begun.
    #[cold]
    pub(crate) fn count_broken(&mut self, index: u32, now: Nanos, broken: &Broken) {
        let awaited = self.connections[index as usize].awaited.front().copied();
        match broken {
            Broken::Session(postgres::Broken::Ended(refusal)) => self.count_server_error(index, now, awaited, refusal),
            Broken::LogIn(LogInError::Refused(refusal)) => self.count_server_error(index, now, None, refusal),
            Broken::Refused { code, text, .. } => {
                let came = self.came(index, now, None);
                self.error_replies.count(came, code, || text.clone());
            }
            Broken::Io(_)
            | Broken::Closed
            | Broken::Silent
            | Broken::Malformed(_)
            | Broken::LogIn(_)
            | Broken::Session(_)
            | Broken::Unasked => {}
        }
    }

    fn came(&self, index: u32, at: Nanos, awaited: Option<Awaited>) -> Came {
        Came {
            phase: awaited.map_or(ErrorPhase::Other, |awaited| ErrorPhase::of(awaited.doing)),
            server: self.connections[index as usize].server,
            at,
            in_warmup: at < self.control.window().0,
        }
    }

    #[inline]
    pub(crate) fn dispatch_reply(&mut self, client: u32, now: Nanos, call: CallId, reply: Reply) {
        self.dispatch(client, now, Event::Replied { call, reply });
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

    #[test]
    fn replies_are_counted_by_phase_and_code_and_the_first_text_stays() {
        let mut replies = ErrorReplies::default();
        replies.count(came(ErrorPhase::Release, 1, true), "NOPERM", || "first".to_owned());
        replies.count(came(ErrorPhase::Release, 2, false), "NOPERM", || "second".to_owned());
        replies.count(came(ErrorPhase::Acquire, 3, false), "NOPERM", || "third".to_owned());
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
        late.count(came(ErrorPhase::Renew, 9, false), "ERR", || "late".to_owned());
        early.count(came(ErrorPhase::Renew, 5, true), "ERR", || "early".to_owned());
        late.add(&early);
        let row = &late.into_rows()[0];
        assert_eq!((row.count, row.warmup, &*row.first), (2, 1, "early"));
    }

    #[test]
    fn a_server_that_invents_codes_fills_no_memory_and_every_reply_is_counted() {
        let mut replies = ErrorReplies::default();
        for number in 0..10_000 {
            replies.count(
                came(ErrorPhase::Acquire, number, false),
                &format!("E{number}"),
                String::new,
            );
        }
        let rows = replies.into_rows();
        assert_eq!(rows.len(), MOST_ROWS + 1);
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 10_000);
        assert_eq!(rows[MOST_ROWS].code, FURTHER);
    }
}
