//! The errors for bytes that are not a message of Postgres.

use thiserror::Error;

use super::MAX_MESSAGE;
use crate::Excerpt;

/// Bytes that are not a message, or a message out of place. Nothing after them on the connection can be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("not a Postgres message: received {found}{}", found.speaker())]
    UnknownType { found: Excerpt },
    #[error("not a Postgres message: its length cannot be right; received {found}")]
    BadLength { found: Excerpt },
    #[error("not a message that a lock can get: longer than {MAX_MESSAGE} bytes; received {found}")]
    TooLong { found: Excerpt },
    #[error("not a Postgres message: {what} has a value it cannot have; received {found}")]
    BadValue { what: &'static str, found: Excerpt },
    #[error("a Postgres message that answers no request: received {found}")]
    OutOfPlace { found: Excerpt },
}
