//! Commands on the wire, read back as the argument lists that a server sees.

use locks::{Command, EntryId, Key, KeyList, Script, ScriptForm, Token};
use proptest::prelude::*;
use wire::{CompareAndDelete, Encoder, Frame, KeyNames, parse_frame};

/// The reply to a `SCRIPT LOAD` of the script.
fn sha(script: Script) -> String {
    sha1_smol::Sha1::from(script.source()).digest().to_string()
}

const DIALECTS: [CompareAndDelete; 3] = [
    CompareAndDelete::Script,
    CompareAndDelete::DelIfEq,
    CompareAndDelete::DelEx,
];

fn encoder(prefix: &[u8], count: u32, dialect: CompareAndDelete) -> Encoder {
    Encoder::new(&KeyNames::new(prefix, count), dialect)
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

const TOKEN: Token = Token {
    high: 0x0123_4567_89ab_cdef,
    low: 0xff,
};
const TOKEN_HEX: &str = "0123456789abcdef00000000000000ff";
const ALL_ONES: Token = Token {
    high: u64::MAX,
    low: u64::MAX,
};

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
    assert_eq!(
        words(&by_sha),
        ["EVALSHA", &sha(Script::CompareAndDelete), "1", "p:{07}", TOKEN_HEX]
    );
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
fn what_blocks_says_for_how_long() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    let of = |command| arguments(&encoder, command);
    let wait = Command::Wait {
        replicas: 2,
        timeout_ms: 1_500,
    };
    assert_eq!(words(&of(wait)), ["WAIT", "2", "1500"]);
    // The only time limit in seconds.
    for (timeout_ms, seconds) in [(0, "0.000"), (1, "0.001"), (1_050, "1.050"), (30_000, "30.000")] {
        let wakeup = Command::AwaitWakeup {
            key: Key(7),
            token: TOKEN,
            timeout_ms,
        };
        let name = format!("p:{{07}}:bell:{TOKEN_HEX}");
        assert_eq!(words(&of(wakeup)), ["BLPOP", &name, seconds]);
    }
}

#[test]
fn a_wakeup_is_given_by_its_name_from_one_token_to_another() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    let given = Command::HandOver {
        key: Key(7),
        token: TOKEN,
        successor: Token { high: 1, low: 0xabc },
    };
    let (from, to) = (
        format!("p:{{07}}:next:{TOKEN_HEX}"),
        "p:{07}:bell:00000000000000010000000000000abc",
    );
    assert_eq!(words(&arguments(&encoder, given)), ["RENAME", &from, to]);
}

#[test]
fn a_channel_is_named_after_its_lock() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    let of = |command| arguments(&encoder, command);
    let key = Key(7);
    assert_eq!(words(&of(Command::Subscribe { key })), ["SUBSCRIBE", "p:{07}:channel"]);
    assert_eq!(
        words(&of(Command::Unsubscribe { key })),
        ["UNSUBSCRIBE", "p:{07}:channel"]
    );
}

#[test]
fn a_queue_is_a_stream_whose_readers_are_named_by_their_tokens() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    let check = |command, expected: &str| {
        let arguments = arguments(&encoder, command);
        assert_eq!(words(&arguments).join(" "), expected);
    };
    let (key, token) = (Key(7), TOKEN);
    check(
        Command::CreateQueue { key },
        "XGROUP CREATE p:{07}:tickets waiters 0 MKSTREAM",
    );
    check(
        Command::AddTicket { key, token },
        &format!("XADD p:{{07}}:tickets * token {TOKEN_HEX}"),
    );
    let timeout_ms = 2_500;
    check(
        Command::ReadTicket { key, token, timeout_ms },
        &format!("XREADGROUP GROUP waiters {TOKEN_HEX} COUNT 1 BLOCK 2500 STREAMS p:{{07}}:tickets >"),
    );
    let entry = EntryId {
        ms: 1_526_919_030_474,
        seq: 55,
    };
    check(
        Command::AckTicket { key, entry },
        "XACK p:{07}:tickets waiters 1526919030474-55",
    );
    check(
        Command::DropTicket { key, entry },
        "XDEL p:{07}:tickets 1526919030474-55",
    );
    let length = 1_000;
    check(Command::TrimQueue { key, length }, "XTRIM p:{07}:tickets MAXLEN ~ 1000");
}

/// The first arguments of a script call, in both forms.
fn openings(script: Script) -> [(ScriptForm, [String; 2]); 2] {
    [
        (ScriptForm::Sha, ["EVALSHA".into(), sha(script)]),
        (ScriptForm::Source, ["EVAL".into(), script.source().into()]),
    ]
}

