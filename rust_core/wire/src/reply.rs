//! A reply reduced to what a lock asks of it.

use locks::Reply;

use crate::{Frame, Malformed, error_kind, parse_frame};

/// What stands at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The answer to the oldest command that has none yet, `used` bytes long.
    Reply { reply: Reply, used: usize },
    /// Something the server said unasked, `used` bytes long. It answers no command.
    Push { used: usize },
    /// No whole reply yet: ask again with more bytes behind these.
    NeedMore,
}

/// Reads one reply from the front of `buf`.
///
/// # Errors
/// When no further bytes can make a reply of at most [`crate::MAX_REPLY`] bytes out of `buf`.
#[inline]
pub fn parse(buf: &[u8]) -> Result<Parsed, Malformed> {
    // Nearly all that a lock is ever answered; the reader of frames gives the same, more slowly.
    let (reply, used) = match *buf {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => (Reply::Ok, 5),
        [b':', digit @ b'0'..=b'9', b'\r', b'\n', ..] => (Reply::Int(i64::from(digit - b'0')), 4),
        [b'_', b'\r', b'\n', ..] => (Reply::Nil, 3),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => (Reply::Nil, 5),
        _ => return parse_any(buf),
    };
    Ok(Parsed::Reply { reply, used })
}

fn parse_any(buf: &[u8]) -> Result<Parsed, Malformed> {
    let Some((frame, used)) = parse_frame(buf)? else {
        return Ok(Parsed::NeedMore);
    };
    let reply = match frame {
        Frame::Simple(b"OK") => Reply::Ok,
        Frame::Null => Reply::Nil,
        Frame::Integer(number) => Reply::Int(number),
        Frame::Error(line) | Frame::BulkError(line) => Reply::Error(error_kind(line)),
        Frame::Push(_) => return Ok(Parsed::Push { used }),
        Frame::Simple(_)
        | Frame::Bulk(_)
        | Frame::Double(_)
        | Frame::Boolean(_)
        | Frame::BigNumber(_)
        | Frame::Verbatim { .. }
        | Frame::Array(_)
        | Frame::Map(_)
        | Frame::Set(_) => Reply::Other,
    };
    Ok(Parsed::Reply { reply, used })
}
