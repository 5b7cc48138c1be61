//! Turns what the threads of a trial have recorded into the lines of a history.
//!
//! Promises: the lines stand in the order in which the trial's own checker took the events.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use check::Event;
use locks::{Fence, Mode, Nanos};
use serde::{Deserialize, Serialize};

use crate::header::Header;
use crate::line::MOST_NS;
use crate::record::Record;
use crate::recordings::Recordings;

const MAGIC: [u8; 8] = *b"pybhist1";
/// The preamble is no longer than this.
const LONGEST_PREAMBLE: u32 = 1 << 20;
/// The records begin at a multiple of this.
const PAGE: usize = 4096;
/// What stands at the front of the file of a thread, before its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preamble {
    pub header: Header,
    /// The name of a key is this prefix, then the number of the key in braces, padded with zeros to `key_digits`.
    pub key_prefix: String,
    pub key_digits: usize,
}

impl Preamble {
    /// The bytes of the preamble, filled up to a whole number of pages.
    ///
    /// # Panics
    /// Never: a preamble is plain data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("a preamble is plain data");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&text);
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes
    }

    /// Reads the preamble, up to the first record; and its length.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<(Self, u64)> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut start = [0; 12];
        from.read_exact(&mut start)?;
        if start[..8] != MAGIC {
            return Err(damaged("not the recording of a trial"));
        }
        let length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if length > LONGEST_PREAMBLE {
            return Err(damaged("the preamble is too long"));
        }
        let whole = (start.len() + length as usize).next_multiple_of(PAGE);
        let mut text = vec![0; whole - start.len()];
        from.read_exact(&mut text)?;
        let preamble = serde_json::from_slice(&text[..length as usize]).map_err(io::Error::from)?;
        Ok((preamble, whole as u64))
    }
}

/// The lines of a recorded trial, in pieces.
#[derive(Debug)]
pub struct RecordedTrial<R> {
    preamble: Preamble,
    recordings: Recordings<R>,
    names: Names,
    /// The borders of the window that have not been written.
    window: Vec<(Nanos, &'static str)>,
    ended: Option<(Nanos, BTreeMap<String, u64>)>,
    begun: bool,
}

impl<R: Read> RecordedTrial<R> {
    /// Of the files of all threads of one trial. `window` has the times at which the window began and ended.
    ///
    /// # Errors
    /// When a file is not the recording of a thread.
    pub fn new(files: Vec<R>, window: (Option<u64>, Option<u64>)) -> io::Result<Self> {
        let (preamble, recordings) = Recordings::open(files)?;
        let borders = [(window.1, "window-ends"), (window.0, "window-begins")];
        Ok(Self {
            names: Names::of(&preamble)?,
            preamble,
            recordings,
            window: borders
                .into_iter()
                .filter_map(|(at, name)| Some((Nanos(at?), name)))
                .collect(),
            ended: None,
            begun: false,
        })
    }

    /// The number of the trial, where it is not the one that the recording names.
    pub fn number(&mut self, number: u32) {
        if let Some(trial) = &mut self.preamble.header.trial {
            trial.trial = number;
        }
    }

    /// The trial ended at `at`; `counts` has what no event shows.
    pub fn ended(&mut self, at: Nanos, counts: BTreeMap<String, u64>) {
        self.ended = Some((at, counts));
    }

    /// Appends the next lines to `out`; false when nothing is left.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&self.preamble.header.line());
        }
        let (names, window) = (&self.names, &mut self.window);
        let mut written = Ok(());
        let is_over = !self.recordings.next(|record| {
            if written.is_ok() {
                written = write_event(out, names, window, record);
            }
        })?;
        written?;
        if is_over && let Some((at, counts)) = self.ended.take() {
            write_borders(out, &mut self.window, at)?;
            let counts = serde_json::to_string(&counts)?;
            writeln!(out, r#"{{"t":{},"event":"ended","counts":{counts}}}"#, at.0)?;
        }
        Ok(!is_over)
    }
}

