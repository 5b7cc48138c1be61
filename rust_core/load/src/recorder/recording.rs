//! Records what a thread reports to its judge in a mapped file, so that the events survive the death of the process.
//!
//! An event is in the page cache as soon as it is stored, and it is stored before its effect leaves: a grant before its
//! work begins, a release before the write that sends it. Only a failure of the machine itself loses it.
//!
//! Promises: a disk without space, or another failure of the file, ends the recording with an error, and never the
//! process: space is allocated before it is mapped. A file without an empty record behind its last one ran out of room,
//! also when the process was killed before it could say so.
//! Does not promise anything when another process truncates the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, compiler_fence};

use check::{Event, Rules};
use history::{Header, Preamble, Promises, RECORD_SIZE, Record, TrialName, VERSION};
use locks::Nanos;
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::judge::Judge;
use crate::TrialError;
use crate::spec::TrialSpec;

/// How much is allocated and mapped at a time, about 1 MiB: a whole number of pages, and of records.
const STEP: usize = 52 * 20_480;

/// Where a trial records its events, and what the header of its history says.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file of each thread.
    pub files: Vec<PathBuf>,
    pub lock: String,
    /// The promises of the lock that are no rules of the checker.
    pub promises: Promises,
    pub trial: TrialName,
}

/// The files of a recorded trial, and the times that no event has.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub files: Vec<PathBuf>,
    /// When the window began and ended; `None` where the trial ended before.
    pub window: (Option<Nanos>, Option<Nanos>),
    pub ended: Nanos,
}

/// A judge whose events are recorded first.
#[derive(Debug)]
pub(crate) struct RecordedJudge {
    recorder: ThreadRecorder,
    pub(crate) judge: Judge,
}

impl RecordedJudge {
    #[inline(never)]
    pub(crate) fn record(&mut self, at: Nanos, event: Event) {
        // A lock that excludes nobody has no beliefs to judge later, either.
        if !matches!(self.judge, Judge::NotJudged) {
            self.recorder.append(Record { at, event });
        }
        self.judge.pass_on(at, event);
    }
}

impl Recording {
    /// Puts a recorder before each of the judges of a trial that began at `began`.
    pub(crate) fn before(
        &self,
        judges: Vec<Judge>,
        spec: &TrialSpec,
        rules: &Rules,
        began: Nanos,
    ) -> Result<Vec<Judge>, TrialError> {
        if self.files.len() != judges.len() {
            return Err(TrialError::Field("recording"));
        }
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(TrialError::Recording)?;
        let preamble = Preamble {
            header: Header {
                pybench_history: VERSION,
                clock: history::Clock::Monotonic,
                boot_id: boot_id.trim().to_owned(),
                lock: Some(self.lock.clone()),
                promises: self.promises.clone().with_rules(rules),
                began: Some(began.0),
                trial: Some(self.trial.clone()),
            },
            key_prefix: String::from_utf8_lossy(&spec.key_prefix).into_owned(),
            key_digits: spec.keys.saturating_sub(1).to_string().len(),
        };
        let preamble = preamble.encode();
        let put = |(judge, file): (_, &PathBuf)| {
            let recorder = ThreadRecorder::create(file, &preamble)?;
            Ok(Judge::Recorded(Box::new(RecordedJudge { recorder, judge })))
        };
        judges
            .into_iter()
            .zip(&self.files)
            .map(put)
            .collect::<io::Result<_>>()
            .map_err(TrialError::Recording)
    }
}

/// Takes the recorders off again, once nothing follows. Returns the first error of any.
pub(crate) fn finish(judges: Vec<Judge>) -> Result<Vec<Judge>, TrialError> {
    let finished = judges.into_iter().map(|judge| match judge {
        Judge::Recorded(recorded) => {
            let RecordedJudge { recorder, judge } = *recorded;
            recorder.finish().map(|()| judge)
        }
        judge => Ok(judge),
    });
    finished.collect::<io::Result<_>>().map_err(TrialError::Recording)
}

/// The file of one thread.
#[derive(Debug)]
struct ThreadRecorder {
    file: File,
    /// The part of the file that is being filled; `None` after an error.
    mapped: Option<MmapMut>,
    /// Where this part begins in the file, and how much of it is filled.
    begins: u64,
    filled: usize,
    error: Option<io::Error>,
}

impl ThreadRecorder {
    /// Creates the file, or replaces that of a killed trial.
    fn create(path: &Path, preamble: &[u8]) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(preamble, 0)?;
        let begins = preamble.len() as u64;
        Ok(Self {
            mapped: Some(map(&file, begins)?),
            file,
            begins,
            filled: 0,
            error: None,
        })
    }

    fn append(&mut self, record: Record) {
        let Some(mapped) = &mut self.mapped else { return };
        let room = &mut mapped[self.filled..self.filled + RECORD_SIZE];
        let bytes = record.encode();
        room[1..].copy_from_slice(&bytes[1..]);
        // A process may be killed between any two stores: with its first byte the record is whole.
        compiler_fence(Ordering::SeqCst);
        room[0] = bytes[0];
        compiler_fence(Ordering::SeqCst);
        self.filled += RECORD_SIZE;
        // At once, not with the next event: only a file that could not grow stays full.
        if self.filled == STEP {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        match map(&self.file, self.begins + STEP as u64) {
            Ok(mapped) => {
                self.mapped = Some(mapped);
                self.begins += STEP as u64;
                self.filled = 0;
            }
            Err(error) => {
                self.mapped = None;
                self.error = Some(error);
            }
        }
    }

    /// Cuts off what was not filled, but for one empty record.
    fn finish(self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        drop(self.mapped);
        self.file.set_len(self.begins + (self.filled + RECORD_SIZE) as u64)
    }
}

/// Allocates and maps a step of `file` from `begins` on.
fn map(file: &File, begins: u64) -> io::Result<MmapMut> {
    match fallocate(file, FallocateFlags::empty(), begins, STEP as u64) {
        // A file system that cannot allocate ahead does so when it is written.
        Err(Errno::OPNOTSUPP) => file.write_all_at(&vec![0; STEP], begins)?,
        other => other?,
    }
    // SAFETY: the file belongs to this trial alone, and was just made long enough. Nothing in this process truncates it
    // while it is mapped; the docs say that no other process may.
    #[expect(
        unsafe_code,
        reason = "another process could change a mapped file, which no type can rule out"
    )]
    unsafe {
        MmapOptions::new().offset(begins).len(STEP).map_mut(file)
    }
}

#[cfg(test)]
mod tests;
