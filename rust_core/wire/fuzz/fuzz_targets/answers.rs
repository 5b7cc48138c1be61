//! Any bytes as the replies of a database: the pieces in which they arrive change neither the replies nor how the
//! session ends, and the reason for the end is one short line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::postgres::{BlockKind, Broken};

#[path = "../../tests/postgres/pieces.rs"]
mod pieces;

use pieces::read_in_pieces;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, piece, bytes) = input;
    let block = [Some(BlockKind::Commits), Some(BlockKind::Other), None][usize::from(which % 3)];
    let whole = read_in_pieces(bytes, &[bytes.len().max(1)], block);
    let pieces = read_in_pieces(bytes, &[usize::from(piece).max(1)], block);
    assert_eq!(whole.0, pieces.0);
    // An error contains the bytes that had arrived by then: only its kind can be the same.
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
