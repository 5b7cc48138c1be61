//! Messages at the front of a buffer, without a copy. A wrong message is reported before it is complete.

use postgres_protocol::message::backend as tags;
use postgres_protocol::message::backend::Header;

use super::Malformed;
use crate::Excerpt;

/// The longest message, in bytes on the wire. Those about locks take less than 200; a notice may be longer.
pub const MAX_MESSAGE: usize = 64 << 10;

/// `Terminate`, the last message of a session, so that the server does not count the session as abandoned.
pub const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// The length of a head: a tag, and a length that includes itself.
const HEAD: usize = 5;

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
    /// The length, including the head.
    pub(crate) used: usize,
}

/// The message at the front of `buf`, or `None` while it is incomplete.
#[inline]
pub(crate) fn next(buf: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    let Some(&tag) = buf.first() else { return Ok(None) };
    if !is_known(tag) {
        return Err(Malformed::UnknownType {
            found: Excerpt::of(buf),
        });
    }
    let Some(used) = whole_length(tag, buf)? else {
        return Ok(None);
    };
    Ok(buf.get(HEAD..used).map(|body| Message { tag, body, used }))
}

/// The length of the whole message that `buf` begins with, once its head has arrived.
#[inline]
fn whole_length(tag: u8, buf: &[u8]) -> Result<Option<usize>, Malformed> {
    let bad_length = || Malformed::BadLength {
        found: Excerpt::of(buf),
    };
    let Some(header) = Header::parse(buf).map_err(|_| bad_length())? else {
        return Ok(None);
    };
    let used = header.len() as usize + 1; // `Header` accepts no length below that of the length field
    let is_right = match tag {
        tags::PARSE_COMPLETE_TAG
        | tags::BIND_COMPLETE_TAG
        | tags::CLOSE_COMPLETE_TAG
        | tags::NO_DATA_TAG
        | tags::EMPTY_QUERY_RESPONSE_TAG
        | tags::PORTAL_SUSPENDED_TAG => used == HEAD,
        tags::READY_FOR_QUERY_TAG => used == HEAD + 1,
        _ => true,
    };
    if !is_right {
        return Err(bad_length());
    }
    if used > MAX_MESSAGE {
        return Err(Malformed::TooLong {
            found: Excerpt::of(buf),
        });
    }
    Ok(Some(used))
}

/// Whether a server may send such a message to a session that does not use COPY.
#[inline]
const fn is_known(tag: u8) -> bool {
    matches!(
        tag,
        tags::PARSE_COMPLETE_TAG
            | tags::BIND_COMPLETE_TAG
            | tags::CLOSE_COMPLETE_TAG
            | tags::NOTIFICATION_RESPONSE_TAG
            | tags::COMMAND_COMPLETE_TAG
            | tags::DATA_ROW_TAG
            | tags::ERROR_RESPONSE_TAG
            | tags::EMPTY_QUERY_RESPONSE_TAG
            | tags::BACKEND_KEY_DATA_TAG
            | tags::NO_DATA_TAG
            | tags::NOTICE_RESPONSE_TAG
            | tags::AUTHENTICATION_TAG
            | tags::PORTAL_SUSPENDED_TAG
            | tags::PARAMETER_STATUS_TAG
            | tags::PARAMETER_DESCRIPTION_TAG
            | tags::ROW_DESCRIPTION_TAG
            | tags::READY_FOR_QUERY_TAG
    )
}

/// Whether the message may come at any time, and answers nothing.
#[inline]
pub(crate) const fn is_unasked(tag: u8) -> bool {
    matches!(
        tag,
        tags::NOTICE_RESPONSE_TAG | tags::PARAMETER_STATUS_TAG | tags::NOTIFICATION_RESPONSE_TAG
    )
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use postgres_protocol::message::frontend;

    use super::TERMINATE;

    #[test]
    fn the_last_word_is_that_of_the_protocol() {
        let mut buf = BytesMut::new();
        frontend::terminate(&mut buf);
        assert_eq!(&buf[..], TERMINATE);
    }
}
