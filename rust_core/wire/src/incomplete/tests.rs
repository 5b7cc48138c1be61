//! A reply that arrives in small pieces is scanned a few times, and gives what it would give at once.

use super::*;

const PIECE: usize = 100;

/// Feeds a reply in pieces, and returns how many bytes were scanned.
fn dribbled(reply: &[u8], piece: usize) -> usize {
    let mut incomplete = IncompleteReply::default();
    let mut arrived = 0;
    loop {
        arrived = reply.len().min(arrived + piece);
        match incomplete.parse_frame(&reply[..arrived]) {
            Ok(None) => assert!(arrived < reply.len(), "the whole reply has arrived"),
            Ok(Some((_, used))) => {
                assert_eq!((used, arrived), (reply.len(), reply.len()));
                return incomplete.scanned;
            }
            Err(malformed) => panic!("{malformed}"),
        }
    }
}

fn bulk(length: usize) -> Vec<u8> {
    [format!("${length}\r\n").as_bytes(), &vec![b'a'; length], b"\r\n"].concat()
}

fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [format!("*{}\r\n", elements.len()).as_bytes(), &elements.concat()].concat()
}

#[test]
fn a_reply_in_pieces_is_scanned_a_few_times() {
    let line = [&b"+"[..], &vec![b'a'; MAX_LINE], b"\r\n"].concat();
    let digits = [&b"("[..], &vec![b'7'; MAX_LINE], b"\r\n"].concat();
    let double = [&b","[..], &vec![b'1'; MAX_LINE], b"\r\n"].concat();
    let nested = (0..MAX_DEPTH).fold(line.clone(), |inner, _| array(&[inner, b":1\r\n".to_vec()]));
    let attribute = [b"|1\r\n", &line[..], &line[..], &array(std::slice::from_ref(&line))[..]].concat();
    let replies = [
        bulk(1_000_000),
        array(&vec![bulk(5); 80_000]),
        array(&vec![bulk(900); 1_000]),
        array(&vec![b":1\r\n".to_vec(); 200_000]),
        array(&vec![array(&[b"+a\r\n".to_vec()]); 100_000]),
        array(&vec![line.clone(); 15]),
        line,
        digits,
        double,
        nested,
        attribute,
    ];
    for reply in replies {
        for piece in [PIECE, 4_096] {
            let scanned = dribbled(&reply, piece);
            let start = String::from_utf8_lossy(&reply[..8]).into_owned();
            assert!(
                scanned <= 4 * reply.len(),
                "{scanned} bytes scanned of {} of {start:?}",
                reply.len()
            );
        }
    }
}

#[test]
fn a_reply_in_pieces_is_refused_when_it_would_be_at_once() {
    let line = |kind: &[u8], length| [kind, &vec![b'1'; length]].concat();
    let refused = [
        line(b"+", MAX_LINE + 10),
        line(b"(", MAX_LINE + 10),
        line(b",", MAX_LINE + 10),
        array(&vec![[line(b"-", MAX_LINE), b"\r\n".to_vec()].concat(); 17]),
        array(&[bulk(MAX_REPLY - 10), bulk(0)]),
        b"*1\r\n".repeat(MAX_DEPTH + 1),
        array(&[b"*1\r\n".repeat(MAX_DEPTH)]),
        array(&[bulk(1), b":x\r\n".to_vec()]),
    ];
    for bytes in refused {
        let mut incomplete = IncompleteReply::default();
        let piece = if bytes.len() < 100 { 1 } else { 4_001 };
        let mut arrived = 0;
        let malformed = loop {
            arrived = bytes.len().min(arrived + piece);
            let here = &bytes[..arrived];
            let result = incomplete.parse_frame(here);
            assert_eq!(result, parse_frame(here), "after {arrived} bytes");
            if let Err(malformed) = result {
                break malformed;
            }
            assert!(arrived < bytes.len(), "refused at the end");
        };
        assert!(arrived <= MAX_REPLY + piece, "{malformed}");
    }
}

#[test]
fn a_scan_is_new_after_its_reply() {
    let mut incomplete = IncompleteReply::default();
    let reply = array(&[bulk(10), bulk(20)]);
    for _ in 0..2 {
        assert_eq!(incomplete.parse(&reply[..20]), Ok(Parsed::NeedMore));
        assert!(matches!(incomplete.parse(&reply), Ok(Parsed::Reply { used, .. }) if used == reply.len()));
    }
}
