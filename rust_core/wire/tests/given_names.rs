//! Commands about names that a program gives: the key on the server is exactly the name.

use locks::{Command, Key, KeyList, Script, ScriptForm, Token};
use wire::{CompareAndDelete, GivenNames, NamedEncoder};

const TOKEN: Token = Token { high: 1, low: 2 };

fn encoded(names: &GivenNames, command: &Command) -> String {
    let mut out = b"before".to_vec();
    NamedEncoder::new(names.clone(), CompareAndDelete::Script).encode(command, &mut out);
    out.strip_prefix(b"before")
        .expect("what stood there stays")
        .escape_ascii()
        .to_string()
}

fn set(key: Key) -> Command {
    Command::SetNxPx {
        key,
        token: TOKEN,
        lease_ms: 5_000,
    }
}

#[test]
fn the_name_stands_in_the_command_as_it_was_given() {
    let names = GivenNames::default();
    let key = names.enter(b"orders:17");
    assert_eq!(
        encoded(&names, &set(key)),
        "*6\\r\\n$3\\r\\nSET\\r\\n$9\\r\\norders:17\\r\\n$32\\r\\n00000000000000010000000000000002\\r\\n\
         $2\\r\\nNX\\r\\n$2\\r\\nPX\\r\\n$4\\r\\n5000\\r\\n"
    );
}

#[test]
fn a_refused_program_asks_how_long_the_holder_has_left() {
    let names = GivenNames::default();
    let key = names.enter(b"a");
    assert_eq!(
        encoded(&names, &Command::TimeLeft { key }),
        "*2\\r\\n$4\\r\\nPTTL\\r\\n$1\\r\\na\\r\\n"
    );
}

#[test]
fn any_bytes_are_a_name_also_those_of_a_stand_in_or_a_command() {
    for name in [&b""[..], b"\0{0000000000}", b"\r\n$3\r\n", &[0xff; GivenNames::LONGEST]] {
        let names = GivenNames::default();
        let key = names.enter(name);
        let expected = format!("${}\\r\\n{}\\r\\n$32", name.len(), name.escape_ascii());
        assert!(encoded(&names, &set(key)).contains(&expected), "{name:?}");
    }
}

#[test]
fn companions_follow_the_name() {
    let names = GivenNames::default();
    names.enter(b"other");
    let key = names.enter(b"a b");
    let command = Command::Run {
        script: Script::FencedTake,
        form: ScriptForm::Sha,
        key,
        token: TOKEN,
        numbers: [7, 0],
    };
    let text = encoded(&names, &command);
    assert!(
        text.contains("$1\\r\\n2\\r\\n$3\\r\\na b\\r\\n$9\\r\\na b:fence\\r\\n$32"),
        "{text}"
    );
}

#[test]
fn a_command_about_several_names_has_each_in_its_place() {
    let names = GivenNames::default();
    let keys = [names.enter(b"x"), names.enter(b"yy")];
    let command = Command::RunAll {
        script: Script::ReleaseAll,
        form: ScriptForm::Sha,
        keys: KeyList::new(&keys).expect("two are few"),
        token: TOKEN,
        lease_ms: 9,
    };
    assert!(encoded(&names, &command).contains("$1\\r\\n2\\r\\n$1\\r\\nx\\r\\n$2\\r\\nyy\\r\\n$32"));
}

#[test]
fn a_name_keeps_its_number_until_its_last_user_has_left() {
    let names = GivenNames::default();
    let first = names.enter(b"a");
    assert_eq!(names.enter(b"a"), first);
    assert_ne!(names.enter(b"b"), first);
    names.leave(first);
    assert_eq!(names.enter(b"a"), first);
    names.leave(first);
    names.leave(first);
    assert_eq!(names.enter(b"c"), first, "the number is used again");
    assert_eq!(&*names.name(first), b"c");
}

#[test]
fn a_channel_belongs_to_a_name_in_use() {
    let names = GivenNames::default();
    let key = names.enter(b"orders:17");
    let encoder = NamedEncoder::new(names.clone(), CompareAndDelete::Script);
    assert_eq!(encoder.key_of(b"orders:17:channel"), Some(key));
    assert_eq!(encoder.key_of(b"orders:18:channel"), None);
    assert_eq!(encoder.key_of(b"orders:17"), None);
    names.leave(key);
    assert_eq!(encoder.key_of(b"orders:17:channel"), None);
}
