//! What holds for all replies and for all bytes.

use locks::{ErrorKind, Reply};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use proptest::prelude::*;
use wire::postgres::{BlockKind, Broken, LogIn, LogInPlan, Prepare, Progress, ReplyReader};

use crate::blocks::spec;
use crate::pieces::read_in_pieces;
use crate::words::{answer, bound, complete, error, message, notice, parameter, ready, row};

/// The bytes of a reply, and their meaning.
fn answers() -> impl Strategy<Value = (Vec<u8>, Reply)> {
    let number = any::<i64>().prop_map(|number| (answer(&[&number.to_be_bytes()], "SELECT 1"), Reply::Int(number)));
    let ids = any::<i32>().prop_map(|id| {
        let opened = [
            bound(),
            complete("BEGIN"),
            bound(),
            row(&id.to_be_bytes()),
            complete("SELECT 1"),
            ready(b'T'),
        ];
        (opened.concat(), Reply::Int(id.into()))
    });
    let plain = prop_oneof![
        Just((answer(&[], "UPDATE 0"), Reply::Nil)),
        Just((answer(&[b""], "SELECT 1"), Reply::Ok)),
        Just((
            [bound(), error("ERROR", "55P03", "could not obtain lock"), ready(b'E')].concat(),
            Reply::Error(ErrorKind::LockNotAvailable)
        )),
    ];
    (prop_oneof![number, ids, plain], any::<bool>()).prop_map(|((bytes, reply), noticed)| {
        let before = if noticed { notice() } else { Vec::new() };
        ([before, bytes].concat(), reply)
    })
}

fn nearly_answers() -> impl Strategy<Value = Vec<u8>> {
    let tags = b"123ACDEIKNRSTZnst".to_vec();
    let messages = prop::collection::vec(
        (prop::sample::select(tags), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(tag, body)| message(tag, &body)),
        0..12,
    );
    let damaged = (answers(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|((mut bytes, _), place, byte)| {
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        messages.prop_map(|messages| messages.concat()),
        damaged,
    ]
}

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..40, 1..8)
}

proptest! {
    #[test]
    fn replies_are_the_same_however_their_bytes_come(
        all in prop::collection::vec(answers(), 0..6),
        lengths in lengths(),
    ) {
        let bytes: Vec<u8> = all.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Reply> = all.iter().map(|(_, reply)| *reply).collect();
        prop_assert_eq!(read_in_pieces(&bytes, &lengths, Some(BlockKind::Other)), (expected, None));
    }

    #[test]
    fn a_verdict_does_not_depend_on_how_the_bytes_come(bytes in nearly_answers(), lengths in lengths()) {
        let (whole, broken) = read_in_pieces(&bytes, &[bytes.len().max(1)], Some(BlockKind::Other));
        let (pieces, same) = read_in_pieces(&bytes, &lengths, Some(BlockKind::Other));
        prop_assert_eq!(whole, pieces);
        // The error contains the bytes that had arrived by then.
        let kind = |broken: Option<Broken>| broken.map(|broken| std::mem::discriminant(&broken));
        prop_assert_eq!(kind(broken), kind(same));
    }

    #[test]
    fn what_came_instead_is_shown_in_one_short_line(bytes in nearly_answers()) {
        if let Err(broken) = ReplyReader::default().parse(&bytes, None) {
            let text = broken.to_string();
            prop_assert!(!text.contains(char::is_control), "{}", text);
            prop_assert!(text.chars().count() < 128 + 256, "{}", text);
        }
    }

    #[test]
    fn a_log_in_takes_any_bytes(
        bytes in nearly_answers(),
        first in prop::sample::select(vec![0_u32, 3, 5, 10, 11, 12]),
    ) {
        let plan = LogInPlan::new(&spec(Prepare::Named)).unwrap();
        let mut log_in = LogIn::default();
        let asked = message(b'R', &[&first.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat());
        let all = [asked, parameter("a", "b"), bytes].concat();
        let (mut rest, mut out) = (&all[..], Vec::new());
        let scram = |password: &[u8]| ScramSha256::new(password, ChannelBinding::unsupported());
        while let Ok(Progress::Handled { used } | Progress::Done { used }) = log_in.on(&plan, rest, &mut out, scram) {
            prop_assert!(used > 0 && used <= rest.len());
            rest = &rest[used..];
        }
    }
}
