//! A log-in to a server that asks for any proof and then sends anything: the log-in ends, and its errors are short.
//!
//! The nonce of a log-in by SCRAM is random, so the server's first reply is built around it here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use locks::Statement;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use wire::postgres::{LogIn, LogInPlan, Prepare, Progress, SessionSpec};

const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;

fuzz_target!(|input: (u8, bool, bool, u8, &str, &[u8])| {
    let (method, has_password, named, piece, challenge, bytes) = input;
    let plan = LogInPlan::new(&SessionSpec {
        user: "u",
        password: has_password.then_some("p"),
        database: "d",
        settings: &[],
        statements: &[Statement::RowLock, Statement::Commit],
        prepare: if named { Prepare::Named } else { Prepare::Unnamed },
        table: "t",
    });
    let mut session = Session {
        plan: plan.expect("no text has a zero byte"),
        log_in: LogIn::default(),
        answer: Vec::new(),
    };
    let method = u32::from(method % 16);
    let details: &[u8] = if method == SASL {
        b"SCRAM-SHA-256\0\0"
    } else {
        &[7; 4][..usize::from(method == 5) * 4]
    };
    let mut goes_on = session.receives(&authentication(method, details), usize::MAX);
    if goes_on && method == SASL {
        let nonce = session.answer.iter().rposition(|&byte| byte == b'r').expect("a nonce");
        let first = [&session.answer[nonce..], challenge.as_bytes()].concat();
        goes_on = session.receives(&authentication(SASL_CONTINUE, &first), usize::MAX);
    }
    if goes_on {
        session.receives(bytes, usize::from(piece).max(1));
    }
});

struct Session {
    plan: LogInPlan,
    log_in: LogIn,
    answer: Vec<u8>,
}

impl Session {
    /// Receives `bytes` in pieces of `piece` bytes. Returns whether the log-in goes on after them.
    fn receives(&mut self, bytes: &[u8], piece: usize) -> bool {
        let (mut come, mut used) = (0, 0);
        while come < bytes.len() {
            come = come.saturating_add(piece).min(bytes.len());
            loop {
                let length_before = self.answer.len();
                match self.log_in.on(&self.plan, &bytes[used..come], &mut self.answer, scram) {
                    Ok(Progress::NeedMore) => {
                        assert_eq!(self.answer.len(), length_before);
                        break;
                    }
                    Ok(Progress::Handled { used: length }) => {
                        assert!(length > 0);
                        used += length;
                        assert!(used <= come);
                    }
                    Ok(Progress::Done { .. }) => return false,
                    Err(error) => {
                        let text = error.to_string();
                        assert!(!text.contains(char::is_control), "{text:?}");
                        assert!(text.chars().count() < 400, "{text}");
                        return false;
                    }
                }
            }
        }
        true
    }
}

fn scram(password: &[u8]) -> ScramSha256 {
    ScramSha256::new(password, ChannelBinding::unsupported())
}

fn authentication(kind: u32, details: &[u8]) -> Vec<u8> {
    let length = (8 + details.len() as u32).to_be_bytes();
    [&b"R"[..], &length, &kind.to_be_bytes(), details].concat()
}
