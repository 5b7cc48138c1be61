//! What was read last from any connection, and how far it has been handed out.

use locks::{Nanos, Reply};
use wire::{Parsed, error_code, error_text, parse, parse_frame};

use super::Sockets;
use super::connection::Awaited;
use crate::transport::{Broken, ErrorText};

/// Bytes read at once from a connection; a pipelined batch of 1,000 replies takes 5 kB.
const SCRATCH: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) buffer: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the last reply began.
    last: usize,
    /// The words of the last reply, if it was a database's error.
    pub(super) error: Option<ErrorText>,
}

impl Reading {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; SCRATCH],
            start: 0,
            end: 0,
            last: 0,
            error: None,
        }
    }

    /// Room to read into, after the beginning of a reply that was kept: at least as much again.
    pub(super) fn room_after(&mut self, partial: &[u8]) -> &mut [u8] {
        let kept = partial.len();
        if self.buffer.len() < kept * 2 {
            self.buffer.resize(kept * 2, 0);
        }
        self.buffer[..kept].copy_from_slice(partial);
        &mut self.buffer[kept..]
    }

    /// The first `end` bytes are to be handed out.
    pub(super) fn begin(&mut self, end: usize) {
        (self.start, self.end) = (0, end);
    }

    /// The words of the last reply of Redis.
    pub(super) fn error_text(&self) -> Option<ErrorText> {
        let (frame, _) = parse_frame(&self.buffer[self.last..self.start]).ok()??;
        Some(ErrorText {
            code: error_code(&frame).unwrap_or_default(),
            text: error_text(&frame).unwrap_or_default(),
        })
    }
}

impl Sockets {
    /// The next reply or message of Redis among the bytes from `start` on; `None` when the rest is incomplete.
    pub(super) fn redis_reply(&mut self, index: u32, now: Nanos) -> Result<Option<(Awaited, Reply)>, Broken> {
        loop {
            let Reading {
                buffer,
                start,
                end,
                last,
                ..
            } = &mut self.reading;
            match parse(&buffer[*start..*end])? {
                Parsed::Reply { reply, used } => {
                    *last = *start;
                    *start += used;
                    let connection = &mut self.connections[index as usize];
                    let awaited = connection.awaited.pop_front().ok_or(Broken::Unasked)?;
                    return Ok(Some((awaited, reply)));
                }
                Parsed::Published { channel, used } => {
                    let server = self.connections[index as usize].server;
                    let key = self.encoders[usize::from(server)].key_of(channel);
                    *start += used;
                    if let Some(key) = key {
                        self.channels.published(index, key, now);
                    }
                }
                Parsed::Push { used } => *start += used,
                Parsed::NeedMore => return Ok(None),
            }
        }
    }

    /// The next reply of a database.
    pub(super) fn database_reply(&mut self, index: u32) -> Result<Option<(Awaited, Reply)>, Broken> {
        let Reading {
            buffer,
            start,
            end,
            error,
            ..
        } = &mut self.reading;
        let (used, reply) = self.connections[index as usize].session_reply(&buffer[*start..*end], error)?;
        *start += used;
        Ok(reply)
    }

    /// Keeps what is left of the bytes until more of them arrive.
    pub(super) fn keep_rest(&mut self, index: u32) {
        let Reading { buffer, start, end, .. } = &mut self.reading;
        self.connections[index as usize].keep(&buffer[*start..*end]);
        *start = *end;
    }
}
