//! What breaks the format is an error with file and line; a torn last line is not.

use history::{FormatError, Judged, Reading};

const HEADER: &str = r#"{"pybench_history":1,"clock":"monotonic","boot_id":"b"}"#;

fn read(files: &[&str]) -> Result<Vec<Judged>, FormatError> {
    let mut reading = Reading::new();
    for (number, text) in files.iter().enumerate() {
        reading.begin(&format!("file{number}"));
        reading.feed(text.as_bytes())?;
        reading.end()?;
    }
    Ok(reading.finish())
}

fn refused(lines: &[&str]) -> String {
    let text = [&[HEADER], lines].concat().join("\n") + "\n";
    read(&[&text])
        .map(|judged| judged.len())
        .expect_err("the lines break the format")
        .to_string()
}

const ACQUIRE: &str = r#"{"t":5,"client":"a","event":"acquire","key":"k"}"#;

/// Lines after the header, and the error.
const MISTAKES: [(&[&str], &str); 22] = [
    (&["nonsense"], "file0:2: the line is no JSON object"),
    (
        &[r#"{"t":5,"client":"a","event":"denied"}"#],
        "file0:2: client \"a\" has not sent an acquire before",
    ),
    (&[""], "file0:2: the line is no JSON object"),
    (&[ACQUIRE, "[]"], "file0:3: the line is no JSON object"),
    (
        &[r#"{"t":5,"event":"acquire","key":"k"}"#],
        "file0:2: event `acquire` needs the field `client`",
    ),
    (
        &[r#"{"t":5,"client":"a","event":"acquire"}"#],
        "file0:2: event `acquire` needs the field `key`",
    ),
    (
        &[r#"{"client":"a","event":"released"}"#],
        "file0:2: missing field `t`, at column 33",
    ),
    (
        &[r#"{"t":-5,"client":"a","event":"released"}"#],
        "file0:2: invalid value: integer `-5`, expected u64, at column 7",
    ),
    (
        &[r#"{"t":5.5,"client":"a","event":"released"}"#],
        "file0:2: invalid type: floating point `5.5`, expected u64, at column 8",
    ),
    (
        &[r#"{"t":9223372036854775807,"client":"a","event":"released"}"#],
        "file0:2: a time is out of range: the most is 2^62 ns",
    ),
    (
        &[ACQUIRE, r#"{"t":4,"client":"a","event":"gave-up"}"#],
        "file0:3: `t` is 4, but the line before has 5",
    ),
    (
        &[ACQUIRE, r#"{"t":6,"client":"a","event":"granted"}"#],
        "file0:3: event `granted` needs the field `until`",
    ),
    (
        &[ACQUIRE, r#"{"t":6,"client":"a","event":"granted","until":9,"fence":0}"#],
        "file0:3: `fence` must be at least 1",
    ),
    (
        &[ACQUIRE, r#"{"t":6,"client":"a","event":"released","until":9}"#],
        "file0:3: event `released` has no field `until`",
    ),
    (
        &[ACQUIRE, r#"{"t":6,"client":"a","event":"released","key":"other"}"#],
        "file0:3: client \"a\" has not sent an acquire of this key last",
    ),
    (
        &[
            ACQUIRE,
            r#"{"t":6,"client":"a","event":"released","key":"k","key":"k"}"#,
        ],
        "file0:3: duplicate field `key`, at column 54",
    ),
    (
        &[r#"{"t":5,"client":"a","event":"released","unti":9}"#],
        "file0:2: unknown field `unti`, expected one of `t`, `event`, `client`, `part`, `key`, `mode`, `until`, `hold`, `fence`, `placed`, `counts`, at column 45",
    ),
    (
        &[r#"{"t":5,"event":"window-ends"}"#],
        "file0:2: a history has one window, which begins before it ends",
    ),
    (
        &[r#"{"t":5,"event":"window-begins","key":"k"}"#],
        "file0:2: event `window-begins` has no field `key`",
    ),
    (
        &[r#"{"t":5,"event":"ended"}"#, ACQUIRE],
        "file0:3: an event follows after `ended`",
    ),
    (
        &[ACQUIRE, HEADER, "{"],
        "file0:4: EOF while parsing an object, at column 1",
    ),
    (
        &[ACQUIRE, r#"{"pybench_history":2,"clock":"monotonic","boot_id":"b"}"#],
        "file0:3: not the header of a history: version 2 of the format; this pybench reads version 1",
    ),
];

#[test]
fn each_mistake_is_named_with_its_file_and_line() {
    for (lines, expected) in MISTAKES {
        assert_eq!(refused(lines), expected);
    }
}

#[test]
fn a_history_begins_with_a_header_that_makes_sense() {
    let table = [
        ("", "file0:1: the file is empty: a history begins with its header"),
        (
            "nonsense",
            "file0:1: not the header of a history: the line is no JSON object",
        ),
        (r#"{"t":5}"#, "file0:1: not the header of a history: unknown field `t`"),
        (
            r#"{"pybench_history":1,"clock":"wall","boot_id":"b"}"#,
            "file0:1: not the header of a history: unknown variant `wall`",
        ),
        (
            r#"{"pybench_history":1,"clock":"monotonic","boot_id":""}"#,
            "file0:1: not the header of a history: `boot_id` is empty",
        ),
        (
            r#"{"pybench_history":1,"clock":"monotonic","boot_id":"b","promises":{"permits":0}}"#,
            "file0:1: not the header of a history: `permits` must be at least 1",
        ),
        (
            r#"{"pybench_history":1,"clock":"monotonic","boot_id":"b","promises":{"permits":2,"fences":true}}"#,
            "file0:1: not the header of a history: a lock with several `permits` has no `fences`",
        ),
    ];
    for (text, expected) in table {
        let told = read(&[text])
            .map(|judged| judged.len())
            .expect_err("it is no header")
            .to_string();
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn files_of_other_boots_or_with_other_promises_are_not_merged() {
    let other = HEADER.replace("\"b\"", "\"c\"");
    let told = read(&[HEADER, &other]).expect_err("the clocks differ").to_string();
    assert!(told.starts_with("file1:1: another `boot_id`"), "{told}");
    let promising = HEADER.replace("\"b\"", r#""b","promises":{"fences":true}"#);
    let told = read(&[HEADER, &promising])
        .expect_err("the promises differ")
        .to_string();
    assert!(told.starts_with("file1:1: other `promises`"), "{told}");
}

#[test]
fn a_line_is_not_read_without_bounds() {
    let told = refused(&[&"x".repeat(1 << 17)]);
    assert_eq!(told, "file0:2: the line is longer than 65536 bytes");
}

#[test]
fn a_torn_last_line_is_left_out_and_named_and_a_whole_one_without_a_line_break_is_read() {
    let acquire = r#"{"t":5,"client":"a","event":"acquire","key":"k"}"#;
    let whole = format!("{HEADER}\n{acquire}");
    assert_eq!(read(&[&whole]).expect("it is whole")[0].events, 1);
    for cut in 1..acquire.len() {
        let torn = &whole[..whole.len() - cut];
        let judged = &read(&[torn]).expect("only the last line is torn")[0];
        assert_eq!((judged.events, &judged.torn), (0, &vec![("file0".to_owned(), 2)]));
    }
}

#[test]
fn a_client_that_died_ends_what_it_did() {
    let file = format!(
        "{HEADER}\n{}\n{}\n{}\n{}\n",
        r#"{"t":1,"client":"a","event":"acquire","key":"k"}"#,
        r#"{"t":2,"client":"a","event":"granted","until":100}"#,
        r#"{"t":3,"client":"a","event":"died"}"#,
        r#"{"t":4,"client":"idle","event":"died"}"#,
    );
    let other = format!(
        "{HEADER}\n{}\n{}\n{}\n",
        r#"{"t":1,"client":"a","event":"acquire","key":"k"}"#,
        r#"{"t":3,"client":"a","event":"granted","until":90}"#,
        r#"{"t":9,"client":"a","event":"died"}"#,
    );
    let judged = &read(&[&file, &other]).expect("both are histories")[0];
    assert_eq!(
        judged.report.counts,
        check::ViolationCounts::default(),
        "at equal times an end comes first"
    );
    assert_eq!(judged.report.figures.grants, 2);
    let alive = file
        .replace("died", "renewed")
        .replace(r#""renewed"}"#, r#""renewed","until":100}"#);
    let alive = alive.lines().take(4).collect::<Vec<_>>().join("\n");
    let judged = &read(&[&alive, &other]).expect("both are histories")[0];
    assert_eq!(
        judged.report.counts.double_grants, 1,
        "the same name in another file is another client"
    );
    assert_eq!(judged.clients, ["a of file0", "a of file1"]);
}

#[test]
fn an_event_that_its_client_cannot_do_is_found_with_its_line() {
    let acquire = r#"{"t":1,"client":"a","event":"acquire","key":"k"}"#;
    let file = format!(
        "{HEADER}\n{acquire}\n{}\n",
        r#"{"t":1,"client":"a","event":"released"}"#
    );
    let judged = &read(&[&file]).expect("the format is kept")[0];
    assert_eq!(judged.finding, Some(("file0".to_owned(), 3)));
    assert_eq!(judged.report.counts.findings, 1);
}
