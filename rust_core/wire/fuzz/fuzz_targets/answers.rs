//! Any bytes as the answers of a database: in what pieces they come changes neither the replies nor how the session
//! ends, and why it ended is told in one short line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use locks::Reply;
use wire::postgres::{Answers, Block, Broken};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, piece, bytes) = input;
    let block = [Some(Block::Commits), Some(Block::Other), None][usize::from(which % 3)];
    let whole = read(bytes, bytes.len().max(1), block);
    let pieces = read(bytes, usize::from(piece).max(1), block);
    assert_eq!(whole.0, pieces.0);
    // An error shows the bytes that had come by then: only its kind can be the same.
    let kind = |broken: &Broken| match broken {
        Broken::Malformed(malformed) => Err(std::mem::discriminant(malformed)),
        Broken::Ended(refusal) => Ok(refusal.clone()),
    };
    assert_eq!(whole.1.as_ref().map(kind), pieces.1.as_ref().map(kind));
    if let Some(broken) = whole.1 {
        let text = broken.to_string();
        assert!(!text.contains(char::is_control), "{text}");
        assert!(text.chars().count() < 400, "{text}");
    }
});

/// The replies in `bytes`, which come so many at a time, and how the session ended, if it did.
fn read(bytes: &[u8], piece: usize, block: Option<Block>) -> (Vec<Reply>, Option<Broken>) {
    let mut answers = Answers::default();
    let (mut come, mut used, mut replies) = (0, 0, Vec::new());
    while come < bytes.len() {
        come = (come + piece).min(bytes.len());
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
