//! The errors of a trial, other than a server's replies to a lock.

use std::io;

use locks::SpecError;

/// A trial could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("`{0}` has an invalid value")]
    Field(&'static str),
    #[error(transparent)]
    Lock(#[from] SpecError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the history cannot be written: {0}")]
    Recording(#[source] io::Error),
}

/// A server's error reply to the handshake of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRefusal {
    /// The server's number in the trial.
    pub server: u16,
    /// The command that was refused, such as `SCRIPT LOAD`.
    pub call: String,
    /// The first word of a Redis error, or the SQLSTATE of a Postgres error.
    pub code: String,
    pub text: String,
}

/// The machine or a server prevented the trial from running.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Connecting failed before the trial began. A connection that breaks later is reopened.
    #[error("{address}: {reason}")]
    Connect {
        address: String,
        reason: String,
        /// Boxed, so that a result without an error stays small.
        refusal: Option<Box<ServerRefusal>>,
    },
    #[error("the kernel refused to poll: {0}")]
    Poll(#[source] io::Error),
}
