//! The pauses of each kind, and when each gives up.

use super::*;

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn retry(kind: RetryKind) -> Retry {
    Retry {
        kind,
        base: ms(1),
        factor: 2.0,
        cap: ms(50),
        max_attempts: None,
        max_wait: Nanos::NEVER,
    }
}

/// The first `n` pauses of one client.
fn pauses(retry: &Retry, n: usize, seed: u64) -> Vec<Nanos> {
    let mut chance = Chance::seeded(seed);
    let mut backoff = Backoff::begin(Nanos::ZERO);
    let next = || {
        backoff.attempt();
        match backoff.after_refusal(Nanos::ZERO, retry, &mut chance) {
            Next::TryAt(at) => at,
            Next::GiveUp(why) => panic!("gave up: {why:?}"),
        }
    };
    std::iter::repeat_with(next).take(n).collect()
}

#[test]
fn fixed_waits_the_same_after_a_random_part_of_it() {
    let pauses = pauses(&retry(RetryKind::Fixed), 4, 1);
    assert!(pauses[0] <= ms(1));
    assert_eq!(pauses[1..], [ms(1); 3]);
}

#[test]
fn exponential_grows_up_to_its_cap() {
    let pauses = pauses(&retry(RetryKind::Exponential), 8, 1);
    assert!(pauses[0] <= ms(1));
    assert_eq!(pauses[1..], [2, 4, 8, 16, 32, 50, 50].map(ms));
}

#[test]
fn the_jitters_stay_between_their_bounds_and_use_them() {
    let ceilings = [1, 2, 4, 8, 16, 32, 50, 50].map(ms);
    let mut widest = [Nanos::ZERO; 2];
    for seed in 0..200 {
        for (pause, ceiling) in pauses(&retry(RetryKind::FullJitter), 8, seed).into_iter().zip(ceilings) {
            assert!(pause <= ceiling);
            widest[0] = widest[0].max(ceiling.since(pause));
        }
        for (pause, ceiling) in pauses(&retry(RetryKind::EqualJitter), 8, seed)
            .into_iter()
            .zip(ceilings)
        {
            assert!((Nanos(ceiling.0 / 2)..=ceiling).contains(&pause));
            widest[1] = widest[1].max(ceiling.since(pause));
        }
        let mut last = ms(1);
        for pause in pauses(&retry(RetryKind::DecorrelatedJitter), 8, seed) {
            assert!((ms(1)..=Nanos(last.0 * 3).min(ms(50))).contains(&pause));
            last = pause;
        }
    }
    assert!(widest[0] > ms(49) && widest[1] > ms(24), "{widest:?}");
}

#[test]
fn attempts_used_up_are_busy_and_a_wait_used_up_is_a_timeout() {
    let mut chance = Chance::seeded(1);
    let mut backoff = Backoff::begin(ms(100));
    backoff.attempt();
    backoff.attempt();
    let mut after = |now, retry: Retry| backoff.after_refusal(now, &retry, &mut chance);
    let fixed = retry(RetryKind::Fixed);
    assert_eq!(after(ms(100), retry(RetryKind::None)), Next::GiveUp(Refusal::Busy));
    assert_eq!(
        after(
            ms(100),
            Retry {
                max_attempts: Some(2),
                ..fixed
            }
        ),
        Next::GiveUp(Refusal::Busy)
    );
    assert_eq!(
        after(
            ms(100),
            Retry {
                max_attempts: Some(3),
                ..fixed
            }
        ),
        Next::TryAt(ms(101))
    );
    assert_eq!(
        after(
            ms(109),
            Retry {
                max_wait: ms(10),
                ..fixed
            }
        ),
        Next::TryAt(ms(110))
    );
    assert_eq!(
        after(
            ms(110),
            Retry {
                max_wait: ms(10),
                ..fixed
            }
        ),
        Next::GiveUp(Refusal::TimedOut)
    );
}

#[test]
fn nothing_wraps_whatever_the_policy_and_the_attempt() {
    let wild = [0.0, 1.0, 1e9, f64::MAX, f64::INFINITY, f64::NAN, -1.0];
    let lengths = [Nanos::ZERO, Nanos(1), ms(1), Nanos::NEVER];
    for kind in RetryKind::ALL.into_iter().filter(|&kind| kind != RetryKind::None) {
        for (factor, base, cap) in wild.iter().flat_map(|&f| lengths.map(|base| (f, base, ms(50)))) {
            let retry = Retry {
                base,
                factor,
                cap,
                ..retry(kind)
            };
            let mut chance = Chance::seeded(1);
            let mut backoff = Backoff {
                began: Nanos::ZERO,
                reach: ms(50),
                attempts: u32::MAX - 1,
                conflicts: 0,
            };
            for _ in 0..3 {
                backoff.attempt();
                let Next::TryAt(at) = backoff.after_refusal(ms(7), &retry, &mut chance) else {
                    panic!("gave up")
                };
                let longest = if kind == RetryKind::Fixed { base } else { cap };
                assert!((ms(7)..=ms(7).after(longest)).contains(&at), "{retry:?}: {at:?}");
            }
            assert_eq!(backoff.attempts(), u32::MAX);
        }
    }
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    let exponential = retry(RetryKind::Exponential);
    let refused = |retry: Retry| retry.check().expect_err("refused").to_string();
    assert_eq!(exponential.check(), Ok(()));
    assert_eq!(Retry::NONE.check(), Ok(()));
    assert_eq!(
        Retry {
            base: ms(60),
            ..retry(RetryKind::Fixed)
        }
        .check(),
        Ok(())
    );
    assert!(
        refused(Retry {
            base: ms(60),
            ..exponential
        })
        .contains("longer than the `cap`")
    );
    assert!(
        refused(Retry {
            factor: f64::NAN,
            ..exponential
        })
        .contains("at least 1")
    );
    assert!(
        refused(Retry {
            factor: 0.5,
            ..exponential
        })
        .contains("0.5")
    );
    assert!(
        refused(Retry {
            max_attempts: Some(0),
            ..exponential
        })
        .contains("max_attempts")
    );
}

#[test]
fn a_client_that_is_woken_waits_until_the_longest_wait_or_until_the_attempts_are_used_up() {
    let patient = Retry {
        max_wait: ms(100),
        max_attempts: Some(2),
        ..retry(RetryKind::Fixed)
    };
    let mut backoff = Backoff::begin(ms(7));
    backoff.attempt();
    assert_eq!(backoff.wait_for_message(ms(106), &patient), Next::TryAt(ms(107)));
    assert_eq!(backoff.left(ms(100), &patient), ms(7));
    assert_eq!(
        backoff.wait_for_message(ms(107), &patient),
        Next::GiveUp(Refusal::TimedOut)
    );
    assert_eq!(backoff.left(ms(108), &patient), Nanos::ZERO);
    backoff.attempt();
    assert_eq!(backoff.wait_for_message(ms(8), &patient), Next::GiveUp(Refusal::Busy));
    let hasty = Backoff::begin(ms(7));
    assert_eq!(hasty.wait_for_message(ms(7), &Retry::NONE), Next::GiveUp(Refusal::Busy));
    assert_eq!(hasty.left(ms(7), &Retry::NONE), Nanos::ZERO);
}

#[test]
fn a_kind_is_found_by_its_name() {
    for kind in RetryKind::ALL {
        assert_eq!(RetryKind::named(kind.name()), Ok(kind));
    }
    assert_eq!(
        RetryKind::named("jitter").expect_err("unknown").to_string(),
        "there is no retry kind `jitter`; known are none, fixed, exponential, full-jitter, equal-jitter, \
         decorrelated-jitter"
    );
}
