//! Bytes that cannot become a reply are refused as early as possible, within bounds, and with a helpful text.

use wire::{MAX_DEPTH, MAX_LINE, MAX_REPLY, Malformed, Parsed, parse, parse_frame};

fn malformed(bytes: &[u8]) -> Malformed {
    let malformed = parse_frame(bytes).expect_err("bytes that make no frame");
    assert_eq!(parse(bytes), Err(malformed.clone()));
    malformed
}

/// The error of `bytes`, which without their last byte could still have become a reply.
fn refused_at_its_last_byte(bytes: &[u8]) -> Malformed {
    let (_, before) = bytes.split_last().unwrap();
    assert_eq!(
        parse_frame(before),
        Ok(None),
        "{} is too short to judge",
        before.escape_ascii()
    );
    malformed(bytes)
}

#[test]
fn an_unknown_first_byte_is_enough() {
    for byte in (0..=u8::MAX).filter(|byte| !b"+-:$*_,#(!=%~|>".contains(byte)) {
        assert!(matches!(malformed(&[byte]), Malformed::UnknownType { .. }), "{byte}");
    }
    assert!(matches!(
        refused_at_its_last_byte(b"*2\r\n:1\r\nx"),
        Malformed::UnknownType { .. }
    ));
}

#[test]
fn a_wrong_length_is_refused_at_the_byte_that_is_wrong() {
    for bytes in [
        &b"$x"[..],
        b"$1x",
        b"$\r",
        b"$-2",
        b"$-x",
        b"$+",
        b"$?",
        b"*?",
        b"%-",
        b"~-",
        b">-",
        b"!-",
        b"=-",
        b"|-",
    ] {
        assert!(
            matches!(refused_at_its_last_byte(bytes), Malformed::BadLength { .. }),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_wrong_value_is_refused_at_the_byte_that_is_wrong() {
    let values = [
        &b":x"[..],
        b":\r",
        b":-\r",
        b":1-",
        b":--",
        b":9223372036854775808",
        b":-9223372036854775809",
        b":00000000000000000000",
        b"#x",
        b",1.5z",
        b",\r\n",
        b",1e\r\n",
        b"(1.",
        b"(1-",
        b"(-\r\n",
        b"=3\r\n",
        b"=5\r\ntxt!",
    ];
    for bytes in values {
        assert!(
            matches!(refused_at_its_last_byte(bytes), Malformed::BadValue { .. }),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_missing_end_is_refused_where_it_should_stand() {
    let endless = [
        &b"+OK\n"[..],
        b"+OK\rx",
        b"-ERR\r\r",
        b":1\rx",
        b"$2\rx",
        b"$2\r\nOKx",
        b"$2\r\nOK\rx",
        b"_x",
        b"_\rx",
        b"#tx",
    ];
    for bytes in endless {
        assert!(
            matches!(refused_at_its_last_byte(bytes), Malformed::MissingEnd { .. }),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let line = [&b"-"[..], &b"x".repeat(MAX_LINE)].concat();
    assert_eq!(parse_frame(&line), Ok(None));
    let ended = [&line[..], b"\r\n"].concat();
    assert_eq!(parse_frame(&ended).unwrap().unwrap().1, ended.len());
    let longer = [&line[..], b"x"].concat();
    assert!(matches!(
        refused_at_its_last_byte(&longer),
        Malformed::LineTooLong { .. }
    ));
    for kind in [&b"("[..], b","] {
        let number = [kind, &b"1".repeat(MAX_LINE + 1)].concat();
        assert!(matches!(
            refused_at_its_last_byte(&number),
            Malformed::LineTooLong { .. }
        ));
    }
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_it_is_waited_for() {
    for bytes in [
        &b"$1048577"[..],
        b"$9999999",
        b"*9999999",
        b"%1048577",
        b"!1048577",
        b"=1048577",
        b"*1\r\n$1048577",
    ] {
        assert!(
            matches!(refused_at_its_last_byte(bytes), Malformed::TooLong { .. }),
            "{}",
            bytes.escape_ascii()
        );
    }
    // The length itself is within the limit, but not together with its line end, or with three bytes per element.
    for bytes in [
        &b"$1048576\r\n"[..],
        b"*349523\r\n",
        b"%174762\r\n",
        b"*1\r\n$1048561\r\n",
    ] {
        assert!(
            matches!(refused_at_its_last_byte(bytes), Malformed::TooLong { .. }),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_reply_may_be_as_long_as_the_limit_and_no_longer() {
    let bulk = |size: usize| [format!("${size}\r\n").as_bytes(), &b"x".repeat(size), b"\r\n"].concat();
    let head = b"$1048566\r\n".len();
    let longest = bulk(MAX_REPLY - head - 2);
    assert_eq!(longest.len(), MAX_REPLY);
    assert_eq!(parse_frame(&longest[..MAX_REPLY - 1]), Ok(None));
    assert_eq!(parse_frame(&longest).unwrap().unwrap().1, MAX_REPLY);
    assert!(matches!(
        malformed(&bulk(MAX_REPLY - head - 1)[..head]),
        Malformed::TooLong { .. }
    ));
}

#[test]
fn many_short_elements_are_too_long_as_well() {
    let mut bytes = b"*300000\r\n".to_vec();
    bytes.extend(b":1\r\n".repeat(300_000));
    assert!(matches!(malformed(&bytes), Malformed::TooLong { .. }));
    assert_eq!(parse_frame(&bytes[..MAX_REPLY - 1]), Ok(None));
    assert!(matches!(malformed(&bytes[..MAX_REPLY]), Malformed::TooLong { .. }));
}

#[test]
fn aggregates_may_nest_as_deep_as_the_limit_and_no_deeper() {
    let deepest = [&b"*1\r\n".repeat(MAX_DEPTH)[..], b":1\r\n"].concat();
    assert_eq!(parse_frame(&deepest).unwrap().unwrap().1, deepest.len());
    let deeper = [&b"*1\r\n".repeat(MAX_DEPTH)[..], b"~"].concat();
    assert!(matches!(refused_at_its_last_byte(&deeper), Malformed::TooDeep { .. }));
    let attributes = b"|1\r\n".repeat(MAX_DEPTH + 1);
    assert!(matches!(malformed(&attributes), Malformed::TooDeep { .. }));
}

#[test]
fn a_null_array_nests_nothing() {
    let deepest = [&b"*1\r\n".repeat(MAX_DEPTH)[..], b"*-1\r\n"].concat();
    assert_eq!(parse_frame(&deepest).unwrap().unwrap().1, deepest.len());
}

#[test]
fn nothing_at_all_is_no_fault() {
    assert_eq!(parse(b""), Ok(Parsed::NeedMore));
}

#[test]
fn the_words_name_the_server_that_really_replied() {
    assert_eq!(
        malformed(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n").to_string(),
        "not a Redis reply: received \"HTTP/1.1 400 Bad Request\\r\\nConten\" and more, \
         which is how an HTTP server answers"
    );
    assert_eq!(
        malformed(b"\x15\x03\x01\x00\x02\x02\x46").to_string(),
        "not a Redis reply: received \"\\x15\\x03\\x01\\x00\\x02\\x02F\", which is how a TLS server answers"
    );
    assert_eq!(
        malformed(b"J\0\0").to_string(),
        "not a Redis reply: received \"J\\x00\\x00\""
    );
    for (bytes, speaker) in [
        (&b"<!DOCTYPE HTML>"[..], "an HTTP"),
        (b"SSH-2.0-x\r\n", "an SSH"),
        (b"ERROR\r\n", "a memcached"),
        (b"220 hello\r\n", "an FTP or a mail"),
    ] {
        let words = malformed(bytes).to_string();
        assert!(
            words.ends_with(&format!("which is how {speaker} server answers")),
            "{words}"
        );
    }
}

#[test]
fn the_words_name_the_part_that_is_wrong() {
    assert_eq!(
        malformed(b"$abc\r\n").to_string(),
        "not a Redis reply: the length of a bulk string must be a number from 0, or -1 for null; \
         received \"$abc\\r\\n\""
    );
    assert_eq!(
        malformed(b"+PONG\nmore").to_string(),
        "not a Redis reply: a simple string must end with CR LF; received \"+PONG\\nmore\""
    );
    assert_eq!(
        malformed(b"*1\r\n:12x\r\n").to_string(),
        "not a Redis reply: an integer has a value it cannot have; received \":12x\\r\\n\""
    );
    assert_eq!(
        malformed(b"$3\r\nOK\r\n+PONG\r\n").to_string(),
        "not a Redis reply: a bulk string must end with CR LF; received \"\\n+PONG\\r\\n\""
    );
    assert_eq!(
        malformed(b"$99999999\r\n").to_string(),
        "not a reply that a lock can get: longer than 1048576 bytes; received \"$99999999\\r\\n\""
    );
}
