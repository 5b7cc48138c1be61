//! What can go wrong with a trial that is not the server's answer to a lock.

use std::io;

use locks::SpecError;

/// A trial could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("`{0}` has no value that a trial can be made of")]
    Field(&'static str),
    #[error(transparent)]
    Lock(#[from] SpecError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// An error with which a server answered what a connection began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidNo {
    /// Its number among the servers of the trial.
    pub server: u16,
    /// What it answered, such as `SCRIPT LOAD`.
    pub call: String,
    /// The first word of a Redis error, or the SQLSTATE of a Postgres error.
    pub code: String,
    pub text: String,
}

/// The machine or a server kept a trial from running.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Before the trial began; a connection that breaks later is opened again.
    #[error("{address}: {reason}")]
    Connect {
        address: String,
        reason: String,
        /// Boxed, so that a result without an error stays small.
        said_no: Option<Box<SaidNo>>,
    },
    #[error("the kernel refused to poll: {0}")]
    Poll(#[source] io::Error),
}
