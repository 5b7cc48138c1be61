//! Reads histories from the bytes of files, handed in piece by piece.

use crate::header::Header;
use crate::line::Line;
use crate::merging::{Judged, judge};
use crate::section::Section;

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1 << 16;

/// What breaks the format, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct FormatError {
    pub file: String,
    /// From 1.
    pub line: u32,
    pub what: String,
}

/// Files being read, one after another: `begin`, `feed` with the bytes, `end`, for each; then `finish`.
///
/// A history of a trial is judged as soon as the next one begins. All other histories are merged into one.
#[derive(Debug, Default)]
pub struct Reading {
    file: String,
    line: u32,
    /// The beginning of a line whose end has not been fed.
    unfinished: Vec<u8>,
    now: Now,
    merged: Option<Section>,
    trial: Option<Section>,
    judged: Vec<Judged>,
}

/// Which section the lines belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Now {
    #[default]
    NoHeader,
    Merged,
    Trial,
}

impl Reading {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that follow are those of `file`.
    pub fn begin(&mut self, file: &str) {
        file.clone_into(&mut self.file);
        self.line = 0;
        self.unfinished.clear();
        self.now = Now::NoHeader;
    }

    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let mut rest = bytes;
        while let Some(place) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..place], &rest[place + 1..]);
            rest = after;
            if self.unfinished.is_empty() {
                self.whole_line(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.unfinished);
                whole.extend_from_slice(line);
                self.whole_line(&whole)?;
                whole.clear();
                self.unfinished = whole;
            }
        }
        self.unfinished.extend_from_slice(rest);
        if self.unfinished.len() > LONGEST_LINE {
            self.line = self.line.saturating_add(1);
            return Err(self.too_long());
        }
        Ok(())
    }

    /// The file has ended. A last line that was torn off, because its writer was killed, is left out and noted.
    pub fn end(&mut self) -> Result<(), FormatError> {
        let rest = std::mem::take(&mut self.unfinished);
        if !rest.is_empty() {
            let taken = self.whole_line(&rest);
            if self.now == Now::NoHeader {
                taken?;
            } else if taken.is_err() {
                let torn = (self.file.clone(), self.line);
                if let Some(section) = self.section() {
                    section.torn.push(torn);
                }
            }
        }
        if self.now == Now::NoHeader {
            self.line = 1;
            return Err(self.error("the file is empty: a history begins with its header".to_owned()));
        }
        self.judge_trial();
        Ok(())
    }

    /// All histories that were read, judged: those of trials in their order, then the merged one.
    #[must_use]
    pub fn finish(mut self) -> Vec<Judged> {
        self.judge_trial();
        self.judged.extend(self.merged.take().map(judge));
        self.judged
    }

    fn whole_line(&mut self, line: &[u8]) -> Result<(), FormatError> {
        self.line = self.line.saturating_add(1);
        if line.len() > LONGEST_LINE {
            return Err(self.too_long());
        }
        let number = self.line;
        if self.now == Now::NoHeader {
            return self.header(line);
        }
        match Line::parse(line) {
            Ok(parsed) => {
                let section = self.section().expect("a header has begun a section");
                section.take(parsed, number).map_err(|what| self.error(what))
            }
            // Only a line that is no event is searched for the name of a header's field.
            Err(_) if contains(line, b"\"pybench_history\"") => self.header(line),
            Err(what) => Err(self.error(what)),
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), FormatError> {
        let header = Header::parse(line).map_err(|what| self.error(format!("not the header of a history: {what}")))?;
        if header.trial.is_some() {
            self.judge_trial();
            let mut section = Section::new(header);
            section.begin_source(&self.file);
            self.trial = Some(section);
            self.now = Now::Trial;
            return Ok(());
        }
        if let Some(differs) = self
            .merged
            .as_ref()
            .and_then(|merged| difference(&merged.header, &header))
        {
            return Err(self.error(differs.to_owned()));
        }
        let merged = self.merged.get_or_insert_with(|| Section::new(header));
        merged.begin_source(&self.file);
        self.now = Now::Merged;
        Ok(())
    }

    fn section(&mut self) -> Option<&mut Section> {
        match self.now {
            Now::NoHeader => None,
            Now::Merged => self.merged.as_mut(),
            Now::Trial => self.trial.as_mut(),
        }
    }

    fn judge_trial(&mut self) {
        self.judged.extend(self.trial.take().map(judge));
    }

    fn error(&self, what: String) -> FormatError {
        FormatError {
            file: self.file.clone(),
            line: self.line,
            what,
        }
    }

    fn too_long(&self) -> FormatError {
        self.error(format!("the line is longer than {LONGEST_LINE} bytes"))
    }
}

/// Why two histories cannot be merged.
fn difference(first: &Header, second: &Header) -> Option<&'static str> {
    if first.boot_id != second.boot_id {
        Some("another `boot_id` than in the files before: clocks of other machines or boots cannot be compared")
    } else if first.promises != second.promises {
        Some("other `promises` than in the files before: one verdict needs one set of promises")
    } else {
        None
    }
}

fn contains(line: &[u8], what: &[u8]) -> bool {
    line.windows(what.len()).any(|window| window == what)
}
