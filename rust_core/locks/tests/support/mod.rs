//! What the property tests share: their configuration, the replies of a server, and the events of a client.
#![allow(dead_code, reason = "not every test asks for all of it")]

use locks::{ErrorKind, Nanos, Retry, RetryKind};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

/// A fixed seed, so that a test passes or fails for everyone; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` search further.
pub(crate) fn config() -> ProptestConfig {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match config.rng_seed {
        RngSeed::Random => ProptestConfig {
            rng_seed: RngSeed::Fixed(20_150_304),
            ..config
        },
        RngSeed::Fixed(_) => config,
    }
}

pub(crate) const ERRORS: [ErrorKind; 9] = [
    ErrorKind::NoScript,
    ErrorKind::ReadOnly,
    ErrorKind::Loading,
    ErrorKind::Moved,
    ErrorKind::OutOfMemory,
    ErrorKind::WrongType,
    ErrorKind::NoAuth,
    ErrorKind::Other,
    ErrorKind::Unexpected,
];

/// The reply timeout.
pub(crate) const REPLY_TIMEOUT: Nanos = Nanos::from_millis(20);

/// Every kind of retry, with and without a limit of attempts, waiting no longer than one of `longest`.
pub(crate) fn retries(longest: Vec<Nanos>) -> impl Strategy<Value = Retry> {
    let most = prop_oneof![Just(None), (1..4_u32).prop_map(Some)];
    (select(RetryKind::ALL.to_vec()), most, select(longest)).prop_map(|(kind, max_attempts, max_wait)| Retry {
        kind,
        base: Nanos::from_millis(1),
        factor: 2.0,
        cap: Nanos::from_millis(50),
        max_attempts,
        max_wait,
    })
}
