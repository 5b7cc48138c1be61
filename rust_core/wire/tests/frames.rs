//! Each type of both protocol versions, as a server writes it.

use wire::{Frame, parse_frame};

/// The only frame in `bytes`.
fn frame(bytes: &[u8]) -> Frame<'_> {
    let (frame, used) = parse_frame(bytes).unwrap().expect("a whole frame");
    assert_eq!(used, bytes.len());
    frame
}

fn elements<'a>(frame: &Frame<'a>) -> Vec<Frame<'a>> {
    match frame {
        Frame::Array(children) | Frame::Map(children) | Frame::Set(children) | Frame::Push(children) => {
            children.iter().collect()
        }
        other => panic!("{other:?} has no elements"),
    }
}

#[test]
fn lines_are_read_without_their_end() {
    assert_eq!(frame(b"+OK\r\n"), Frame::Simple(b"OK"));
    assert_eq!(frame(b"+\r\n"), Frame::Simple(b""));
    assert_eq!(frame(b"-ERR no such key\r\n"), Frame::Error(b"ERR no such key"));
    assert_eq!(frame(b"+\xff\x00\r\n"), Frame::Simple(b"\xff\x00"));
}

#[test]
fn integers_reach_from_the_smallest_to_the_largest() {
    for (text, number) in [
        ("0", 0),
        ("+7", 7),
        ("-1", -1),
        ("-0", 0),
        ("007", 7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert_eq!(
            frame(format!(":{text}\r\n").as_bytes()),
            Frame::Integer(number),
            "{text}"
        );
    }
}

#[test]
fn bulk_strings_hold_any_bytes_even_line_ends() {
    assert_eq!(frame(b"$5\r\nhello\r\n"), Frame::Bulk(b"hello"));
    assert_eq!(frame(b"$0\r\n\r\n"), Frame::Bulk(b""));
    assert_eq!(frame(b"$4\r\n\r\n\r\n\r\n"), Frame::Bulk(b"\r\n\r\n"));
}

#[test]
fn there_are_three_ways_to_write_null() {
    for bytes in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
        assert_eq!(frame(bytes), Frame::Null);
    }
}

#[test]
fn arrays_nest_and_hold_nulls() {
    let outer = elements(&frame(b"*3\r\n:1\r\n*2\r\n+a\r\n$-1\r\n*0\r\n"));
    assert_eq!(outer[0], Frame::Integer(1));
    assert_eq!(elements(&outer[1]), [Frame::Simple(b"a"), Frame::Null]);
    assert_eq!(elements(&outer[2]), []);
}

#[test]
fn an_aggregate_knows_its_count() {
    let Frame::Map(children) = frame(b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n") else {
        panic!("a map")
    };
    assert_eq!(children.len(), 4);
    assert!(!children.is_empty());
}

#[test]
fn doubles_may_be_infinite_or_no_number() {
    assert_eq!(frame(b",1.5\r\n"), Frame::Double(1.5));
    assert_eq!(frame(b",-2\r\n"), Frame::Double(-2.0));
    assert_eq!(frame(b",1.5e-3\r\n"), Frame::Double(0.0015));
    assert_eq!(frame(b",inf\r\n"), Frame::Double(f64::INFINITY));
    assert_eq!(frame(b",-inf\r\n"), Frame::Double(f64::NEG_INFINITY));
    assert!(matches!(frame(b",nan\r\n"), Frame::Double(number) if number.is_nan()));
    assert!(matches!(frame(b",-nan\r\n"), Frame::Double(number) if number.is_nan()));
}

#[test]
fn booleans_are_one_letter() {
    assert_eq!(frame(b"#t\r\n"), Frame::Boolean(true));
    assert_eq!(frame(b"#f\r\n"), Frame::Boolean(false));
}

#[test]
fn big_numbers_keep_their_digits() {
    let digits = b"-3492890328409238509324850943850943825024385";
    assert_eq!(frame(&[b"(", &digits[..], b"\r\n"].concat()), Frame::BigNumber(digits));
}

#[test]
fn bulk_errors_and_verbatim_strings_are_distinguished() {
    assert_eq!(
        frame(b"!21\r\nSYNTAX invalid syntax\r\n"),
        Frame::BulkError(b"SYNTAX invalid syntax")
    );
    let verbatim = Frame::Verbatim {
        format: *b"txt",
        text: b"Some string",
    };
    assert_eq!(frame(b"=15\r\ntxt:Some string\r\n"), verbatim);
    assert_eq!(
        frame(b"=4\r\nmkd:\r\n"),
        Frame::Verbatim {
            format: *b"mkd",
            text: b""
        }
    );
}

#[test]
fn sets_and_pushes_are_distinguished_from_arrays() {
    assert!(matches!(frame(b"~1\r\n+a\r\n"), Frame::Set(_)));
    let push = frame(b">3\r\n+message\r\n+channel\r\n+hello\r\n");
    assert!(matches!(push, Frame::Push(_)));
    assert_eq!(elements(&push)[2], Frame::Simple(b"hello"));
}

#[test]
fn attributes_are_left_out_wherever_they_stand() {
    assert_eq!(frame(b"|1\r\n+ttl\r\n:3600\r\n:7\r\n"), Frame::Integer(7));
    assert_eq!(frame(b"|0\r\n|1\r\n+a\r\n:1\r\n_\r\n"), Frame::Null);
    let noted = frame(b"*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:2\r\n");
    assert_eq!(elements(&noted), [Frame::Integer(1), Frame::Integer(2)]);
    assert_eq!(parse_frame(b"|1\r\n+ttl\r\n:3600\r\n"), Ok(None));
}

#[test]
fn the_reply_to_hello_is_a_map() {
    let hello = b"%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n";
    let fields = elements(&frame(hello));
    assert_eq!(
        fields[..4],
        [
            Frame::Bulk(b"server"),
            Frame::Bulk(b"redis"),
            Frame::Bulk(b"proto"),
            Frame::Integer(3)
        ]
    );
}
