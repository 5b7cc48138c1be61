//! Reduces all messages that answer one block to one reply.
//!
//! The reader remembers what of a block has been answered, so that each message is read once, however the bytes of the
//! block arrive.

use locks::{ErrorKind, Reply, Statement};
use postgres_protocol::message::backend as tags;
use thiserror::Error;

use super::messages::{self, Message};
use super::server_error::Fields;
use super::{Malformed, ServerError};
use crate::Excerpt;

/// What the reader must know about a block, because the messages that answer it do not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// The block ends with `COMMIT`, and `ROLLBACK` as the answer means that the transaction had failed.
    Commits,
    Other,
}

impl BlockKind {
    #[inline]
    pub(crate) const fn of(statement: Statement) -> Self {
        if statement.commits() {
            Self::Commits
        } else {
            Self::Other
        }
    }
}

/// Why the session has ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the server ended the session: {0}")]
    Ended(ServerError),
}

/// The reply under way in one session.
#[derive(Clone, Debug, Default)]
pub struct ReplyReader {
    /// The result of the statement so far.
    result: Option<Reply>,
    kind: Option<ErrorKind>,
    /// The error with its text, until it is taken; not stored for a conflict, because conflicts are many.
    server_error: Option<Box<ServerError>>,
}

impl ReplyReader {
    /// Reads from the front of `buf` up to the end of the answer to `block`, the oldest block without a reply. Returns
    /// how many bytes were used, and the reply, or `None` when more bytes must come. `block` is `None` when nothing was
    /// asked.
    ///
    /// # Errors
    /// When the server ended the session, or no further bytes can make a reply.
    #[inline]
    pub fn parse(&mut self, buf: &[u8], block: Option<BlockKind>) -> Result<(usize, Option<Reply>), Broken> {
        let mut used = 0;
        while let Some(message) = messages::next(&buf[used..])? {
            let here = &buf[used..];
            used += message.used;
            if messages::is_unasked(message.tag) {
                continue;
            }
            if let Some(reply) = self.handle(message, here, block)? {
                return Ok((used, Some(reply)));
            }
        }
        Ok((used, None))
    }

    /// The error with its text, if the last reply was one.
    #[inline]
    pub fn take_error(&mut self) -> Option<Box<ServerError>> {
        self.server_error.take()
    }

    #[inline]
    fn handle(&mut self, message: Message<'_>, here: &[u8], block: Option<BlockKind>) -> Result<Option<Reply>, Broken> {
        let Some(block) = block else {
            return Err(unasked(message, here));
        };
        match message.tag {
            tags::BIND_COMPLETE_TAG | tags::PARSE_COMPLETE_TAG | tags::CLOSE_COMPLETE_TAG | tags::NO_DATA_TAG => {}
            tags::DATA_ROW_TAG => {
                let row = row(message.body).ok_or_else(|| bad("a row", here))?;
                // Locks ask for one row.
                self.result = Some(if self.result.is_none() { row } else { Reply::Other });
            }
            tags::COMMAND_COMPLETE_TAG => self.completed(message.body, block),
            tags::ERROR_RESPONSE_TAG => {
                let fields = Fields::of(message.body);
                if fields.is_fatal {
                    return Err(Broken::Ended(fields.server_error()));
                }
                self.refused(&fields);
            }
            tags::READY_FOR_QUERY_TAG if matches!(message.body, [b'I' | b'T' | b'E']) => {
                let (result, error) = (self.result.take(), self.kind.take());
                return Ok(Some(error.map_or(result.unwrap_or(Reply::Ok), Reply::Error)));
            }
            tags::READY_FOR_QUERY_TAG => return Err(bad("the state of a session", here).into()),
            _ => return Err(out_of_place(here).into()),
        }
        Ok(None)
    }

    /// The first error of a block is the reply; later ones follow from it.
    #[cold]
    fn refused(&mut self, fields: &Fields<'_>) {
        if self.kind.is_none() {
            self.kind = Some(fields.kind());
            self.server_error = (!fields.kind().is_contention()).then(|| Box::new(fields.server_error()));
        }
    }

    #[cold]
    fn rolled_back(&mut self) {
        if self.kind.is_none() {
            self.kind = Some(ErrorKind::InFailedTransaction);
            self.server_error = Some(Box::new(ServerError {
                text: "the server answered COMMIT with ROLLBACK: the transaction had failed before".to_owned(),
                code: *b"25P02",
            }));
        }
    }

    /// A statement of the block was carried out.
    #[inline]
    fn completed(&mut self, tag: &[u8], block: BlockKind) {
        match tag {
            b"BEGIN\0" | b"COMMIT\0" => {}
            b"ROLLBACK\0" => {
                // The transaction had failed before, and its end was carried out all the same.
                if block == BlockKind::Commits {
                    self.rolled_back();
                }
            }
            _ => {
                self.result.get_or_insert(Reply::Nil);
            }
        }
    }
}

/// The content of a row: one column, in binary. `None` when it is not a row.
#[inline]
fn row(body: &[u8]) -> Option<Reply> {
    let (columns, values) = body.split_first_chunk()?;
    if u16::from_be_bytes(*columns) != 1 {
        return Some(Reply::Other);
    }
    let (length, value) = values.split_first_chunk()?;
    let length = i32::from_be_bytes(*length);
    if length == -1 && value.is_empty() {
        return Some(Reply::Ok);
    }
    if usize::try_from(length) != Ok(value.len()) {
        return None;
    }
    // `void` has no bytes; other types of the same length would be read as numbers too, but no lock asks for any.
    Some(match value.len() {
        0 => Reply::Ok,
        1 | 4 | 8 => Reply::Int(big_endian(value)),
        _ => Reply::Other,
    })
}

/// A number of at most 8 bytes; a single byte is a boolean.
#[inline]
fn big_endian(bytes: &[u8]) -> i64 {
    let fill = if bytes[0] & 0x80 == 0 { 0 } else { u8::MAX };
    let mut number = [fill; 8];
    number[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_be_bytes(number)
}

#[cold]
fn unasked(message: Message<'_>, here: &[u8]) -> Broken {
    if message.tag == tags::ERROR_RESPONSE_TAG {
        // For example that the server shuts down, which it reports to idle sessions too.
        Broken::Ended(Fields::of(message.body).server_error())
    } else {
        out_of_place(here).into()
    }
}

#[cold]
fn out_of_place(here: &[u8]) -> Malformed {
    Malformed::OutOfPlace {
        found: Excerpt::of(here),
    }
}

#[cold]
fn bad(what: &'static str, here: &[u8]) -> Malformed {
    Malformed::BadValue {
        what,
        found: Excerpt::of(here),
    }
}