/// The names of keys and clients as JSON.
#[derive(Debug)]
struct Names {
    /// The prefix of a key, escaped, without the quotes.
    key_prefix: String,
    key_digits: usize,
    parts: u32,
}

impl Names {
    fn of(preamble: &Preamble) -> io::Result<Self> {
        let quoted = serde_json::to_string(&preamble.key_prefix)?;
        Ok(Self {
            key_prefix: quoted[1..quoted.len() - 1].to_owned(),
            key_digits: preamble.key_digits.min(10),
            parts: preamble
                .header
                .trial
                .as_ref()
                .map_or(1, |trial| trial.keys_per_grant)
                .max(1),
        })
    }
}

fn write_borders(out: &mut Vec<u8>, window: &mut Vec<(Nanos, &'static str)>, until: Nanos) -> io::Result<()> {
    while let Some((at, name)) = window.pop_if(|(at, _)| *at <= until) {
        writeln!(out, r#"{{"t":{},"event":"{name}"}}"#, at.0)?;
    }
    Ok(())
}

fn write_event(
    out: &mut Vec<u8>,
    names: &Names,
    window: &mut Vec<(Nanos, &'static str)>,
    record: Record,
) -> io::Result<()> {
    let Record { at, event } = record;
    if window.last().is_some_and(|(border, _)| *border <= at) {
        write_borders(out, window, at)?;
    }
    let (client, part) = (event.client() / names.parts, event.client() % names.parts);
    write!(out, r#"{{"t":{},"client":"{client}""#, at.0)?;
    if part > 0 {
        write!(out, r#","part":{part}"#)?;
    }
    match event {
        Event::Waiting { key, mode, .. } => {
            let (prefix, digits, shared) = (&names.key_prefix, names.key_digits, mode == Mode::Shared);
            let mode = if shared { r#","mode":"shared""# } else { "" };
            write!(
                out,
                r#","event":"acquire","key":"{prefix}{{{:0digits$}}}"{mode}"#,
                key.0
            )?;
        }
        Event::Granted { until, hold, fence, .. } => write_grant(out, until, hold, fence)?,
        Event::Renewed { until, .. } => {
            write!(out, r#","event":"renewed","until":"#)?;
            write_until(out, until)?;
        }
        Event::CutOff { placed, .. } => write!(out, r#","event":"cut-off","placed":{placed}"#)?,
        Event::Queued { .. } => out.extend_from_slice(br#","event":"queued""#),
        Event::GaveUp { .. } => out.extend_from_slice(br#","event":"gave-up""#),
        Event::LeaseLost { .. } => out.extend_from_slice(br#","event":"lost""#),
        Event::HungUp { .. } => out.extend_from_slice(br#","event":"hung-up""#),
        Event::Stopped { .. } => out.extend_from_slice(br#","event":"stopped""#),
        Event::Died { .. } => out.extend_from_slice(br#","event":"died""#),
        Event::Released { .. } => out.extend_from_slice(br#","event":"released""#),
        Event::DeniedRelease { .. } => out.extend_from_slice(br#","event":"denied""#),
        Event::DriverStalled { .. } => out.extend_from_slice(br#","event":"driver-stalled""#),
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn write_grant(out: &mut Vec<u8>, until: Nanos, hold: Nanos, fence: Option<Fence>) -> io::Result<()> {
    write!(out, r#","event":"granted","until":"#)?;
    write_until(out, until)?;
    if hold > Nanos::ZERO {
        write!(out, r#","hold":{}"#, hold.0.min(MOST_NS))?;
    }
    if let Some(fence) = fence {
        write!(out, r#","fence":{}"#, fence.0)?;
    }
    Ok(())
}

fn write_until(out: &mut Vec<u8>, until: Nanos) -> io::Result<()> {
    if until.0 > MOST_NS {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    write!(out, "{}", until.0)
}
