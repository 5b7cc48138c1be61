//! The log-in of a session: the user, the proof, and the statements that are prepared in it.
//!
//! ```text
//!   Asked ──ok─────────────────────────> Authenticated ──ready──> Preparing ──ready──> done
//!     ├─password, md5──> Answered ──ok────^
//!     └─SASL──> Scram ──final──> Answered
//! ```
//! An error of the server ends the log-in in each state. Only SCRAM proves the server's identity; a log-in by SCRAM
//! succeeds only when the server has proved it.

use std::fmt;
use std::io;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{self, Message};
use postgres_protocol::message::frontend;
use thiserror::Error;

use super::messages::{self, is_unasked};
use super::server_error::Fields;
use super::{LogInPlan, Malformed, ServerError};
use crate::Excerpt;

/// Makes the client's side of a log-in by SCRAM from the password: its nonce is random, so it comes from outside.
pub type MakeScram = fn(&[u8]) -> ScramSha256;

/// Why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogInError {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the server refused the log-in: {0}")]
    Refused(ServerError),
    #[error("the server refused to prepare `{sql}`: {error}")]
    NotPrepared { sql: String, error: ServerError },
    #[error("the server asks for a password, and none was given")]
    NoPassword,
    #[error("the server wants a log-in by {0}, which is not supported; SCRAM-SHA-256, md5 and password are")]
    Method(&'static str),
    /// The password is wrong for this server, or another server than the one where it was set.
    #[error("the log-in by SCRAM-SHA-256 failed: {0}")]
    Scram(String),
}

/// The effect of a message on a log-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The message is incomplete: call again with more bytes.
    NeedMore,
    /// The message was `used` bytes long, and others must follow.
    Handled { used: usize },
    /// The last message, `used` bytes long: blocks may be sent.
    Done { used: usize },
}

/// One log-in under way.
#[derive(Default)]
pub struct LogIn {
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Asked,
    Scram(Box<ScramSha256>),
    /// The proof was sent.
    Answered,
    Authenticated,
    Preparing {
        /// How many statements the server has prepared.
        prepared: usize,
    },
}

impl LogIn {
    /// Reads the message at the front of `buf`, and appends the answer to `out`.
    ///
    /// # Errors
    /// When the log-in has failed.
    pub fn on(
        &mut self,
        plan: &LogInPlan,
        buf: &[u8],
        out: &mut Vec<u8>,
        scram: MakeScram,
    ) -> Result<Progress, LogInError> {
        let Some(message) = messages::next(buf)? else {
            return Ok(Progress::NeedMore);
        };
        let used = message.used;
        if is_unasked(message.tag) {
            return Ok(Progress::Handled { used });
        }
        if message.tag == backend::ERROR_RESPONSE_TAG {
            return Err(self.refused(plan, Fields::of(message.body).server_error()));
        }
        let found = || Excerpt::of(buf);
        let read = Message::parse(&mut BytesMut::from(&buf[..used])).ok().flatten();
        let read = read.ok_or_else(|| Malformed::BadValue {
            what: "a message of the log-in",
            found: found(),
        })?;
        let mut answer = BytesMut::new();
        let done = self.handle(plan, &read, &mut answer, scram, found)?;
        out.extend_from_slice(&answer);
        Ok(if done {
            Progress::Done { used }
        } else {
            Progress::Handled { used }
        })
    }

    /// True when it was the last message.
    fn handle(
        &mut self,
        plan: &LogInPlan,
        message: &Message,
        out: &mut BytesMut,
        scram: MakeScram,
        found: impl Fn() -> Excerpt,
    ) -> Result<bool, LogInError> {
        let asked = matches!(self.state, State::Asked);
        match (&mut self.state, message) {
            (State::Asked | State::Answered, Message::AuthenticationOk) => self.state = State::Authenticated,
            (State::Asked, Message::AuthenticationCleartextPassword) => {
                self.prove(password(plan)?, out);
            }
            (State::Asked, Message::AuthenticationMd5Password(body)) => {
                let password = password(plan)?;
                let digest = md5_hash(plan.user.as_bytes(), password.as_bytes(), body.salt());
                self.prove(&digest, out);
            }
            (State::Asked, Message::AuthenticationSasl(body)) => {
                let offered = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256));
                if !offered.unwrap_or(false) {
                    return Err(LogInError::Method("another mechanism of SASL"));
                }
                let scram = scram(password(plan)?.as_bytes());
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out).expect("a name without a zero");
                self.state = State::Scram(Box::new(scram));
            }
            (State::Scram(scram), Message::AuthenticationSaslContinue(body)) => {
                scram.update(body.data()).map_err(|error| scram_error(&error))?;
                frontend::sasl_response(scram.message(), out).expect("a proof is short");
            }
            (State::Scram(scram), Message::AuthenticationSaslFinal(body)) => {
                scram.finish(body.data()).map_err(|error| scram_error(&error))?;
                self.state = State::Answered;
            }
            // The process id and the secret would allow to cancel a statement; this client closes the connection
            // instead.
            (State::Authenticated, Message::BackendKeyData(_)) => {}
            (State::Authenticated, Message::ReadyForQuery(_)) if plan.preparing.is_empty() => return Ok(true),
            (State::Authenticated, Message::ReadyForQuery(_)) => {
                out.extend_from_slice(&plan.preparing);
                self.state = State::Preparing { prepared: 0 };
            }
            (State::Preparing { prepared }, Message::ParseComplete) if *prepared < plan.prepared.len() => {
                *prepared += 1;
            }
            (State::Preparing { prepared }, Message::ReadyForQuery(_)) if *prepared == plan.prepared.len() => {
                return Ok(true);
            }
            (_, other) => {
                return Err(match method(other) {
                    Some(method) if asked => LogInError::Method(method),
                    _ => Malformed::OutOfPlace { found: found() }.into(),
                });
            }
        }
        Ok(false)
    }

    fn prove(&mut self, word: &str, out: &mut BytesMut) {
        frontend::password_message(word.as_bytes(), out).expect("the plan has no zero byte");
        self.state = State::Answered;
    }

    fn refused(&self, plan: &LogInPlan, error: ServerError) -> LogInError {
        match self.state {
            State::Preparing { prepared } => LogInError::NotPrepared {
                sql: plan.prepared.get(prepared).cloned().unwrap_or_default(),
                error,
            },
            State::Asked | State::Scram(_) | State::Answered | State::Authenticated => LogInError::Refused(error),
        }
    }
}

impl fmt::Debug for LogIn {
    // Written by hand: a log-in by SCRAM contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Asked => "LogIn(Asked)",
            State::Scram(_) => "LogIn(Scram)",
            State::Answered => "LogIn(Answered)",
            State::Authenticated => "LogIn(Authenticated)",
            State::Preparing { .. } => "LogIn(Preparing)",
        })
    }
}

fn password(plan: &LogInPlan) -> Result<&str, LogInError> {
    plan.password.as_deref().ok_or(LogInError::NoPassword)
}

fn scram_error(error: &io::Error) -> LogInError {
    LogInError::Scram(crate::errors::printable(error.to_string().as_bytes()))
}

/// The method that a message asks for, if it is an unsupported one.
fn method(message: &Message) -> Option<&'static str> {
    match message {
        Message::AuthenticationGss => Some("GSSAPI"),
        Message::AuthenticationSspi => Some("SSPI"),
        Message::AuthenticationKerberosV5 => Some("Kerberos"),
        Message::AuthenticationScmCredential => Some("SCM credentials"),
        _ => None,
    }
}
