//! Errors in the description of a lock. Each message names the given value and the allowed ones.

use std::fmt;

use crate::{Millis, Nanos};

#[derive(Clone, Debug, PartialEq)]
pub enum SpecError {
    UnknownStrategy {
        given: String,
        known: Vec<&'static str>,
    },
    UnknownArgument {
        strategy: &'static str,
        argument: String,
        known: Vec<&'static str>,
    },
    /// The argument has the wrong type, or its value is out of range.
    BadArgument {
        strategy: &'static str,
        argument: &'static str,
        wanted: String,
    },
    UnknownRetry {
        given: String,
        known: Vec<&'static str>,
    },
    /// A lease of zero, negative, or longer than `Lease::LONGEST`.
    LeaseOutOfRange {
        millis: i64,
    },
    /// The clock-skew margin is as long as the lease, so no grant could ever be believed.
    LeaseWithinSkewMargin {
        strategy: &'static str,
        lease: Millis,
        margin: Nanos,
    },
    /// The number of servers differs from the strategy's.
    OtherServers {
        strategy: &'static str,
        nodes: u16,
        servers: u16,
    },
    /// With a reply timeout of 0 each call would be given up as it is sent.
    ZeroReplyTimeout,
    NoAttempts,
    FactorOutOfRange {
        factor: f64,
    },
    BaseAboveCap {
        base: Nanos,
        cap: Nanos,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStrategy { given, known } => {
                write!(f, "there is no strategy `{given}`; known are {}", known.join(", "))
            }
            Self::UnknownArgument {
                strategy,
                argument,
                known,
            } if known.is_empty() => {
                write!(f, "`{strategy}` takes no arguments, and was given `{argument}`")
            }
            Self::UnknownArgument {
                strategy,
                argument,
                known,
            } => {
                write!(
                    f,
                    "`{strategy}` has no argument `{argument}`; known are {}",
                    known.join(", ")
                )
            }
            Self::BadArgument {
                strategy,
                argument,
                wanted,
            } => write!(f, "the `{argument}` of `{strategy}` must be {wanted}"),
            Self::UnknownRetry { given, known } => {
                write!(f, "there is no retry kind `{given}`; known are {}", known.join(", "))
            }
            Self::LeaseOutOfRange { millis } => {
                write!(
                    f,
                    "a lease of {millis} ms: it must be from 1 ms to 2^53 ms (9007199254740992 ms)"
                )
            }
            Self::LeaseWithinSkewMargin {
                strategy,
                lease,
                margin,
            } => write!(
                f,
                "`{strategy}` could never be held with a lease of {} ms: the clock-skew margin (a share of the lease, plus 2 ms) is \
                 {margin:?}; take at least 3 ms",
                lease.0
            ),
            Self::OtherServers {
                strategy,
                nodes,
                servers,
            } => write!(f, "`{strategy}` needs {nodes} servers, and was given {servers}"),
            Self::ZeroReplyTimeout => f.write_str("a reply timeout of 0 would give up each call as it is sent"),
            Self::NoAttempts => f.write_str("`max_attempts` must be at least 1; leave it out for no limit"),
            Self::FactorOutOfRange { factor } => {
                write!(
                    f,
                    "a retry `factor` of {factor}: it must be a finite number of at least 1"
                )
            }
            Self::BaseAboveCap { base, cap } => {
                write!(f, "the retry `base` of {base:?} is longer than the `cap` of {cap:?}")
            }
        }
    }
}

impl std::error::Error for SpecError {}
