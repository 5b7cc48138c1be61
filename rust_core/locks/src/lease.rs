//! How long a lock lasts on the server, and how much of that its holder may believe.
//!
//! Promises: `until` is never later than the server's expiry as long as the clocks of both sides differ by less than 1
//! % in speed, and it never wraps. Does not promise anything against clocks that jump.

use crate::{Millis, Nanos, SpecError};

/// A lease that a server accepts: from 1 ms to 2^53 ms. (Redis refuses a `PX` that overflows its own clock in
/// milliseconds, above 2^62 ms; such a lease cannot be made here.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    ttl: Millis,
}

impl Lease {
    /// 2^53 ms, about 285,000 years. Programs that store numbers as doubles, such as Lua, lose digits above it.
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

    /// This lease for a server that counts whole seconds: rounded up, because a lock must not end earlier than asked
    /// for.
    #[must_use]
    pub const fn in_whole_seconds(self) -> Self {
        Self {
            ttl: Millis(self.ttl.0.div_ceil(1_000) * 1_000),
        }
    }

    /// The clock-skew margin, which is subtracted for clocks of different speed: 1 % of the lease and 2 ms, as in the
    /// Redlock algorithm (redis.io, "Distributed Locks with Redis").
    pub const fn skew_margin(self) -> Nanos {
        self.skew_margin_of(SkewMargin::STANDARD)
    }

    pub const fn skew_margin_of(self, skew: SkewMargin) -> Nanos {
        clamp(self.skew_margin_wide(skew))
    }

    /// The end of belief for a lease whose command was passed to the connection at `sent`.
    ///
    /// Counted from before the send, because the server starts counting later, when the command reaches it. A delayed
    /// reply, or a holder that was paused while it waited, must not lengthen the lease.
    pub const fn until(self, sent: Nanos) -> Nanos {
        self.until_less(SkewMargin::STANDARD, sent)
    }

    /// As `until`, with another clock-skew margin.
    pub const fn until_less(self, skew: SkewMargin, sent: Nanos) -> Nanos {
        // In u128: 2^53 ms in nanoseconds is 500 times the largest u64, and the margin alone is 5 times as large as
        // that. Sums that saturate in u64 would leave nothing of the longest leases.
        let end = sent.0 as u128 + self.ttl.0 as u128 * 1_000_000;
        clamp(end.saturating_sub(self.skew_margin_wide(skew)))
    }

    /// Whether any time of the lease is left after the clock-skew margin.
    pub const fn outlasts_skew_margin(self) -> bool {
        self.ttl.0 as u128 * 1_000_000 > self.skew_margin_wide(SkewMargin::STANDARD)
    }

    const fn skew_margin_wide(self, skew: SkewMargin) -> u128 {
        self.ttl.0 as u128 * skew.per_million as u128 + 2_000_000
    }
}

/// The share of a lease that is subtracted for clocks of different speed. In whole millionths, so that it is the same
/// on every machine and can be compared, which a float cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkewMargin {
    per_million: u32,
}

impl SkewMargin {
    /// 1 %.
    pub const STANDARD: Self = Self { per_million: 10_000 };

    /// A share from 0 to 0.1. A lease of 3 ms, the shortest that exceeds the fixed 2 ms, exceeds the largest margin
    /// too.
    pub(crate) fn of(share: f64) -> Self {
        Self {
            per_million: (share * 1e6).round() as u32,
        }
    }
}

const fn clamp(nanos: u128) -> Nanos {
    if nanos >= Nanos::NEVER.0 as u128 {
        Nanos::NEVER
    } else {
        Nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lease(millis: u64) -> Lease {
        Lease { ttl: Millis(millis) }
    }

    #[test]
    fn a_lease_from_1_ms_to_2_to_the_53_is_taken_as_it_is() {
        for millis in [1, 2, 10_000, i64::from(i32::MAX), (1 << 31) + 1, 1 << 53] {
            assert_eq!(Lease::new(millis).map(Lease::ttl), Ok(Millis(millis as u64)));
        }
    }

    #[test]
    fn a_lease_outside_is_refused_with_its_bounds() {
        for millis in [0, -1, i64::MIN, (1 << 53) + 1, i64::MAX] {
            let refused = Lease::new(millis).expect_err("out of range");
            assert_eq!(refused, SpecError::LeaseOutOfRange { millis });
            let message = format!("a lease of {millis} ms: it must be from 1 ms to 2^53 ms (9007199254740992 ms)");
            assert_eq!(refused.to_string(), message);
        }
    }

    #[test]
    fn belief_ends_one_percent_and_2_ms_before_the_lease() {
        assert_eq!(lease(10_000).skew_margin(), Nanos::from_millis(102));
        assert_eq!(
            lease(10_000).until(Nanos::from_millis(7)),
            Nanos::from_millis(7 + 9_898)
        );
        assert_eq!(lease(150).until(Nanos::ZERO), Nanos::from_micros(146_500));
    }

    #[test]
    fn another_share_may_be_taken_off() {
        let until = |share| lease(10_000).until_less(SkewMargin::of(share), Nanos::ZERO);
        assert_eq!(until(0.0), Nanos::from_millis(9_998));
        assert_eq!(until(0.01), lease(10_000).until(Nanos::ZERO));
        assert_eq!(until(0.1), Nanos::from_millis(8_998));
        assert_eq!(
            lease(3).until_less(SkewMargin::of(0.1), Nanos::ZERO),
            Nanos::from_micros(700)
        );
        assert_eq!(
            lease(1 << 53).until_less(SkewMargin::of(0.1), Nanos::ZERO),
            Nanos::NEVER
        );
    }

    #[test]
    fn a_lease_within_its_drift_ends_before_it_was_sent() {
        assert!(lease(1).until(Nanos::from_secs(1)) < Nanos::from_secs(1));
        assert_eq!(lease(1).until(Nanos::ZERO), Nanos::ZERO);
        assert!(!lease(2).outlasts_skew_margin());
        assert!(lease(3).outlasts_skew_margin());
    }

    #[test]
    fn the_longest_leases_do_not_end_before_they_begin() {
        assert_eq!(lease(1 << 53).until(Nanos::ZERO), Nanos::NEVER);
        assert_eq!(lease(1 << 53).until(Nanos::NEVER), Nanos::NEVER);
        // The first lease whose nanoseconds do not fit into u64, although what the margin leaves does.
        let millis = u64::MAX / 1_000_000 + 1;
        assert_eq!(lease(millis).until(Nanos::ZERO), Nanos(millis * 990_000 - 2_000_000));
    }

    #[test]
    fn whole_seconds_are_rounded_up() {
        let cases = [
            (1, 1_000),
            (999, 1_000),
            (1_000, 1_000),
            (1_001, 2_000),
            (1 << 53, 9_007_199_254_741_000),
        ];
        for (millis, rounded) in cases {
            assert_eq!(lease(millis).in_whole_seconds().ttl(), Millis(rounded));
        }
    }
}
