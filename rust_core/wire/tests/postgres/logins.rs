//! How a session is opened, and why it may fail.

use locks::Statement;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use wire::postgres::{LogIn, LogInError, LogInPlan, Malformed, Prepare, Progress, SessionSpec};

use crate::words::{error, message, notice, parameter, ready};

fn spec<'a>() -> SessionSpec<'a> {
    SessionSpec {
        user: "ann",
        password: Some("hush"),
        database: "d",
        settings: &[],
        statements: &[Statement::RowLock, Statement::Commit],
        prepare: Prepare::Named,
        table: "t",
    }
}

fn scram(password: &[u8]) -> ScramSha256 {
    ScramSha256::new(password, ChannelBinding::unsupported())
}

/// A log-in that receives one message after another, and its answer to each.
fn logged_in(spec: &SessionSpec<'_>, messages: &[Vec<u8>]) -> Result<(Vec<Vec<u8>>, Progress), LogInError> {
    let plan = LogInPlan::new(spec).unwrap();
    let mut log_in = LogIn::default();
    let mut answer = Vec::new();
    let mut last = Progress::NeedMore;
    for message in messages {
        for short in 0..message.len() {
            let more = log_in.on(&plan, &message[..short], &mut Vec::new(), scram);
            assert_eq!(more, Ok(Progress::NeedMore));
        }
        let mut out = Vec::new();
        last = log_in.on(&plan, message, &mut out, scram)?;
        answer.push(out);
    }
    Ok((answer, last))
}

fn authentication(kind: u32, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[&kind.to_be_bytes(), rest].concat())
}

fn ok() -> Vec<u8> {
    authentication(0, b"")
}

fn key_data() -> Vec<u8> {
    message(b'K', &[0; 8])
}

fn prepared() -> Vec<u8> {
    message(b'1', b"")
}

#[test]
fn a_trusted_session_prepares_its_statements_and_stands() {
    let welcome = [
        ok(),
        parameter("server_version", "15.18"),
        key_data(),
        notice(),
        ready(b'I'),
    ];
    let (answer, last) = logged_in(&spec(), &welcome).unwrap();
    assert!(answer[..4].iter().all(Vec::is_empty));
    let preparing = String::from_utf8_lossy(&answer[4]).into_owned();
    for text in ["BEGIN", "SELECT id FROM t WHERE id = $1 FOR UPDATE", "COMMIT"] {
        assert_eq!(preparing.matches(text).count(), 1, "{text}");
    }
    assert!(matches!(last, Progress::Handled { .. }));
    let whole = [&welcome[..], &[prepared(), prepared(), prepared(), ready(b'I')]].concat();
    let (_, last) = logged_in(&spec(), &whole).unwrap();
    assert_eq!(last, Progress::Done { used: 6 });
}

#[test]
fn a_session_that_prepares_nothing_stands_when_it_is_ready() {
    let unnamed = SessionSpec {
        prepare: Prepare::Unnamed,
        ..spec()
    };
    let (answer, last) = logged_in(&unnamed, &[ok(), key_data(), ready(b'I')]).unwrap();
    assert!(answer.iter().all(Vec::is_empty));
    assert_eq!(last, Progress::Done { used: 6 });
}

