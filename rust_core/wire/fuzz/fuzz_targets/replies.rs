//! Any bytes as a stream of replies: each is parsed and iterated to its end, both parsers agree, and the results for
//! the first half of the bytes also hold for all of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Frame, Parsed, error_text, parse, parse_frame};

fuzz_target!(|bytes: &[u8]| {
    match parse_frame(&bytes[..bytes.len() / 2]) {
        Ok(Some((_, used))) => assert_eq!(parse_frame(bytes).unwrap().expect("it was whole before").1, used),
        Ok(None) => {}
        Err(_) => assert!(parse_frame(bytes).is_err()),
    }

    let mut rest = bytes;
    loop {
        match (parse(rest), parse_frame(rest)) {
            (
                Ok(Parsed::Reply { used, .. } | Parsed::Push { used } | Parsed::Published { used, .. }),
                Ok(Some((frame, same))),
            ) => {
                assert_eq!(used, same);
                assert!(used > 0);
                walk(&frame);
                rest = &rest[used..];
            }
            (Ok(Parsed::NeedMore), Ok(None)) => break,
            (Err(malformed), Err(same)) => {
                assert_eq!(malformed, same);
                assert!(malformed.to_string().is_ascii());
                break;
            }
            (parsed, framed) => panic!("{parsed:?}, {framed:?}"),
        }
    }
});

fn walk(frame: &Frame<'_>) {
    if let Some(text) = error_text(frame) {
        assert!(!text.contains(char::is_control));
    }
    if let Frame::Array(children) | Frame::Map(children) | Frame::Set(children) | Frame::Push(children) = frame {
        assert_eq!(children.iter().count(), children.len());
        children.iter().for_each(|child| walk(&child));
    }
}
