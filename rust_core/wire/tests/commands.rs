//! Commands on the wire, read back as the argument lists that a server sees.

use locks::{Command, Key, Script, ScriptForm, Token};
use proptest::prelude::*;
use wire::{CompareAndDelete, Encoder, Frame, KeyNames, parse_frame};

/// What `SCRIPT LOAD` of the script answers.
fn sha() -> String {
    sha1_smol::Sha1::from(Script::CompareAndDelete.source())
        .digest()
        .to_string()
}

const DIALECTS: [CompareAndDelete; 3] = [
    CompareAndDelete::Script,
    CompareAndDelete::DelIfEq,
    CompareAndDelete::DelEx,
];

fn encoder(prefix: &[u8], count: u32, how: CompareAndDelete) -> Encoder {
    Encoder::new(&KeyNames::new(prefix, count), how)
}

/// The commands in `bytes`, each as its arguments.
fn commands(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut commands = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = parse_frame(bytes).unwrap().expect("a whole command");
        let Frame::Array(arguments) = frame else {
            panic!("{frame:?}")
        };
        let argument = |frame| match frame {
            Frame::Bulk(argument) => argument.to_vec(),
            other => panic!("{other:?}"),
        };
        commands.push(arguments.iter().map(argument).collect());
        bytes = &bytes[used..];
    }
    commands
}

fn arguments(encoder: &Encoder, command: Command) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    encoder.encode(&command, &mut out);
    let [arguments] = commands(&out).try_into().expect("one command");
    arguments
}

fn words(arguments: &[Vec<u8>]) -> Vec<&str> {
    arguments
        .iter()
        .map(|argument| str::from_utf8(argument).unwrap())
        .collect()
}

const TOKEN: Token = Token(0x0123_4567_89ab_cdef_0000_0000_0000_00ff);
const TOKEN_HEX: &str = "0123456789abcdef00000000000000ff";

#[test]
fn each_command_has_the_arguments_of_its_manual() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    let key = Key(7);
    let of = |command| arguments(&encoder, command);
    let set = Command::SetNxPx {
        key,
        token: TOKEN,
        lease_ms: 30_000,
    };
    assert_eq!(words(&of(set)), ["SET", "p:{07}", TOKEN_HEX, "NX", "PX", "30000"]);
    assert_eq!(words(&of(Command::SetNx { key })), ["SETNX", "p:{07}", "1"]);
    assert_eq!(
        words(&of(Command::Expire { key, seconds: 10 })),
        ["EXPIRE", "p:{07}", "10"]
    );
    assert_eq!(words(&of(Command::Del { key })), ["DEL", "p:{07}"]);
}

#[test]
fn compare_and_delete_speaks_each_dialect() {
    let of = |how, form| {
        arguments(
            &encoder(b"p:", 20, how),
            Command::CompareAndDelete {
                key: Key(7),
                token: TOKEN,
                form,
            },
        )
    };
    let source = Script::CompareAndDelete.source();
    let by_sha = of(CompareAndDelete::Script, ScriptForm::Sha);
    assert_eq!(words(&by_sha), ["EVALSHA", &sha(), "1", "p:{07}", TOKEN_HEX]);
    let by_source = of(CompareAndDelete::Script, ScriptForm::Source);
    assert_eq!(words(&by_source), ["EVAL", source, "1", "p:{07}", TOKEN_HEX]);
    for form in [ScriptForm::Sha, ScriptForm::Source] {
        assert_eq!(
            words(&of(CompareAndDelete::DelIfEq, form)),
            ["DELIFEQ", "p:{07}", TOKEN_HEX]
        );
        assert_eq!(
            words(&of(CompareAndDelete::DelEx, form)),
            ["DELEX", "p:{07}", "IFEQ", TOKEN_HEX]
        );
    }
}

#[test]
fn commands_are_appended_behind_what_is_there() {
    let encoder = encoder(b"p:", 1, CompareAndDelete::DelIfEq);
    let mut out = b"*1\r\n$4\r\nPING\r\n".to_vec();
    encoder.encode(&Command::SetNx { key: Key(0) }, &mut out);
    encoder.encode(
        &Command::SetNxPx {
            key: Key(0),
            token: Token(u128::MAX),
            lease_ms: 1,
        },
        &mut out,
    );
    encoder.encode(&Command::Del { key: Key(0) }, &mut out);
    let names: Vec<_> = commands(&out)
        .into_iter()
        .map(|arguments| arguments[0].clone())
        .collect();
    assert_eq!(names, [&b"PING"[..], b"SETNX", b"SET", b"DEL"]);
}

#[test]
fn nothing_of_one_command_is_left_in_the_next() {
    let encoder = encoder(b"p:", 2, CompareAndDelete::DelIfEq);
    let set = |key, token, lease_ms| Command::SetNxPx {
        key: Key(key),
        token: Token(token),
        lease_ms,
    };
    arguments(&encoder, set(1, u128::MAX, u64::MAX));
    let zeros = "0".repeat(32);
    assert_eq!(
        words(&arguments(&encoder, set(0, 0, 0))),
        ["SET", "p:{0}", &zeros, "NX", "PX", "0"]
    );
}

#[test]
fn a_prefix_of_any_bytes_reaches_the_server_whole() {
    for prefix in [&b""[..], b"a b: c\r\n$5\r\n\0\xff", &[b':'; KeyNames::MAX_PREFIX]] {
        for how in DIALECTS {
            let encoder = encoder(prefix, 300, how);
            let name = [prefix, b"{299}"].concat();
            assert_eq!(arguments(&encoder, Command::Del { key: Key(299) })[1], name);
            let form = ScriptForm::Sha;
            let delete = arguments(
                &encoder,
                Command::CompareAndDelete {
                    key: Key(299),
                    token: TOKEN,
                    form,
                },
            );
            assert!(delete.contains(&name) && delete.contains(&TOKEN_HEX.as_bytes().to_vec()));
        }
    }
}

/// Any number, and often one at which a number grows a digit or a type ends.
fn numbers() -> impl Strategy<Value = u64> {
    let edges = vec![
        0,
        1,
        9,
        10,
        99,
        100,
        1 << 31,
        (1 << 31) - 1,
        1 << 32,
        1 << 53,
        9_999_999_999,
        10_000_000_000,
        u64::MAX,
    ];
    prop_oneof![prop::sample::select(edges), any::<u64>(), 0..100_000u64]
}

proptest! {
    #[test]
    fn any_key_token_and_lease_is_read_back(
        prefix in prop::collection::vec(any::<u8>(), 0..=KeyNames::MAX_PREFIX),
        (count, index) in (1..2_000u32).prop_flat_map(|count| (Just(count), 0..count)),
        token: u128,
        number in numbers(),
    ) {
        let (key, token) = (Key(index), Token(token));
        let width = (count - 1).to_string().len();
        let name = [&prefix[..], format!("{{{index:0width$}}}").as_bytes()].concat();
        let hex = format!("{:032x}", token.0).into_bytes();
        let digits = number.to_string().into_bytes();
        let text = |text: &str| text.as_bytes().to_vec();

        let encoder = encoder(&prefix, count, CompareAndDelete::Script);
        prop_assert_eq!(
            arguments(&encoder, Command::SetNxPx { key, token, lease_ms: number }),
            vec![text("SET"), name.clone(), hex.clone(), text("NX"), text("PX"), digits.clone()]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::CompareAndDelete { key, token, form: ScriptForm::Sha }),
            vec![text("EVALSHA"), text(&sha()), text("1"), name.clone(), hex]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::Expire { key, seconds: number }),
            vec![text("EXPIRE"), name, digits]
        );
    }
}
