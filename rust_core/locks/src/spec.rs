//! What every lock of a cell is told alike: how long it lives, how long an answer may take, when to try again.

use crate::{Lease, Nanos, Retry, SpecError};

/// Shared by the clients of a cell. Make it, `check` it once, and hand it to every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// Servers of the cell: `ServerId` is below it.
    pub servers: u16,
    pub lease: Lease,
    /// How long an answer may take before the call is given up. Has no default: a server that stalls must not hang
    /// its clients.
    pub patience: Nanos,
    pub retry: Retry,
}

impl Spec {
    pub fn check(&self) -> Result<(), SpecError> {
        if self.patience == Nanos::ZERO {
            return Err(SpecError::NoPatience);
        }
        self.retry.check()
    }
}
