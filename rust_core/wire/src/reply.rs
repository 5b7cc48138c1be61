//! A reply reduced to what locks need.

use locks::{EntryId, Reply, Token};

use crate::{Elements, Frame, Malformed, error_kind, parse_frame};

/// What is at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The reply to the oldest command that has none yet, `used` bytes long.
    Reply { reply: Reply, used: usize },
    /// A push of the server, `used` bytes long. It answers no command.
    Push { used: usize },
    /// A message of a channel, `used` bytes long. It answers no command either.
    Published { channel: &'a [u8], used: usize },
    /// The reply is incomplete: call again with more bytes.
    NeedMore,
}

/// Reads one reply from the front of `buf`.
///
/// # Errors
/// When no further bytes can make a reply of at most [`crate::MAX_REPLY`] bytes out of `buf`.
#[inline]
pub fn parse(buf: &[u8]) -> Result<Parsed<'_>, Malformed> {
    match common_reply(buf) {
        Some((&reply, used)) => Ok(Parsed::Reply { reply, used }),
        None => parse_any(buf),
    }
}

/// Nearly all replies to a lock, with the bytes that they take; [`parse`] gives the same result for them. They are
/// lent, so that a driver copies each in one piece: written field by field and then read as a whole, it would have to
/// wait until the stores have left the processor's buffer.
#[inline]
pub fn common_reply(buf: &[u8]) -> Option<(&'static Reply, usize)> {
    let (index, used) = match *buf {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => (OK, 5),
        [b':', digit @ b'0'..=b'9', b'\r', b'\n', ..] => (usize::from(digit - b'0'), 4),
        [b'_', b'\r', b'\n', ..] => (NIL, 3),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => (NIL, 5),
        _ => return None,
    };
    Some((&COMMON[index], used))
}

const OK: usize = 10;
const NIL: usize = 11;

/// The numbers of one digit, and then these.
static COMMON: [Reply; 12] = [
    Reply::Int(0),
    Reply::Int(1),
    Reply::Int(2),
    Reply::Int(3),
    Reply::Int(4),
    Reply::Int(5),
    Reply::Int(6),
    Reply::Int(7),
    Reply::Int(8),
    Reply::Int(9),
    Reply::Ok,
    Reply::Nil,
];

#[inline(never)] // so that the code inlined into a driver's loop stays small
fn parse_any(buf: &[u8]) -> Result<Parsed<'_>, Malformed> {
    let Some((frame, used)) = parse_frame(buf)? else {
        return Ok(Parsed::NeedMore);
    };
    let reply = match frame {
        Frame::Simple(b"OK") => Reply::Ok,
        Frame::Null => Reply::Nil,
        Frame::Integer(number) => Reply::Int(number),
        Frame::Error(line) | Frame::BulkError(line) => Reply::Error(error_kind(line)),
        Frame::Bulk(text) => match token(text) {
            Some(token) => Reply::Token(token),
            None => entry_id(text).map_or(Reply::Other, Reply::Entry),
        },
        Frame::Map(streams) => entry_read(streams).map_or(Reply::Other, Reply::Entry),
        // RESP2 has no pushes: there, messages about channels are arrays.
        Frame::Push(items) | Frame::Array(items) => match (about_channel(items), frame) {
            (Some(AboutChannel::Confirmation), _) => Reply::Ok,
            (Some(AboutChannel::Message(channel)), _) => return Ok(Parsed::Published { channel, used }),
            (None, Frame::Push(_)) => return Ok(Parsed::Push { used }),
            (None, _) => list(items),
        },
        Frame::Simple(_)
        | Frame::Double(_)
        | Frame::Boolean(_)
        | Frame::BigNumber(_)
        | Frame::Verbatim { .. }
        | Frame::Set(_) => Reply::Other,
    };
    Ok(Parsed::Reply { reply, used })
}

enum AboutChannel<'a> {
    /// Of a `SUBSCRIBE` or `UNSUBSCRIBE`: the only reply to that command.
    Confirmation,
    Message(&'a [u8]),
}

/// A message about a channel has three elements, and the first is a word of the server, never a name. No reply to a
/// lock's command looks like that, whatever the lock's name: a blocking pop returns two elements, its list's name
/// first; a read from a stream returns one element, which contains the name.
fn about_channel(items: Elements<'_>) -> Option<AboutChannel<'_>> {
    if items.len() != 3 {
        return None;
    }
    let mut items = items.iter();
    match (items.next()?, items.next()?, items.next()?) {
        (Frame::Bulk(b"message"), Frame::Bulk(channel), Frame::Bulk(_)) => Some(AboutChannel::Message(channel)),
        (Frame::Bulk(b"subscribe" | b"unsubscribe"), Frame::Bulk(_), Frame::Integer(_)) => {
            Some(AboutChannel::Confirmation)
        }
        _ => None,
    }
}

fn list(items: Elements<'_>) -> Reply {
    let mut elements = items.iter();
    match (elements.next(), elements.next()) {
        (None, _) => Reply::Other,
        (Some(Frame::Array(stream)), _) => entry_read(stream).map_or(Reply::Items, Reply::Entry),
        // The result of a blocking pop, after the name of its list.
        (Some(Frame::Bulk(_)), Some(Frame::Bulk(text))) if items.len() == 2 => {
            number(text).map_or(Reply::Items, Reply::Int)
        }
        (Some(_), _) => Reply::Items,
    }
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The id of the first entry that was read from the first stream: its name, then its entries, each an id and its
/// fields. RESP2 has an array of such pairs, RESP3 a map.
fn entry_read(streams: Elements<'_>) -> Option<EntryId> {
    let mut streams = streams.iter();
    let (Frame::Bulk(_), Frame::Array(entries)) = (streams.next()?, streams.next()?) else {
        return None;
    };
    let Frame::Array(entry) = entries.iter().next()? else {
        return None;
    };
    let mut entry = entry.iter();
    match (entry.next()?, entry.len()) {
        (Frame::Bulk(id), 1) => entry_id(id),
        _ => None,
    }
}

/// 32 hex digits, in lower case as tokens are written.
fn token(text: &[u8]) -> Option<Token> {
    if text.len() != 32 || !text.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let number = u128::from_str_radix(str::from_utf8(text).ok()?, 16).ok()?;
    Some(Token {
        high: (number >> 64) as u64,
        low: number as u64,
    })
}

/// `<ms>-<seq>`
fn entry_id(text: &[u8]) -> Option<EntryId> {
    let (ms, seq) = str::from_utf8(text).ok()?.split_once('-')?;
    let number = |digits: &str| {
        let first = digits.as_bytes().first()?;
        first.is_ascii_digit().then(|| digits.parse().ok())? // a sign is not a digit
    };
    Some(EntryId {
        ms: number(ms)?,
        seq: number(seq)?,
    })
}
