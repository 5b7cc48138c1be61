//! What holds for all frames and for all bytes.

mod support;

use proptest::prelude::*;
use support::{Tree, trees};
use wire::{Elements, Frame, IncompleteReply, Parsed, parse, parse_frame};

// A frame or a reply owns no memory, so that no length on the wire can make one large.
const _: () = assert!(!std::mem::needs_drop::<Option<(Frame<'_>, usize)>>());
const _: () = assert!(!std::mem::needs_drop::<Parsed>());

proptest! {
    #[test]
    fn a_frame_is_asked_for_more_at_every_split_and_read_whole_at_the_end(tree in trees(), behind: Vec<u8>) {
        let mut bytes = tree.to_bytes();
        let whole = bytes.len();
        for split in 0..whole {
            prop_assert_eq!(parse_frame(&bytes[..split]), Ok(None), "the first {} bytes", split);
            prop_assert_eq!(parse(&bytes[..split]), Ok(Parsed::NeedMore));
        }
        bytes.extend(behind);
        let (frame, used) = parse_frame(&bytes).unwrap().unwrap();
        prop_assert_eq!(used, whole);
        prop_assert_eq!(Tree::of(&frame), tree.seen());
    }

    #[test]
    fn replies_in_one_buffer_are_read_one_after_another(trees in prop::collection::vec(trees(), 0..8)) {
        let bytes: Vec<u8> = trees.iter().flat_map(Tree::to_bytes).collect();
        let mut rest = &bytes[..];
        for tree in &trees {
            let (frame, used) = parse_frame(rest).unwrap().unwrap();
            prop_assert_eq!(Tree::of(&frame), tree.seen());
            rest = &rest[used..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_verdict_never_changes_when_more_bytes_come(bytes in nearly_replies()) {
        let mut settled = None;
        for split in 0..=bytes.len() {
            let verdict = verdict(&bytes[..split]);
            match settled {
                None if verdict == Verdict::NeedMore => {}
                None => settled = Some(verdict),
                Some(before) => prop_assert_eq!(verdict, before, "the first {} bytes", split),
            }
        }
    }

    #[test]
    fn a_scan_that_goes_on_gives_what_a_scan_from_the_start_gives(
        bytes in nearly_replies(), cuts in prop::collection::vec(0_usize..40, 0..40),
    ) {
        let (mut replies, mut frames) = (IncompleteReply::default(), IncompleteReply::default());
        let (mut start, mut end) = (0, 0);
        for cut in cuts.into_iter().chain([bytes.len()]) {
            end = bytes.len().min(end + cut);
            loop {
                let here = &bytes[start..end];
                prop_assert_eq!(replies.parse(here), parse(here));
                prop_assert_eq!(frames.parse_frame(here), parse_frame(here));
                match parse_frame(here) {
                    Ok(Some((_, used))) => start += used,
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_walked_to_an_end(bytes in nearly_replies()) {
        let mut rest = &bytes[..];
        while let Ok(Some((frame, used))) = parse_frame(rest) {
            prop_assert!(used > 0 && used <= rest.len());
            walk(&frame);
            let same = match parse(rest) {
                Ok(Parsed::Reply { used, .. } | Parsed::Push { used } | Parsed::Published { used, .. }) => used,
                Ok(Parsed::NeedMore) | Err(_) => return Err(TestCaseError::fail("a frame that is no reply")),
            };
            prop_assert_eq!(same, used);
            rest = &rest[used..];
        }
        prop_assert_eq!(parse(rest).is_err(), parse_frame(rest).is_err());
    }

    #[test]
    fn what_came_instead_is_shown_in_one_printable_line(bytes in nearly_replies()) {
        if let Err(malformed) = parse_frame(&bytes) {
            let text = malformed.to_string();
            prop_assert!(text.chars().all(|char| (' '..='~').contains(&char)), "{}", text);
            // Each of at most 32 bytes may become four characters.
            prop_assert!(text.len() < 128 + 128, "{}", text);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    NeedMore,
    Frame(usize),
    Malformed,
}

fn verdict(bytes: &[u8]) -> Verdict {
    match parse_frame(bytes) {
        Ok(None) => Verdict::NeedMore,
        Ok(Some((_, used))) => Verdict::Frame(used),
        Err(_) => Verdict::Malformed,
    }
}

/// Bytes of three kinds: any bytes, the protocol's own characters in any order, and a frame with one byte changed.
fn nearly_replies() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = b"+-:$*_,#(!=%~|>\r\n0123456789tfxOK .e".to_vec();
    let damaged = (trees(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(tree, place, byte)| {
        let mut bytes = tree.to_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(prop::sample::select(alphabet), 0..200),
        damaged,
    ]
}

/// Reads every element of every element.
fn walk(frame: &Frame<'_>) {
    if let Some(children) = children(frame) {
        assert_eq!(children.iter().count(), children.len());
        children.iter().for_each(|child| walk(&child));
    }
}

fn children<'a>(frame: &Frame<'a>) -> Option<Elements<'a>> {
    match frame {
        Frame::Array(children) | Frame::Map(children) | Frame::Set(children) | Frame::Push(children) => Some(*children),
        _ => None,
    }
}
