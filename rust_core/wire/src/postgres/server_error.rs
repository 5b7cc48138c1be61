//! What an error of Postgres means to a lock, and how it is shown to people.

use std::fmt;

use locks::ErrorKind;
use memchr::memchr;

use crate::errors::printable;

/// An error in the server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// At most 200 characters, none of them a control character.
    pub text: String,
    /// SQLSTATE; `?????` if the server gave none.
    pub code: [u8; 5],
}

impl ServerError {
    /// The code as text.
    pub fn sqlstate(&self) -> String {
        self.code.escape_ascii().to_string()
    }

    pub fn kind(&self) -> ErrorKind {
        kind_of(self.code)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.code.escape_ascii())
    }
}

/// The relevant fields of an `ErrorResponse`, borrowed from the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) code: [u8; 5],
    /// Whether the server also ends the session.
    pub(crate) is_fatal: bool,
    text: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads the body of a message: fields of a type and a text up to a zero, and a zero after them. A missing field is
    /// unknown, and the rest is still used.
    pub(crate) fn of(mut body: &'a [u8]) -> Self {
        let mut fields = Self {
            code: *b"?????",
            is_fatal: false,
            text: b"",
        };
        while let Some((&kind, rest)) = body.split_first() {
            let Some(end) = memchr(0, rest) else { break };
            let value = &rest[..end];
            match kind {
                b'C' => fields.code = value.try_into().unwrap_or(fields.code),
                // `V` is `S` in English, whatever the server's language; poolers may omit it.
                b'S' | b'V' => fields.is_fatal |= matches!(value, b"FATAL" | b"PANIC"),
                b'M' => fields.text = value,
                _ => {}
            }
            body = &rest[end + 1..];
        }
        fields
    }

    #[inline]
    pub(crate) fn kind(&self) -> ErrorKind {
        kind_of(self.code)
    }

    pub(crate) fn server_error(&self) -> ServerError {
        ServerError {
            text: printable(self.text),
            code: self.code,
        }
    }
}

/// The meaning of a SQLSTATE.
fn kind_of(code: [u8; 5]) -> ErrorKind {
    match &code {
        b"40001" => ErrorKind::Serialization,
        b"23514" => ErrorKind::CheckViolation,
        b"40P01" => ErrorKind::Deadlock,
        b"55P03" => ErrorKind::LockNotAvailable,
        b"57014" => ErrorKind::Canceled,
        b"25P02" => ErrorKind::InFailedTransaction,
        b"53300" => ErrorKind::TooManyConnections,
        // Shut down, crashed, starting up, database dropped, idle for too long outside or inside a transaction; and any
        // failure of the connection.
        b"57P01" | b"57P02" | b"57P03" | b"57P04" | b"57P05" | b"25P03" | [b'0', b'8', ..] => ErrorKind::SessionEnded,
        b"25006" => ErrorKind::ReadOnly,
        b"53200" => ErrorKind::OutOfMemory,
        b"28000" | b"28P01" | b"42501" => ErrorKind::NoAuth,
        _ => ErrorKind::Other,
    }
}
