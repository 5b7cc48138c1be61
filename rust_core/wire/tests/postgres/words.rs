//! The messages of a server, one by one.

use locks::{ErrorKind, Reply, Statement};
use wire::postgres::{BlockKind, Broken, ReplyReader};

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag][..], &length, body].concat()
}

pub(crate) fn bound() -> Vec<u8> {
    message(b'2', b"")
}

pub(crate) fn row(value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_be_bytes();
    message(b'D', &[&[0, 1][..], &length, value].concat())
}

pub(crate) fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

pub(crate) fn ready(state: u8) -> Vec<u8> {
    message(b'Z', &[state])
}

pub(crate) fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    let fields = format!("S{severity}\0V{severity}\0C{code}\0M{text}\0Fproc.c\0\0");
    message(b'E', fields.as_bytes())
}

pub(crate) fn notice() -> Vec<u8> {
    message(b'N', b"SWARNING\0C01000\0Myou do not own a lock\0\0")
}

pub(crate) fn parameter(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

/// The messages that answer a block of one statement that found `values`.
pub(crate) fn answer(values: &[&[u8]], tag: &str) -> Vec<u8> {
    let rows = values.iter().flat_map(|value| row(value));
    [bound(), rows.collect(), complete(tag), ready(b'I')].concat()
}

/// The reply that all of these bytes make for a block.
pub(crate) fn reply_to(block: BlockKind, bytes: &[u8]) -> Result<Reply, Broken> {
    let (used, reply) = ReplyReader::default().parse(bytes, Some(block))?;
    assert_eq!(used, bytes.len());
    Ok(reply.expect("the bytes are a whole answer"))
}

pub(crate) fn reply(bytes: &[u8]) -> Reply {
    reply_to(BlockKind::Other, bytes).unwrap()
}

pub(crate) fn kind(code: &str) -> ErrorKind {
    match reply(&[error("ERROR", code, "no"), ready(b'I')].concat()) {
        Reply::Error(kind) => kind,
        other => panic!("an error was taken for {other:?}"),
    }
}

/// The strategies' statements: each of them is in the table.
pub(crate) const ALL: &[Statement] = Statement::ALL;
