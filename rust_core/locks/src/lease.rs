//! How long a lock lives on the server, and how much of that its holder may believe.
//!
//! Promises: `until` is never later than the server's expiry while the clocks of both sides run within 1 % of each
//! other, and it never wraps. Does not promise anything against clocks that jump.

use crate::{Millis, Nanos, SpecError};

/// A lease that a server takes: from 1 ms to 2^53 ms. (Redis refuses a `PX` that overflows its own clock in
/// milliseconds, which begins above 2^62; such a lease cannot be made here.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    ttl: Millis,
}

impl Lease {
    /// 2^53 ms, some 285,000 years: above it, programs that keep numbers as doubles (Lua among them) lose digits.
    pub const LONGEST: Millis = Millis(1 << 53);

    pub const fn new(millis: i64) -> Result<Self, SpecError> {
        if millis < 1 || millis as u64 > Self::LONGEST.0 {
            return Err(SpecError::LeaseOutOfRange { millis });
        }
        Ok(Self {
            ttl: Millis(millis as u64),
        })
    }

    pub const fn ttl(self) -> Millis {
        self.ttl
    }

    /// This lease for a server that counts whole seconds: rounded up, for a lock must not end before it was asked to.
    #[must_use]
    pub const fn in_whole_seconds(self) -> Self {
        Self {
            ttl: Millis(self.ttl.0.div_ceil(1_000) * 1_000),
        }
    }

    /// What is taken off for clocks that do not run alike: 1 % of the lease and 2 ms, as the Redlock algorithm has it
    /// (redis.io, "Distributed Locks with Redis").
    pub const fn drift(self) -> Nanos {
        clamp(self.drift_wide())
    }

    /// The end of belief for a lease whose command was handed over at `sent`.
    ///
    /// Counted from before the send, since the server starts counting when the command reaches it, which is later: a
    /// reply that is delayed, or a holder that was stopped while it waited, must not lengthen the lease.
    pub const fn until(self, sent: Nanos) -> Nanos {
        // In u128: 2^53 ms are 500 times what u64 holds in nanoseconds, and its allowance alone is 5 times as much. Sums
        // that stop at the end of u64 would take the one from the other and leave nothing of the longest leases.
        let end = sent.0 as u128 + self.ttl.0 as u128 * 1_000_000;
        clamp(end.saturating_sub(self.drift_wide()))
    }

    /// Whether a grant could be believed at all.
    pub const fn outlasts_drift(self) -> bool {
        self.ttl.0 as u128 * 1_000_000 > self.drift_wide()
    }

    const fn drift_wide(self) -> u128 {
        self.ttl.0 as u128 * 10_000 + 2_000_000
    }
}

const fn clamp(nanos: u128) -> Nanos {
    if nanos >= Nanos::NEVER.0 as u128 {
        Nanos::NEVER
    } else {
        Nanos(nanos as u64)
    }
}
