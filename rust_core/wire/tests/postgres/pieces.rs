//! Answers as they might come. The fuzzer reads them so, too.

use locks::Reply;
use wire::postgres::{BlockKind, Broken, ReplyReader};

/// In pieces of these `lengths`, over and over, each read with what the last left over. What was read, and how the
/// session ended, if it did.
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