#[test]
fn each_script_is_given_its_keys_the_token_and_its_numbers() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::DelEx);
    for script in Script::ALL.iter().copied() {
        for (form, opening) in openings(script) {
            let run = Command::Run {
                script,
                form,
                key: Key(7),
                token: TOKEN,
                numbers: [30_000, 7],
            };
            let mut expected = Vec::from(opening);
            expected.push((1 + script.companions().len()).to_string());
            expected.push("p:{07}".into());
            expected.extend(
                script
                    .companions()
                    .iter()
                    .map(|key| format!("p:{{07}}:{}", key.suffix())),
            );
            expected.push(TOKEN_HEX.into());
            expected.extend(["30000", "7"].iter().take(script.numbers()).map(ToString::to_string));
            assert_eq!(words(&arguments(&encoder, run)), expected, "{script:?}");
        }
    }
}

#[test]
fn a_script_about_several_locks_is_given_all_names_and_the_lease() {
    let encoder = encoder(b"p:", 20, CompareAndDelete::Script);
    for script in Script::ALL.iter().copied() {
        for (form, opening) in openings(script) {
            for count in 1..=KeyList::MOST {
                let keys: Vec<_> = (0..count as u32).map(|index| Key(19 - 2 * index)).collect();
                let run = Command::RunAll {
                    script,
                    form,
                    keys: KeyList::new(&keys).unwrap(),
                    token: TOKEN,
                    lease_ms: 30_000,
                };
                let mut expected = Vec::from(opening.clone());
                expected.push(count.to_string());
                expected.extend(keys.iter().map(|key| format!("p:{{{:02}}}", key.0)));
                expected.extend([TOKEN_HEX.into(), "30000".into()]);
                assert_eq!(words(&arguments(&encoder, run)), expected, "{script:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "key 20 of 20")]
fn a_key_without_a_name_is_a_mistake_of_the_caller() {
    let command = Command::Subscribe { key: Key(20) };
    arguments(&encoder(b"p:", 20, CompareAndDelete::Script), command);
}

#[test]
fn commands_are_appended_behind_what_is_there() {
    let encoder = encoder(b"p:", 1, CompareAndDelete::DelIfEq);
    let mut out = b"*1\r\n$4\r\nPING\r\n".to_vec();
    encoder.encode(&Command::SetNx { key: Key(0) }, &mut out);
    encoder.encode(
        &Command::SetNxPx {
            key: Key(0),
            token: ALL_ONES,
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
        token,
        lease_ms,
    };
    arguments(&encoder, set(1, ALL_ONES, u64::MAX));
    let zeros = "0".repeat(32);
    assert_eq!(
        words(&arguments(&encoder, set(0, Token { high: 0, low: 0 }, 0))),
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

/// Any number, and often one at which a number gains a digit or a type ends.
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
        (high, low) in any::<(u64, u64)>(),
        number in numbers(),
        seq in numbers(),
    ) {
        let (key, token) = (Key(index), Token { high, low });
        let width = (count - 1).to_string().len();
        let name = [&prefix[..], format!("{{{index:0width$}}}").as_bytes()].concat();
        let hex = format!("{high:016x}{low:016x}").into_bytes();
        let digits = number.to_string().into_bytes();
        let text = |text: &str| text.as_bytes().to_vec();

        let encoder = encoder(&prefix, count, CompareAndDelete::Script);
        prop_assert_eq!(
            arguments(&encoder, Command::SetNxPx { key, token, lease_ms: number }),
            vec![text("SET"), name.clone(), hex.clone(), text("NX"), text("PX"), digits.clone()]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::CompareAndDelete { key, token, form: ScriptForm::Sha }),
            vec![text("EVALSHA"), text(&sha(Script::CompareAndDelete)), text("1"), name.clone(), hex.clone()]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::AwaitWakeup { key, token, timeout_ms: number }),
            vec![
                text("BLPOP"),
                [&name[..], b":bell:", &hex].concat(),
                format!("{}.{:03}", number / 1_000, number % 1_000).into_bytes(),
            ]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::DropTicket { key, entry: EntryId { ms: number, seq } }),
            vec![text("XDEL"), [&name[..], b":tickets"].concat(), format!("{number}-{seq}").into_bytes()]
        );
        prop_assert_eq!(
            arguments(&encoder, Command::Expire { key, seconds: number }),
            vec![text("EXPIRE"), name, digits]
        );
    }
}
