//! Time as a machine sees it: a time on the driver's monotonic clock, in nanoseconds.
//!
//! Times and durations share the type, because tests read best with plain numbers. `Nanos::NEVER` is the one time that
//! no clock reaches. Sums saturate at `NEVER` instead of wrapping, because a lease of 2^53 ms must not end in the past.

use std::fmt;

/// Nanoseconds: a time on the driver's monotonic clock, or a duration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Self = Self(0);
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The time `length` later; saturates at `NEVER`.
    #[must_use]
    pub const fn after(self, length: Self) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// The duration from `earlier` to here; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("never"),
            Self(ns) => write!(f, "{}.{:06}ms", ns / 1_000_000, ns % 1_000_000),
        }
    }
}

/// Whole milliseconds: the unit of a Redis lease (`PX`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl From<Millis> for Nanos {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}
