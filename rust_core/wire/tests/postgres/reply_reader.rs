//! The messages that answer a block, and their meaning to a lock.

use locks::{ErrorKind, Reply};
use wire::postgres::{BlockKind, Broken, MAX_MESSAGE, Malformed, ReplyReader};

use crate::words::{answer, bound, complete, error, kind, message, notice, parameter, ready, reply, reply_to, row};

#[test]
fn a_row_is_its_value() {
    assert_eq!(reply(&answer(&[&[1]], "SELECT 1")), Reply::Int(1));
    assert_eq!(reply(&answer(&[&[0]], "SELECT 1")), Reply::Int(0));
    assert_eq!(reply(&answer(&[&7_i32.to_be_bytes()], "SELECT 1")), Reply::Int(7));
    assert_eq!(reply(&answer(&[&(-7_i32).to_be_bytes()], "SELECT 1")), Reply::Int(-7));
    assert_eq!(
        reply(&answer(&[&i64::MIN.to_be_bytes()], "INSERT 0 1")),
        Reply::Int(i64::MIN)
    );
    assert_eq!(
        reply(&answer(&[&i64::MAX.to_be_bytes()], "UPDATE 1")),
        Reply::Int(i64::MAX)
    );
}

#[test]
fn a_row_without_a_value_is_ok() {
    assert_eq!(reply(&answer(&[b""], "SELECT 1")), Reply::Ok, "void");
    let null = message(b'D', &[0, 1, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(
        reply(&[bound(), null, complete("SELECT 1"), ready(b'I')].concat()),
        Reply::Ok
    );
}

#[test]
fn no_row_is_nil_also_within_a_transaction() {
    assert_eq!(reply(&answer(&[], "UPDATE 0")), Reply::Nil);
    assert_eq!(reply(&answer(&[], "SELECT 0")), Reply::Nil);
    let opened = [bound(), complete("BEGIN"), bound(), complete("SELECT 0"), ready(b'T')].concat();
    assert_eq!(reply(&opened), Reply::Nil);
}

#[test]
fn what_only_opens_or_ends_a_transaction_is_ok() {
    for tag in ["BEGIN", "COMMIT", "ROLLBACK"] {
        assert_eq!(reply(&answer(&[], tag)), Reply::Ok, "{tag}");
    }
    assert_eq!(reply_to(BlockKind::Commits, &answer(&[], "COMMIT")), Ok(Reply::Ok));
    let written = [
        bound(),
        row(&[0, 0, 0, 1]),
        complete("UPDATE 1"),
        bound(),
        complete("COMMIT"),
        ready(b'I'),
    ];
    assert_eq!(reply_to(BlockKind::Commits, &written.concat()), Ok(Reply::Int(1)));
}

#[test]
fn a_commit_that_rolled_back_is_an_error() {
    let failed = Reply::Error(ErrorKind::InFailedTransaction);
    assert_eq!(reply_to(BlockKind::Commits, &answer(&[], "ROLLBACK")), Ok(failed));
}

#[test]
fn what_no_lock_asks_for_is_other() {
    assert_eq!(reply(&answer(&[&[1], &[1]], "SELECT 2")), Reply::Other, "two rows");
    assert_eq!(reply(&answer(&[b"abc"], "SELECT 1")), Reply::Other, "a text");
    let two_columns = message(b'D', &[0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1]);
    assert_eq!(reply(&[two_columns, ready(b'I')].concat()), Reply::Other);
}

#[test]
fn an_error_is_its_code_and_the_first_one_counts() {
    assert_eq!(kind("40001"), ErrorKind::Serialization);
    assert_eq!(kind("40P01"), ErrorKind::Deadlock);
    assert_eq!(kind("55P03"), ErrorKind::LockNotAvailable);
    assert_eq!(kind("57014"), ErrorKind::Canceled);
    assert_eq!(kind("25P02"), ErrorKind::InFailedTransaction);
    assert_eq!(kind("53300"), ErrorKind::TooManyConnections);
    assert_eq!(kind("57P01"), ErrorKind::SessionEnded);
    assert_eq!(kind("25P03"), ErrorKind::SessionEnded);
    assert_eq!(kind("08006"), ErrorKind::SessionEnded);
    assert_eq!(kind("25006"), ErrorKind::ReadOnly);
    assert_eq!(kind("42P01"), ErrorKind::Other);
    assert_eq!(kind("too long for a code"), ErrorKind::Other);
    let row_and_two = [
        row(&[1]),
        error("ERROR", "40P01", "a"),
        error("ERROR", "25P02", "b"),
        ready(b'E'),
    ];
    assert_eq!(reply(&row_and_two.concat()), Reply::Error(ErrorKind::Deadlock));
}

#[test]
fn the_last_block_leaves_nothing_to_the_next() {
    let mut answers = ReplyReader::default();
    let failed = [error("ERROR", "40P01", "a"), ready(b'E')].concat();
    let next = answer(&[], "ROLLBACK");
    let bytes = [&failed[..], &next].concat();
    let first = (failed.len(), Some(Reply::Error(ErrorKind::Deadlock)));
    assert_eq!(answers.parse(&bytes, Some(BlockKind::Other)), Ok(first));
    let second = (next.len(), Some(Reply::Ok));
    assert_eq!(
        answers.parse(&bytes[failed.len()..], Some(BlockKind::Other)),
        Ok(second)
    );
}

#[test]
fn what_is_said_unasked_is_passed_over() {
    let about = [
        notice(),
        parameter("TimeZone", "UTC"),
        message(b'A', b"\0\0\0\x01channel\0text\0"),
    ]
    .concat();
    let bytes = [
        &about[..],
        &bound(),
        &about,
        &row(&[1]),
        &complete("SELECT 1"),
        &about,
        &ready(b'I'),
    ]
    .concat();
    assert_eq!(reply(&bytes), Reply::Int(1));
    assert_eq!(ReplyReader::default().parse(&about, None), Ok((about.len(), None)));
}

#[test]
fn a_fatal_error_ends_the_session_in_the_words_of_the_server() {
    let answer = error("FATAL", "57P01", "terminating connection due to administrator command");
    let words = "the server ended the session: terminating connection due to administrator command (57P01)";
    for asked in [None, Some(BlockKind::Other)] {
        let broken = ReplyReader::default().parse(&answer, asked).unwrap_err();
        assert_eq!(broken.to_string(), words);
    }
    let localized = message(b'E', b"SSCHWERWIEGEND\0VFATAL\0C57P01\0Mende\0\0");
    assert!(matches!(
        ReplyReader::default().parse(&localized, Some(BlockKind::Other)),
        Err(Broken::Ended(_))
    ));
    let mild = error("ERROR", "57014", "cancelled");
    assert!(
        matches!(ReplyReader::default().parse(&mild, None), Err(Broken::Ended(_))),
        "nothing was asked"
    );
}

#[test]
fn a_reply_that_nothing_requested_is_refused() {
    for bytes in [bound(), row(&[1]), complete("SELECT 1"), ready(b'I')] {
        let broken = ReplyReader::default().parse(&bytes, None);
        assert!(
            matches!(broken, Err(Broken::Malformed(Malformed::OutOfPlace { .. }))),
            "{broken:?}"
        );
    }
}

#[test]
fn what_no_server_says_to_a_session_is_refused_as_early_as_can_be() {
    let refused = |bytes: &[u8]| match ReplyReader::default().parse(bytes, Some(BlockKind::Other)) {
        Err(Broken::Malformed(malformed)) => malformed,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(b"x"), Malformed::UnknownType { .. }));
    assert!(matches!(refused(b"2\0\0\0\x05"), Malformed::BadLength { .. }));
    assert!(matches!(refused(b"D\0\0\0\x03"), Malformed::BadLength { .. }));
    assert!(matches!(refused(b"D\xff\xff\xff\xff"), Malformed::BadLength { .. }));
    let too_long = [&b"N"[..], &(MAX_MESSAGE as u32).to_be_bytes()].concat();
    assert!(matches!(refused(&too_long), Malformed::TooLong { .. }));
    assert!(matches!(refused(&message(b'Z', b"X")), Malformed::BadValue { .. }));
    assert!(matches!(refused(&message(b'D', b"\0")), Malformed::BadValue { .. }));
    assert!(matches!(
        refused(&message(b'D', b"\0\x01\0\0\0\x02a")),
        Malformed::BadValue { .. }
    ));
    assert!(matches!(
        refused(&message(b'R', b"\0\0\0\0")),
        Malformed::OutOfPlace { .. }
    ));
    assert!(
        refused(b"-ERR unknown command")
            .to_string()
            .ends_with("which is how a Redis server answers")
    );
}

#[test]
fn the_longest_message_is_taken() {
    let long = message(b'N', &vec![b'x'; MAX_MESSAGE - 5]);
    assert_eq!(ReplyReader::default().parse(&long[..9], None), Ok((0, None)));
    assert_eq!(ReplyReader::default().parse(&long, None), Ok((MAX_MESSAGE, None)));
}
