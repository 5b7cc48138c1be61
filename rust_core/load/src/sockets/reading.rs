//! What was read last from any connection, and how far it has been handed out.

use locks::Nanos;
use wire::{Parsed, common_reply, error_code, error_text, parse, parse_frame};

use super::Sockets;
use super::connection::Connection;
use crate::transport::{Arrival, Broken, ErrorText};

/// Bytes read at once from a connection; a pipelined batch of 1,000 replies takes 5 kB.
const SCRATCH: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) buffer: Vec<u8>,
    /// How many bytes were read.
    count: usize,
    /// The beginning of a reply that was kept, and behind it the bytes that were read; empty when nothing was kept.
    kept: Vec<u8>,
    /// Where the next reply begins.
    start: usize,
    /// Where the last reply began.
    last: usize,
    /// The words of the last reply, if it was a database's error.
    pub(super) error: Option<ErrorText>,
    /// Why nothing that follows can be read.
    pub(super) broken: Option<Broken>,
}

impl Reading {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; SCRATCH],
            count: 0,
            kept: Vec::new(),
            start: 0,
            last: 0,
            error: None,
            broken: None,
        }
    }

    /// So many bytes of a connection are in the buffer.
    pub(super) fn begin(&mut self, count: usize, connection: &mut Connection) {
        self.count = count;
        self.kept = connection.take_kept(&self.buffer[..count]);
        self.start = 0;
    }

    /// The bytes that have not been handed out.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        let all = if self.kept.is_empty() {
            &self.buffer[..self.count]
        } else {
            &self.kept
        };
        &all[self.start..]
    }

    /// So many of them have been.
    #[inline]
    pub(super) fn used(&mut self, used: usize) {
        self.last = self.start;
        self.start += used;
    }

    /// The words of the last reply of Redis.
    pub(super) fn error_text(&self) -> Option<ErrorText> {
        let all = if self.kept.is_empty() { &self.buffer } else { &self.kept };
        let (frame, _) = parse_frame(&all[self.last..self.start]).ok()??;
        Some(ErrorText {
            code: error_code(&frame).unwrap_or_default(),
            text: error_text(&frame).unwrap_or_default(),
        })
    }
}

impl Sockets {
    /// The next reply of Redis among what was read; `false` when the rest is incomplete, or broken. Messages on the way
    /// to it are put aside.
    #[expect(clippy::inline_always, reason = "see `Transport::next`")]
    #[inline(always)]
    pub(super) fn redis_reply(&mut self, index: u32, now: Nanos, into: &mut Arrival) -> bool {
        let connection = &mut self.connections[index as usize];
        if !connection.incomplete.is_pending()
            && let Some((reply, used)) = common_reply(self.reading.rest())
            && connection.answers(reply, into)
        {
            self.reading.used(used);
            return true;
        }
        self.any_reply(index, now, into).unwrap_or_else(|broken| {
            self.reading.broken = Some(broken);
            false
        })
    }

    #[inline(never)]
    fn any_reply(&mut self, index: u32, now: Nanos, into: &mut Arrival) -> Result<bool, Broken> {
        let connection = &mut self.connections[index as usize];
        let reading = &mut self.reading;
        if reading.start == 0 && connection.incomplete.still_needs_more(reading.rest())? {
            return Ok(false);
        }
        loop {
            match parse(reading.rest())? {
                Parsed::Reply { reply, used } => {
                    reading.used(used);
                    if !connection.answers(&reply, into) {
                        return Err(Broken::Unasked);
                    }
                    return Ok(true);
                }
                Parsed::Published { channel, used } => {
                    let key = self.encoders[usize::from(connection.server)].key_of(channel);
                    reading.used(used);
                    if let Some(key) = key {
                        self.channels.published(index, key, now);
                    }
                }
                Parsed::Push { used } => reading.used(used),
                Parsed::NeedMore => {
                    if reading.start == 0 {
                        connection.incomplete.needs_more(reading.rest())?;
                    }
                    return Ok(false);
                }
            }
        }
    }

    /// The next reply of a database.
    pub(super) fn database_reply(&mut self, index: u32, into: &mut Arrival) -> bool {
        let mut error = None;
        let connection = &mut self.connections[index as usize];
        let replied = connection.session_reply(self.reading.rest(), &mut error, into);
        match replied {
            Ok((used, is_answered)) => {
                self.reading.used(used);
                self.reading.error = error;
                is_answered
            }
            Err(broken) => {
                self.reading.broken = Some(broken);
                false
            }
        }
    }

    /// Keeps what is left of the bytes until more of them arrive.
    pub(super) fn keep_rest(&mut self, index: u32) {
        let Reading {
            buffer,
            count,
            kept,
            start,
            ..
        } = &mut self.reading;
        self.connections[index as usize].keep(std::mem::take(kept), &buffer[..*count], *start);
        (*count, *start) = (0, 0);
    }
}
