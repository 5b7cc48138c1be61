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

/// The machine or a server kept a trial from running.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Before the trial began; a connection that breaks later is opened again.
    #[error("{address}: {reason}")]
    Connect { address: String, reason: String },
    #[error("the kernel refused to poll: {0}")]
    Poll(#[source] io::Error),
}
