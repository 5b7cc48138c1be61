//! The settings that all locks of a cell share: the lease, the reply timeout, the retry policy.

use crate::{Lease, Nanos, Retry, SpecError};

/// Shared by the clients of a cell. Make it, `check` it once, and pass it to every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// Servers of the cell: every `ServerId` is below it.
    pub servers: u16,
    pub lease: Lease,
    /// How long a reply may take before the call is given up. No default: a server that stalls must not hang its
    /// clients.
    pub reply_timeout: Nanos,
    pub retry: Retry,
}

impl Spec {
    pub fn check(&self) -> Result<(), SpecError> {
        if self.reply_timeout == Nanos::ZERO {
            return Err(SpecError::ZeroReplyTimeout);
        }
        self.retry.check()
    }
}
