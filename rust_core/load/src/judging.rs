//! Judging a trial of several processes after its end: their recordings are merged by the clock of the host, and go
//! through the checker that a trial of one process calls while it runs.
//!
//! A killed process recorded every event before its effect left, so its recording only lacks its death. `bury` appends
//! it: each client died at the time that was noted before the kill, or with the last event of its thread if that is
//! later, because a thread that records an event is alive.
//!
//! Promises: bounded memory, whatever the number of events.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use check::{Event, Report};
use hdrhistogram::Histogram;
use history::{Record, Recordings, read_recording};
use locks::Nanos;

use crate::TrialError;
use crate::clients::trial_params::Thread;
use crate::control::Control;
use crate::faults;
use crate::recorder::judge::WindowedChecker;
use crate::recorder::periods::{PeriodFigures, Periods};
use crate::rules::rules;
use crate::spec::{Pace, TrialSpec};

/// How much of a file is read at a time.
const PIECE: usize = 1 << 18;
/// The steps of the time line of a process that was killed.
const STEP: Nanos = Nanos::from_millis(100);

/// The verdict over the events of all processes.
#[derive(Debug)]
pub struct JudgedTogether {
    pub report: Report,
    /// The hand-overs in the window.
    pub handoff: Histogram<u64>,
    /// When the trial began: the times of violations count from here.
    pub began: Nanos,
    pub events: u64,
}

/// What the events of a killed thread show of its window.
#[derive(Debug)]
pub struct Buried {
    /// Of each of its clients.
    pub grants: Vec<u64>,
    /// The sum of the waits that ended with these grants, and the longest of them, from the first attempt on.
    pub wait_sum_ns: Vec<u64>,
    pub wait_max_ns: Vec<u64>,
    /// Grants in each step of 100 ms, up to the last with a grant.
    pub steps: Vec<u64>,
    /// Before, during and after the faults; empty without faults. In an open loop without response times: no event shows
    /// when an arrival was due.
    pub periods: Vec<PeriodFigures>,
    /// The sum of the planned holds, as far as they lie in the window and before the death.
    pub nominal_hold: Nanos,
}

/// Judges the `files` of all threads of the trial, which ended at `ended`, under the rules of `spec`.
///
/// # Errors
/// When a file cannot be read.
pub fn judge_together(
    spec: &TrialSpec,
    files: &[PathBuf],
    (start, end): (Nanos, Nanos),
    ended: Nanos,
) -> Result<JudgedTogether, TrialError> {
    let control = Arc::new(Control::new(1));
    control.set_window(start, end);
    let mut checker = WindowedChecker::new(spec.concurrency * spec.keys_per_grant, spec.keys, rules(spec), control);
    let open = |path: &PathBuf| Ok(BufReader::with_capacity(PIECE, File::open(path)?));
    let files = files.iter().map(open).collect::<io::Result<Vec<_>>>();
    let (preamble, mut recordings) = files.and_then(Recordings::open).map_err(TrialError::Recording)?;
    let mut events = 0;
    let mut take = |record: Record| {
        events += 1;
        checker.handle(record.at, record.event);
    };
    while recordings.next(&mut take).map_err(TrialError::Recording)? {}
    let judged = checker.finish(ended);
    Ok(JudgedTogether {
        report: judged.report,
        handoff: judged.handoff,
        began: preamble.header.began.map_or(start, Nanos),
        events,
    })
}

/// Ends the recording of the thread number `thread`, over all processes of the trial, whose process was killed at `died`.
///
/// # Errors
/// When the file cannot be read or written, or has no room left: later events of the process are missing then.
pub fn bury(
    spec: &TrialSpec,
    (thread, of): (u32, u32),
    path: &Path,
    died: Nanos,
    (start, end): (Nanos, Nanos),
) -> Result<Buried, TrialError> {
    let (first, count) = Thread { index: thread, of }.share(spec.concurrency);
    let periods = faults::periods(spec)?;
    let mut counting = Counting {
        first,
        keys: spec.keys_per_grant,
        window: (start, end),
        died,
        asked: vec![Nanos::ZERO; count as usize],
        is_closed: spec.pace == Pace::Closed,
        periods: Periods::of(&periods).map(|periods| *periods),
        buried: Buried {
            grants: vec![0; count as usize],
            wait_sum_ns: vec![0; count as usize],
            wait_max_ns: vec![0; count as usize],
            steps: Vec::new(),
            periods: Vec::new(),
            nominal_hold: Nanos::ZERO,
        },
    };
    let clients = first * spec.keys_per_grant..(first + count) * spec.keys_per_grant;
    let append = || {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut last = died;
        let filled = read_recording(&mut BufReader::with_capacity(PIECE, &file), |record| {
            last = last.max(record.at);
            counting.take(record);
        })?;
        if filled == file.metadata()?.len() {
            let what = "no room was left to record what a killed process did";
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        append_deaths(&file, filled, last, clients)
    };
    append().map_err(TrialError::Recording)?;
    Ok(counting.finish())
}

/// Cuts off what was not filled, with a record that was not finished, and appends the deaths of `clients`.
fn append_deaths(file: &File, filled: u64, at: Nanos, clients: std::ops::Range<u32>) -> io::Result<()> {
    file.set_len(filled)?;
    let mut out = BufWriter::new(file);
    out.seek(SeekFrom::Start(filled))?;
    for client in clients {
        let event = Event::Died { client };
        out.write_all(&Record { at, event }.encode())?;
    }
    out.flush()
}

struct Counting {
    first: u32,
    keys: u32,
    window: (Nanos, Nanos),
    died: Nanos,
    /// When each client began to wait: its first attempt, which in a closed loop is when it was due.
    asked: Vec<Nanos>,
    is_closed: bool,
    periods: Option<Periods>,
    buried: Buried,
}

impl Counting {
    fn take(&mut self, record: Record) {
        let client = record.event.client();
        // Each key of a set is a client of the checker.
        if !client.is_multiple_of(self.keys) {
            return;
        }
        let client = (client / self.keys - self.first) as usize;
        let hold = match record.event {
            Event::Waiting { .. } => {
                self.asked[client] = record.at;
                return;
            }
            Event::Granted { hold, .. } => hold,
            _ => return,
        };
        let (start, end) = self.window;
        let over = record.at.after(hold).min(end).min(self.died);
        self.buried.nominal_hold.0 += over.since(record.at.max(start)).0;
        if record.at < start || record.at >= end {
            return;
        }
        let open = record.at.since(start);
        let waited = record.at.since(self.asked[client]);
        self.buried.grants[client] += 1;
        self.buried.wait_sum_ns[client] += waited.0;
        self.buried.wait_max_ns[client] = self.buried.wait_max_ns[client].max(waited.0);
        let step = (open.0 / STEP.0) as usize;
        if self.buried.steps.len() <= step {
            self.buried.steps.resize(step + 1, 0);
        }
        self.buried.steps[step] += 1;
        if let Some(periods) = &mut self.periods {
            let was_due = self.is_closed && self.asked[client] >= start;
            periods.granted(open, was_due.then_some(waited));
        }
    }

    fn finish(mut self) -> Buried {
        let (start, end) = self.window;
        let periods = self.periods.take();
        let figures = periods.map(|periods| periods.finish(end.since(start), Vec::new()));
        self.buried.periods = figures.map_or_else(Vec::new, |figures| figures.periods);
        self.buried
    }
}

#[cfg(test)]
mod tests;
