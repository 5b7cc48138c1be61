//! A small seeded random generator that is passed in: for tokens and pauses of a machine, for keys and holds of a
//! driver.
//!
//! Promises: the same seed gives the same draws on every machine; the `streams` of one seed do not overlap within 2^64
//! draws.
//! Does not promise secrecy: anyone who knows the seed knows the tokens, so a lock in production is seeded from the
//! operating system.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128PlusPlus;

use crate::Token;

/// 16 bytes. Not `Copy`: a copy left behind would draw the same numbers again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance(Xoroshiro128PlusPlus);

impl Chance {
    pub fn seeded(seed: u64) -> Self {
        Self(Xoroshiro128PlusPlus::seed_from_u64(seed))
    }

    /// From 128 bits of the operating system's entropy: for tokens that nobody can guess.
    pub fn from_entropy(entropy: [u8; 16]) -> Self {
        Self(Xoroshiro128PlusPlus::from_seed(entropy))
    }

    /// One stream for each client, 2^64 draws apart. Never ends.
    pub fn streams(seed: u64) -> impl Iterator<Item = Self> {
        let mut next = Self::seeded(seed);
        std::iter::repeat_with(move || {
            let stream = next.clone();
            next.0.jump();
            stream
        })
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`, without bias. Panics when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below 0");
        // Lemire, "Fast Random Integer Generation in an Interval" (2019): the high word is the draw; the few low words
        // that would favour some results are drawn again.
        let mut wide = u128::from(self.bits()) * u128::from(n);
        if (wide as u64) < n {
            let unfair = n.wrapping_neg() % n;
            while (wide as u64) < unfair {
                wide = u128::from(self.bits()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// Uniform in `[0, 1)`, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.bits() >> 11) as f64 * STEP
    }

    pub fn token(&mut self) -> Token {
        Token {
            high: self.bits(),
            low: self.bits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_16_bytes() {
        assert_eq!(size_of::<Chance>(), 16);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_seed_does_not() {
        let draws = |seed| {
            let mut chance = Chance::seeded(seed);
            [chance.bits(), chance.bits()]
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }

    #[test]
    fn all_bits_of_the_entropy_count() {
        let first = |entropy| Chance::from_entropy(entropy).token();
        let base = first([7; 16]);
        for bit in 0..128 {
            let mut entropy = [7; 16];
            entropy[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(first(entropy), base, "bit {bit}");
        }
    }

    #[test]
    fn streams_of_one_seed_are_apart_and_repeat() {
        let tokens = || {
            Chance::streams(1)
                .take(1_000)
                .map(|mut chance| chance.token())
                .collect::<Vec<_>>()
        };
        let mut apart = tokens();
        assert_eq!(apart, tokens());
        apart.sort();
        apart.dedup();
        assert_eq!(apart.len(), 1_000);
    }

    #[test]
    fn a_choice_stays_below_its_end_and_reaches_all() {
        let mut chance = Chance::seeded(1);
        for n in [1, 2, 3, 7] {
            let mut counts = vec![0_u32; n as usize];
            for _ in 0..10_000 {
                counts[chance.below(n) as usize] += 1;
            }
            // Five standard deviations; the seed is fixed, so the test always gives the same result.
            let (mean, slack) = (10_000.0 / n as f64, 5.0 * (10_000.0 / n as f64).sqrt());
            assert!(
                counts.iter().all(|&count| (f64::from(count) - mean).abs() <= slack),
                "{counts:?}"
            );
        }
        assert!((0..1_000).any(|_| chance.below(u64::MAX) > u64::MAX / 2));
    }

    #[test]
    #[should_panic(expected = "no number is below 0")]
    fn a_choice_among_nothing_is_our_fault() {
        Chance::seeded(1).below(0);
    }

    #[test]
    fn unit_lies_in_its_half_open_interval_with_the_mean_in_its_middle() {
        let mut chance = Chance::seeded(1);
        let draws: Vec<f64> = (0..10_000).map(|_| chance.unit()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        assert!((draws.iter().sum::<f64>() / 10_000.0 - 0.5).abs() < 0.01);
    }
}
