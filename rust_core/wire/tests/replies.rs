//! The meaning of each reply to a lock.

use locks::{EntryId, ErrorKind, Reply, Token};
use wire::{Frame, Parsed, error_kind, error_text, parse, parse_frame};

fn reply(bytes: &[u8]) -> Reply {
    match parse(bytes).unwrap() {
        Parsed::Reply { reply, used } if used == bytes.len() => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_replies_of_lock_commands_are_read_in_both_protocols() {
    assert_eq!(reply(b"+OK\r\n"), Reply::Ok);
    assert_eq!(reply(b"$-1\r\n"), Reply::Nil);
    assert_eq!(reply(b"_\r\n"), Reply::Nil);
    assert_eq!(reply(b"*-1\r\n"), Reply::Nil);
    for (bytes, number) in [
        (&b":0\r\n"[..], 0),
        (b":1\r\n", 1),
        (b":-2\r\n", -2),
        (b":1234567\r\n", 1_234_567),
    ] {
        assert_eq!(reply(bytes), Reply::Int(number));
    }
}

#[test]
fn a_well_formed_reply_of_another_shape_is_other() {
    let others = [
        &b"+QUEUED\r\n"[..],
        b"+OK!\r\n",
        b"$2\r\nOK\r\n",
        b"#t\r\n",
        b",1\r\n",
        b"(1\r\n",
        b"*0\r\n",
        b"%0\r\n",
        b"~1\r\n:1\r\n",
    ];
    for bytes in others {
        assert_eq!(reply(bytes), Reply::Other, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_push_is_no_reply() {
    let bytes = b">2\r\n+invalidate\r\n*1\r\n+key\r\n+OK\r\n";
    let Parsed::Push { used } = parse(bytes).unwrap() else {
        panic!("a push")
    };
    assert_eq!(
        parse(&bytes[used..]),
        Ok(Parsed::Reply {
            reply: Reply::Ok,
            used: 5
        })
    );
}

const ENTRY: Reply = Reply::Entry(EntryId {
    ms: 1_526_919_030_474,
    seq: 55,
});

#[test]
fn the_id_of_an_added_entry_is_a_bulk_string() {
    assert_eq!(reply(b"$16\r\n1526919030474-55\r\n"), ENTRY);
    let edges = EntryId { ms: 0, seq: u64::MAX };
    assert_eq!(reply(b"$22\r\n0-18446744073709551615\r\n"), Reply::Entry(edges));
    for text in [
        "",
        "-",
        "1",
        "1-",
        "-1",
        "1-2-3",
        "1--2",
        "+1-2",
        "1-+2",
        " 1-2",
        "1-2 ",
        "a-b",
        "1-\u{665}",
        "18446744073709551616-0",
        "0-18446744073709551616",
    ] {
        let bytes = format!("${}\r\n{text}\r\n", text.len());
        assert_eq!(reply(bytes.as_bytes()), Reply::Other, "{text}");
    }
    assert_eq!(reply(b"$4\r\n1-2\xff\r\n"), Reply::Other);
}

/// The bytes after the name of a stream that was read.
const ENTRIES: &str = "*1\r\n*2\r\n$16\r\n1526919030474-55\r\n*2\r\n$5\r\ntoken\r\n$1\r\nt\r\n";

#[test]
fn what_was_read_from_a_stream_is_its_first_entry() {
    let resp2 = format!("*1\r\n*2\r\n$7\r\nmessage\r\n{ENTRIES}");
    let resp3 = format!("%1\r\n$7\r\nmessage\r\n{ENTRIES}");
    assert_eq!(reply(resp2.as_bytes()), ENTRY);
    assert_eq!(reply(resp3.as_bytes()), ENTRY);
    // An entry whose fields were deleted while it waited to be acknowledged.
    let deleted = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$16\r\n1526919030474-55\r\n*-1\r\n";
    assert_eq!(reply(deleted), ENTRY);
    for nothing in [&b"*-1\r\n"[..], b"_\r\n"] {
        assert_eq!(reply(nothing), Reply::Nil);
    }
}

#[test]
fn what_merely_looks_like_a_stream_has_no_entry() {
    for body in [
        "$1\r\ns\r\n*0\r\n",
        "$1\r\ns\r\n*1\r\n*0\r\n",
        "$1\r\ns\r\n*1\r\n*1\r\n$3\r\n1-1\r\n",
        "$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1:1\r\n*0\r\n",
        "$1\r\ns\r\n*1\r\n$3\r\n1-1\r\n",
        "$1\r\ns\r\n$3\r\n1-1\r\n",
        ":1\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n",
    ] {
        assert_eq!(reply(format!("*1\r\n*2\r\n{body}").as_bytes()), Reply::Items, "{body}");
        assert_eq!(reply(format!("%1\r\n{body}").as_bytes()), Reply::Other, "{body}");
    }
    assert_eq!(reply(b"*1\r\n*0\r\n"), Reply::Items);
}

#[test]
fn what_a_blocking_pop_found_is_its_number_or_items() {
    assert_eq!(reply(b"*2\r\n$4\r\nbell\r\n$4\r\n5999\r\n"), Reply::Int(5_999));
    assert_eq!(reply(b"*2\r\n$4\r\nbell\r\n$1\r\nx\r\n"), Reply::Items);
    assert_eq!(
        reply(b"*2\r\n$4\r\nbell\r\n$20\r\n99999999999999999999\r\n"),
        Reply::Items
    );
    assert_eq!(reply(b"*3\r\n$4\r\nbell\r\n$1\r\n1\r\n$1\r\n1\r\n"), Reply::Items);
    assert_eq!(reply(b"*1\r\n:1\r\n"), Reply::Items);
}

#[test]
fn the_confirmation_of_a_subscription_is_ok_in_both_protocols() {
    for kind in ['*', '>'] {
        for word in ["subscribe", "unsubscribe"] {
            let bytes = format!("{kind}3\r\n${}\r\n{word}\r\n$3\r\np:c\r\n:1\r\n", word.len());
            assert_eq!(reply(bytes.as_bytes()), Reply::Ok, "{bytes}");
        }
    }
}

#[test]
fn a_message_is_no_reply_in_either_protocol() {
    for kind in ['*', '>'] {
        let message = format!("{kind}3\r\n$7\r\nmessage\r\n$3\r\np:c\r\n$2\r\nOK\r\n");
        let bytes = format!("{message}:1\r\n");
        let used = message.len();
        assert_eq!(parse(bytes.as_bytes()), Ok(Parsed::Published { channel: b"p:c", used }));
        assert_eq!(reply(&bytes.as_bytes()[used..]), Reply::Int(1));
        for split in 0..used {
            let part = &bytes.as_bytes()[..split];
            assert_eq!(parse(part), Ok(Parsed::NeedMore), "{}", part.escape_ascii());
        }
    }
}

#[test]
fn a_lock_named_as_a_kind_of_message_fools_nobody() {
    for (bytes, expected) in [
        ("*2\r\n$7\r\nmessage\r\n$1\r\n1\r\n", Reply::Int(1)),
        ("*2\r\n$9\r\nsubscribe\r\n$1\r\n1\r\n", Reply::Int(1)),
        ("*1\r\n$7\r\nmessage\r\n", Reply::Items),
        ("*4\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", Reply::Items),
        ("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:1\r\n", Reply::Items),
        ("*3\r\n$7\r\nmessage\r\n*0\r\n$1\r\na\r\n", Reply::Items),
        ("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n$1\r\n1\r\n", Reply::Items),
        ("*3\r\n$7\r\nMESSAGE\r\n$1\r\na\r\n$1\r\nb\r\n", Reply::Items),
        ("*3\r\n*1\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", Reply::Items),
    ] {
        assert_eq!(reply(bytes.as_bytes()), expected, "{bytes}");
    }
    // The channel may have such a name too.
    let message = b"*3\r\n$7\r\nmessage\r\n$9\r\nsubscribe\r\n$9\r\nsubscribe\r\n";
    let (channel, used) = (&b"subscribe"[..], message.len());
    assert_eq!(parse(message), Ok(Parsed::Published { channel, used }));
}

#[test]
fn other_pushes_stay_pushes() {
    for push in [
        &b">0\r\n"[..],
        b">3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
        b">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n",
        b">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
    ] {
        assert_eq!(
            parse(push),
            Ok(Parsed::Push { used: push.len() }),
            "{}",
            push.escape_ascii()
        );
    }
}

#[test]
fn pipelined_replies_are_taken_one_at_a_time() {
    let mut rest = &b"+OK\r\n$-1\r\n:1\r\n-LOADING Redis is loading the dataset in memory\r\n_\r\n:0"[..];
    let mut replies = Vec::new();
    while let Parsed::Reply { reply, used } = parse(rest).unwrap() {
        replies.push(reply);
        rest = &rest[used..];
    }
    let loading = Reply::Error(ErrorKind::Loading);
    assert_eq!(replies, [Reply::Ok, Reply::Nil, Reply::Int(1), loading, Reply::Nil]);
    assert_eq!(rest, b":0");
}

#[test]
fn the_first_word_of_an_error_is_its_kind() {
    for (line, kind) in [
        ("NOSCRIPT No matching script. Please use EVAL.", ErrorKind::NoScript),
        (
            "READONLY You can't write against a read only replica.",
            ErrorKind::ReadOnly,
        ),
        ("LOADING Redis is loading the dataset in memory", ErrorKind::Loading),
        ("MOVED 3999 127.0.0.1:6381", ErrorKind::Moved),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            ErrorKind::OutOfMemory,
        ),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            ErrorKind::WrongType,
        ),
        ("NOAUTH Authentication required.", ErrorKind::NoAuth),
        (
            "WRONGPASS invalid username-password pair or user is disabled.",
            ErrorKind::NoAuth,
        ),
        (
            "NOPERM this user has no permissions to run the 'set' command",
            ErrorKind::NoAuth,
        ),
        ("ERR no such key", ErrorKind::NoSuchKey),
        ("BUSYGROUP Consumer Group name already exists", ErrorKind::BusyGroup),
        ("ERR no such keyspace", ErrorKind::Other),
        ("ERR unknown command 'DELEX'", ErrorKind::Other),
        ("MOVEDX", ErrorKind::Other),
        ("moved 1", ErrorKind::Other),
        ("ERR the word MOVED does not come first", ErrorKind::Other),
        ("MOVED", ErrorKind::Moved),
        ("", ErrorKind::Other),
    ] {
        assert_eq!(error_kind(line.as_bytes()), kind, "{line}");
        assert_eq!(reply(format!("-{line}\r\n").as_bytes()), Reply::Error(kind), "{line}");
        assert_eq!(
            reply(format!("!{}\r\n{line}\r\n", line.len()).as_bytes()),
            Reply::Error(kind),
            "{line}"
        );
    }
}

#[test]
fn an_error_inside_a_script_counts_as_itself_on_servers_before_redis_7() {
    let line = |inner: &str| {
        let sha = "f_b8ad3b80f2b3a6e5c3e2ad1be3b5e4d4d3a2c1b0";
        format!("ERR Error running script (call to {sha}): @user_script:2: {inner}").into_bytes()
    };
    let read_only = line("@user_script: 2: -READONLY You can't write against a read only replica.");
    assert_eq!(error_kind(&read_only), ErrorKind::ReadOnly);
    let out_of_memory = line("@user_script: 2: -OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(error_kind(&out_of_memory), ErrorKind::OutOfMemory);
    let wrong_type = line("WRONGTYPE Operation against a key holding the wrong kind of value");
    assert_eq!(error_kind(&wrong_type), ErrorKind::WrongType);
    assert_eq!(
        error_kind(&line("@user_script: 2: attempt to index a nil value")),
        ErrorKind::Other
    );
}

#[test]
fn the_text_of_an_error_is_fit_to_print() {
    let text = |bytes: &[u8]| error_text(&parse_frame(bytes).unwrap().unwrap().0);
    assert_eq!(text(b"-ERR no\r\n").as_deref(), Some("ERR no"));
    assert_eq!(text(b"!5\r\nA\r\nB\x1b\r\n").as_deref(), Some(r"A\r\nB\u{1b}"));
    assert_eq!(text(b"-\xc3\xa9\xff\r\n").as_deref(), Some("\u{e9}\u{fffd}"));
    assert_eq!(text(b"+OK\r\n"), None);
}

#[test]
fn the_text_of_a_long_error_stops_at_two_hundred_characters() {
    for letter in ["x", "\u{e9}", "\u{1f512}", "\u{7}", "\n"] {
        let line = letter.repeat(1_000);
        let text = error_text(&Frame::Error(line.as_bytes())).unwrap();
        assert_eq!(text.chars().count(), 200, "{letter}");
    }
}

#[test]
fn a_token_is_32_small_hex_digits_and_nothing_else() {
    let token = Token {
        high: 0x0123_4567_89ab_cdef,
        low: 0xfedc_ba98_7654_3210,
    };
    assert_eq!(
        reply(b"$32\r\n0123456789abcdeffedcba9876543210\r\n"),
        Reply::Token(token)
    );
    for odd in [
        "$31\r\n123456789abcdeffedcba9876543210\r\n",
        "$33\r\n00123456789abcdeffedcba9876543210\r\n",
        "$32\r\n0123456789ABCDEFFEDCBA9876543210\r\n",
        "$32\r\n+123456789abcdeffedcba9876543210\r\n",
        "$32\r\n0123456789abcdeffedcba987654321g\r\n",
        "+0123456789abcdeffedcba9876543210\r\n",
    ] {
        assert_eq!(reply(odd.as_bytes()), Reply::Other, "{odd}");
    }
}
