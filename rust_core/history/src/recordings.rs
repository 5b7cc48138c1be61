//! The events that the threads of a trial have recorded, as one stream in the order in which a checker takes them.
//!
//! Promises: bounded memory, however far the threads are apart: a file is read on only while few of its events wait to
//! be delivered.

use std::io::{self, Read};

use check::Merge;

use crate::Preamble;
use crate::record::{Record, SIZE};

/// How many records are read from one thread before the next.
const BATCH: usize = 4096;

/// The recordings of one trial.
#[derive(Debug)]
pub struct Recordings<R> {
    threads: Vec<Thread<R>>,
    /// `None` for a thread that records alone: its checker takes the events in the order in which they were recorded.
    merge: Option<Merge>,
}

#[derive(Debug)]
struct Thread<R> {
    bytes: R,
    is_over: bool,
}

impl<R: Read> Recordings<R> {
    /// Of the files of all threads of one trial, and what stands at the front of the first of them.
    ///
    /// # Errors
    /// When a file is not the recording of a thread.
    pub fn open(mut files: Vec<R>) -> io::Result<(Preamble, Self)> {
        let mut preamble = None;
        for file in &mut files {
            let (of_file, _) = Preamble::read(file)?;
            preamble.get_or_insert(of_file);
        }
        let preamble = preamble.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file"))?;
        let merge = (files.len() > 1).then(|| Merge::new(files.len(), BATCH));
        let threads = files.into_iter().map(|bytes| Thread { bytes, is_over: false });
        Ok((
            preamble,
            Self {
                threads: threads.collect(),
                merge,
            },
        ))
    }

    /// Hands the next events on, in order; false when nothing is left.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn next(&mut self, mut deliver: impl FnMut(Record)) -> io::Result<bool> {
        let Some(merge) = &mut self.merge else {
            let thread = &mut self.threads[0];
            thread.read(deliver)?;
            return Ok(!thread.is_over);
        };
        // A thread with many waiting events holds nobody back, unless they all have the same stamp.
        let is_full = |merge: &Merge, index| merge.waiting(index) >= BATCH;
        let all_full = (0..self.threads.len()).all(|index| self.threads[index].is_over || is_full(merge, index));
        for (index, thread) in self.threads.iter_mut().enumerate() {
            if thread.is_over || (is_full(merge, index) && !all_full) {
                continue;
            }
            thread.read(|record| merge.push(index, record.at, record.event))?;
            if thread.is_over {
                merge.finish(index);
            }
        }
        merge.drain(|at, event| deliver(Record { at, event }));
        Ok(self.threads.iter().any(|thread| !thread.is_over))
    }
}

impl<R: Read> Thread<R> {
    /// Reads the next batch.
    fn read(&mut self, mut each: impl FnMut(Record)) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(record) = read_record(&mut self.bytes)? else {
                self.is_over = true;
                return Ok(());
            };
            each(record);
        }
        Ok(())
    }
}

/// Reads the recording of one thread, whose process may have been killed, and returns how many bytes of it are filled.
///
/// # Errors
/// When that is not the recording of a thread, or cannot be read.
pub fn read_recording(file: &mut impl Read, mut each: impl FnMut(Record)) -> io::Result<u64> {
    let (_, mut bytes) = Preamble::read(file)?;
    while let Some(record) = read_record(file)? {
        bytes += SIZE as u64;
        each(record);
    }
    Ok(bytes)
}

fn read_record(from: &mut impl Read) -> io::Result<Option<Record>> {
    let mut bytes = [0; SIZE];
    match from.read_exact(&mut bytes) {
        Ok(()) => Ok(Record::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
