//! The format of a command on the wire.

use std::sync::Arc;

use locks::{Key, Opens, Statement, Token};
use wire::KeyNames;
use wire::postgres::{BlockKind, Encoder, Hashes, Prepare, SessionSpec, hash};

use crate::words::{ALL, message};

const TOKEN: Token = Token {
    high: 0x0102_0304_0506_0708,
    low: 0x090a_0b0c_0d0e_0f10,
};

pub(crate) fn spec(prepare: Prepare) -> SessionSpec<'static> {
    SessionSpec {
        user: "u",
        password: None,
        database: "d",
        settings: &[],
        statements: ALL,
        prepare,
        table: "\"run\".\"locks\"",
    }
}

fn encoder(prepare: Prepare) -> Encoder {
    let names = KeyNames::new(b"run:", 100);
    Encoder::new(&spec(prepare), Arc::new(Hashes::new(&names, ALL))).unwrap()
}

fn block(prepare: Prepare, statement: Statement) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let about = encoder(prepare).encode(statement, Key(42), TOKEN, [5, 6], &mut out);
    assert_eq!(about == BlockKind::Commits, statement.commits());
    out.split_off(b"before".len())
}

/// The messages of a block: the tag of each, and its body.
fn messages(mut bytes: &[u8]) -> Vec<(char, Vec<u8>)> {
    let mut messages = Vec::new();
    while let Some((&tag, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(*rest.first_chunk().unwrap()) as usize;
        messages.push((char::from(tag), rest[4..length].to_vec()));
        bytes = &rest[length..];
    }
    messages
}

fn kinds(prepare: Prepare, statement: Statement) -> String {
    messages(&block(prepare, statement))
        .iter()
        .map(|(tag, _)| *tag)
        .collect()
}

#[test]
fn a_lock_is_asked_for_with_the_hash_of_its_name() {
    let bind = [
        b"\0",
        &block(Prepare::Named, Statement::AdvisoryTry)[6..7],
        b"\0\0\x01\0\x01\0\x01",
    ]
    .concat();
    let hash = hash(b"run:{42}").to_be_bytes();
    let bound = [&bind[..], b"\0\0\0\x08", &hash, b"\0\x01\0\x01"].concat();
    let expected = [message(b'B', &bound), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    assert_eq!(block(Prepare::Named, Statement::AdvisoryTry), expected);
}

#[test]
fn the_hash_is_the_first_half_of_a_quarter_of_sha_256() {
    // `printf abc | sha256sum` begins with ba7816bf8f01cfea.
    assert_eq!(hash(b"abc").cast_unsigned(), 0xba78_16bf_8f01_cfea);
}

#[test]
fn every_key_has_the_hash_of_its_name_whenever_it_is_asked_for() {
    let names = KeyNames::new(b"many:", 1_100_000);
    for statements in [ALL, &[Statement::RowLock]] {
        let hashes = Hashes::new(&names, statements);
        for key in [0, 1, 1_048_575, 1_048_576, 1_099_999, 1, 0].map(Key) {
            assert_eq!(hashes.of(key), hash(&names.name(key)), "{key:?}");
        }
    }
}

#[test]
fn parameters_stand_in_their_order() {
    let take = messages(&block(Prepare::Named, Statement::LeaseTake));
    let expected = [
        b"\0\x03\0\0\0\x04".to_vec(),
        42_u32.to_be_bytes().to_vec(),
        b"\0\0\0\x10".to_vec(),
        (1..=16).collect(),
        b"\0\0\0\x08".to_vec(),
        5_u64.to_be_bytes().to_vec(),
        b"\0\x01\0\x01".to_vec(),
    ]
    .concat();
    assert!(take[0].1.ends_with(&expected), "{}", take[0].1.escape_ascii());
    let write = messages(&block(Prepare::Named, Statement::FencedWrite));
    let numbers = [
        &b"\0\0\0\x08"[..],
        &5_u64.to_be_bytes(),
        b"\0\0\0\x08",
        &6_u64.to_be_bytes(),
    ]
    .concat();
    assert!(write[0].1.ends_with(&[&numbers[..], b"\0\x01\0\x01"].concat()));
}

#[test]
fn a_block_opens_and_ends_its_transaction_and_has_one_sync() {
    assert_eq!(kinds(Prepare::Named, Statement::AdvisoryLock), "BES");
    assert_eq!(kinds(Prepare::Named, Statement::RowLock), "BEBES");
    assert_eq!(kinds(Prepare::Named, Statement::SerializableWrite), "BEBES");
    assert_eq!(kinds(Prepare::Named, Statement::Commit), "BES");
    assert_eq!(kinds(Prepare::Unnamed, Statement::RowLock), "PBEPBES");
    assert_eq!(kinds(Prepare::Unnamed, Statement::Commit), "PBES");
}

#[test]
fn unnamed_statements_carry_their_text_and_types() {
    let parts = messages(&block(Prepare::Unnamed, Statement::RowLock));
    assert_eq!(parts[0].1, b"\0BEGIN\0\0\0");
    let text = b"\0SELECT id FROM \"run\".\"locks\" WHERE id = $1 FOR UPDATE\0\0\x01\0\0\0\x17";
    assert_eq!(parts[3].1.escape_ascii().to_string(), text.escape_ascii().to_string());
}

#[test]
fn a_serializable_transaction_is_opened_as_one() {
    let parts = messages(&block(Prepare::Unnamed, Statement::SerializableRead));
    assert_eq!(parts[0].1, b"\0BEGIN ISOLATION LEVEL SERIALIZABLE\0\0\0");
}

#[test]
fn every_statement_has_a_name_of_its_own() {
    let mut names: Vec<Vec<u8>> = ALL
        .iter()
        .filter(|statement| statement.opens() == Opens::Nothing)
        .map(|statement| messages(&block(Prepare::Named, *statement))[0].1[1..3].to_vec())
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name[0].is_ascii_graphic() && name[1] == 0));
}

#[test]
fn a_table_whose_name_would_end_a_text_is_refused() {
    for prepare in [Prepare::Named, Prepare::Unnamed] {
        let spec = SessionSpec {
            table: "a\0b",
            ..spec(prepare)
        };
        let hashes = Arc::new(Hashes::new(&KeyNames::new(b"", 1), ALL));
        let by_plan = wire::postgres::LogInPlan::new(&spec).is_err();
        assert!(by_plan || Encoder::new(&spec, hashes).is_err(), "{prepare:?}");
    }
}
