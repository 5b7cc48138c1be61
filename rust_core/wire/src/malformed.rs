//! The errors for bytes that are not a reply. The reader of the message may have named the port of another kind of
//! server, so each variant contains the wrong bytes, made printable.

use std::fmt;

use thiserror::Error;

use crate::{MAX_DEPTH, MAX_LINE, MAX_REPLY};

/// Bytes that are not a reply, and that no further bytes can turn into one. Nothing after them on the connection can be
/// understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("not a Redis reply: received {found}{}", found.speaker())]
    UnknownType { found: Excerpt },
    #[error("not a Redis reply: the length of {what} must be a number from 0, or -1 for null; received {found}")]
    BadLength { what: &'static str, found: Excerpt },
    #[error("not a Redis reply: {what} has a value it cannot have; received {found}")]
    BadValue { what: &'static str, found: Excerpt },
    #[error("not a Redis reply: {what} must end with CR LF; received {found}")]
    MissingEnd { what: &'static str, found: Excerpt },
    #[error("not a reply that a lock can get: {what} goes on for more than {MAX_LINE} bytes; received {found}")]
    LineTooLong { what: &'static str, found: Excerpt },
    #[error("not a reply that a lock can get: longer than {MAX_REPLY} bytes; received {found}")]
    TooLong { found: Excerpt },
    #[error("not a reply that a lock can get: nested more than {MAX_DEPTH} deep; received {found}")]
    TooDeep { found: Excerpt },
}

/// The first bytes that came: at most [`Self::LONGEST`], shown in quotes with everything unprintable escaped.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt {
    bytes: Box<[u8]>,
    cut: bool,
}

impl Excerpt {
    pub const LONGEST: usize = 32;

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let shown = &bytes[..bytes.len().min(Self::LONGEST)];
        Self {
            bytes: shown.into(),
            cut: shown.len() < bytes.len(),
        }
    }

    /// The kind of server that sends such bytes, for ports that people really confuse.
    pub(crate) fn speaker(&self) -> &'static str {
        const SPEAKERS: [(&[u8], &str); 7] = [
            (b"HTTP/", ", which is how an HTTP server answers"),
            (b"<", ", which is how an HTTP server answers"),
            (b"\x15\x03", ", which is how a TLS server answers"),
            (b"-ERR", ", which is how a Redis server answers"),
            (b"SSH-", ", which is how an SSH server answers"),
            (b"ERROR\r\n", ", which is how a memcached server answers"),
            (b"220", ", which is how an FTP or a mail server answers"),
        ];
        let known = SPEAKERS.iter().find(|(start, _)| self.bytes.starts_with(start));
        known.map_or("", |(_, words)| words)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\"{}",
            self.bytes.escape_ascii(),
            if self.cut { " and more" } else { "" }
        )
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