#[test]
fn the_first_message_names_the_user_the_database_and_the_settings() {
    let settings = [("lock_timeout".to_owned(), "10s".to_owned())];
    let plan = LogInPlan::new(&SessionSpec {
        settings: &settings,
        ..spec()
    });
    let body = b"\0\x03\0\0user\0ann\0database\0d\0lock_timeout\x0010s\0\0";
    let expected = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
    assert_eq!(
        plan.unwrap().startup().escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

#[test]
fn a_password_is_sent_when_it_is_asked_for() {
    let (answer, _) = logged_in(&spec(), &[authentication(3, b""), ok()]).unwrap();
    assert_eq!(answer[0], message(b'p', b"hush\0"));
    let (answer, _) = logged_in(&spec(), &[authentication(5, &[1, 2, 3, 4]), ok()]).unwrap();
    // md5 of the hex digest of "hushann", and the salt.
    assert_eq!(answer[0].len(), 1 + 4 + 3 + 32 + 1);
    assert!(answer[0][5..].starts_with(b"md5"));
    let (answer, _) = logged_in(&spec(), &[authentication(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")]).unwrap();
    assert!(answer[0][5..].starts_with(b"SCRAM-SHA-256\0"));
}

#[test]
fn a_server_that_did_not_prove_itself_is_not_believed() {
    let sasl = authentication(10, b"SCRAM-SHA-256\0\0");
    let refused = logged_in(&spec(), &[sasl.clone(), ok()]);
    assert!(matches!(
        refused,
        Err(LogInError::Malformed(Malformed::OutOfPlace { .. }))
    ));
    let another = authentication(11, b"r=another,s=QSXCR+Q6sek8bf92,i=4096");
    assert!(matches!(
        logged_in(&spec(), &[sasl.clone(), another]),
        Err(LogInError::Scram(_))
    ));
    let forever = authentication(11, b"r=x,s=QSXCR+Q6sek8bf92,i=4000000000");
    assert!(matches!(
        logged_in(&spec(), &[sasl, forever]),
        Err(LogInError::Scram(_))
    ));
}

#[test]
fn a_password_that_is_lacking_is_said_to_be() {
    let without = SessionSpec {
        password: None,
        ..spec()
    };
    for asked in [
        authentication(3, b""),
        authentication(5, &[0; 4]),
        authentication(10, b"SCRAM-SHA-256\0\0"),
    ] {
        assert_eq!(logged_in(&without, &[asked]), Err(LogInError::NoPassword));
    }
}

#[test]
fn a_way_of_logging_in_that_is_not_spoken_is_named() {
    let refused = |asked: Vec<u8>| logged_in(&spec(), &[asked]).unwrap_err().to_string();
    assert!(refused(authentication(7, b"")).contains("GSSAPI"));
    assert!(refused(authentication(9, b"")).contains("SSPI"));
    assert!(refused(authentication(10, b"OAUTHBEARER\0\0")).contains("SASL"));
}

#[test]
fn a_refusal_is_shown_in_the_words_of_the_server() {
    for (code, text) in [
        ("28P01", "password authentication failed for user \"ann\""),
        ("3D000", "database \"d\" does not exist"),
        ("53300", "sorry, too many clients already"),
        ("57P03", "the database system is starting up"),
    ] {
        let refused = logged_in(&spec(), &[error("FATAL", code, text)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("the server refused the log-in: {text} ({code})")
        );
    }
}

#[test]
fn a_statement_that_cannot_be_prepared_is_named() {
    let welcome = [
        ok(),
        ready(b'I'),
        prepared(),
        error("ERROR", "42P01", "relation \"t\" does not exist"),
    ];
    let refused = logged_in(&spec(), &welcome).unwrap_err().to_string();
    let sql = "SELECT id FROM t WHERE id = $1 FOR UPDATE";
    assert_eq!(
        refused,
        format!("the server refused to prepare `{sql}`: relation \"t\" does not exist (42P01)")
    );
}

#[test]
fn a_password_stands_in_no_text() {
    let plan = LogInPlan::new(&spec()).unwrap();
    let mut log_in = LogIn::default();
    let sasl = authentication(10, b"SCRAM-SHA-256\0\0");
    log_in.on(&plan, &sasl, &mut Vec::new(), scram).unwrap();
    for text in [format!("{plan:?}"), format!("{log_in:?}"), format!("{:?}", spec())] {
        assert!(!text.contains("hush"), "{text}");
    }
}

#[test]
fn texts_that_would_end_early_are_refused() {
    for broken in [
        SessionSpec { user: "a\0b", ..spec() },
        SessionSpec {
            database: "a\0b",
            ..spec()
        },
        SessionSpec {
            password: Some("a\0b"),
            ..spec()
        },
        SessionSpec {
            table: "a\0b",
            ..spec()
        },
    ] {
        assert!(LogInPlan::new(&broken).is_err());
    }
}
