//! Replies as they might arrive. The fuzzer reads them in the same way.

use locks::Reply;
use wire::postgres::{BlockKind, Broken, ReplyReader};

/// Reads `bytes` in pieces of these `lengths`, over and over, each with the rest of the last one. Returns the replies,
/// and how the session ended, if it did.
pub(crate) fn read_in_pieces(
    bytes: &[u8],
    lengths: &[usize],
    block: Option<BlockKind>,
) -> (Vec<Reply>, Option<Broken>) {
    let mut answers = ReplyReader::default();
    let mut lengths = lengths.iter().cycle();
    let (mut come, mut used, mut replies) = (0, 0, Vec::new());
    while come < bytes.len() {
        come = (come + lengths.next().unwrap()).min(bytes.len());
        loop {
            match answers.parse(&bytes[used..come], block) {
                Ok((length, reply)) => {
                    used += length;
                    assert!(used <= come);
                    match reply {
                        Some(reply) => replies.push(reply),
                        None => break,
                    }
                }
                Err(broken) => return (replies, Some(broken)),
            }
        }
    }
    (replies, None)
}
