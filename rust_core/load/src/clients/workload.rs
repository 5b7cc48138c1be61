//! What the clients do with their locks: which key they take, how long they hold it, how long they think.
//!
//! Each client draws from its own random stream, apart from the stream of its lock, so that the same seed gives the
//! same keys and holds whatever the lock does.

use locks::{Key, Nanos};
use rand_core::SeedableRng;
use rand_distr::{Distribution as Draw, Exp, LogNormal, StandardNormal, StandardUniform, Uniform, Zipf};
use rand_xoshiro::Xoroshiro128PlusPlus;

use crate::spec::{Distribution, KeyChoice};

/// One client's random stream for its choices.
pub(crate) type Stream = Xoroshiro128PlusPlus;

/// One stream for each of `count` clients from `first` on, far apart in one sequence.
pub(crate) fn streams(seed: u64, first: u32, count: u32) -> Vec<Stream> {
    // Apart from the streams of the locks, which start at the seed itself.
    let mut stream = Stream::seed_from_u64(seed ^ 0x5bf0_3635_dcd1_f867);
    for _ in 0..first {
        stream.jump();
    }
    let mut streams = Vec::with_capacity(count as usize);
    for _ in 0..count {
        streams.push(stream.clone());
        stream.jump();
    }
    streams
}

/// A duration, drawn anew each time it is needed.
#[derive(Clone, Debug)]
pub(crate) enum Length {
    Fixed(Nanos),
    Exp(Exp<f64>),
    LogNormal(LogNormal<f64>),
    Uniform(Uniform<u64>),
    Quantiles(Quantiles),
}

impl Length {
    /// `None` when the parameters describe no distribution (a negative sigma, an empty range).
    pub(crate) fn new(distribution: &Distribution) -> Option<Self> {
        Some(match *distribution {
            Distribution::Fixed(value) => Self::Fixed(value),
            Distribution::Exp { mean: Nanos(0) } => Self::Fixed(Nanos::ZERO),
            Distribution::Exp { mean } => Self::Exp(Exp::new(1.0 / mean.0 as f64).ok()?),
            Distribution::LogNormal { median, sigma } => {
                Self::LogNormal(LogNormal::new((median.0.max(1) as f64).ln(), sigma).ok()?)
            }
            Distribution::Uniform { low, high } => Self::Uniform(Uniform::new_inclusive(low.0, high.0).ok()?),
            Distribution::Quantiles { ref points } => Self::Quantiles(Quantiles::new(points)?),
        })
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self, Self::Fixed(Nanos::ZERO))
    }

    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> Nanos {
        match self {
            Self::Fixed(value) => *value,
            Self::Exp(exp) => Nanos(exp.sample(stream) as u64),
            Self::LogNormal(lognormal) => Nanos(lognormal.sample(stream) as u64),
            Self::Uniform(uniform) => Nanos(uniform.sample(stream)),
            Self::Quantiles(quantiles) => quantiles.draw(stream),
        }
    }
}

/// Durations that match given quantiles: the logarithm of the duration is piecewise linear in a standard normal
/// deviate, and the first and last pieces extend without end. With two quantiles this is a log-normal distribution.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    pieces: Box<[Piece]>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The deviate at which the next piece begins.
    end: f64,
    at_zero: f64,
    slope: f64,
}

impl Quantiles {
    /// `None` when the points do not ascend, or are fewer than two.
    fn new(points: &[(f64, Nanos)]) -> Option<Self> {
        let piece = |pair: &[(f64, Nanos)]| {
            let [(from, low), (to, high)] = *pair else { return None };
            let ascends = from.is_finite() && to.is_finite() && from < to && Nanos::ZERO < low && low < high;
            let slope = (high.0 as f64 / low.0 as f64).ln() / (to - from);
            ascends.then(|| Piece {
                end: to,
                at_zero: (low.0 as f64).ln() - from * slope,
                slope,
            })
        };
        let pieces: Box<[Piece]> = points.windows(2).map(piece).collect::<Option<_>>()?;
        (!pieces.is_empty()).then_some(Self { pieces })
    }

    fn draw(&self, stream: &mut Stream) -> Nanos {
        let deviate: f64 = StandardNormal.sample(stream);
        let last = self.pieces.len() - 1;
        let piece = self.pieces.iter().position(|piece| deviate < piece.end).unwrap_or(last);
        let Piece { at_zero, slope, .. } = self.pieces[piece];
        Nanos(deviate.mul_add(slope, at_zero).exp() as u64)
    }
}

/// Which key a client takes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyDraw {
    Uniform { count: u32 },
    Zipf(Zipf<f64>),
    Single,
}

impl KeyDraw {
    /// `None` when `s` is not an exponent of a Zipf distribution.
    pub(crate) fn new(choice: KeyChoice, count: u32) -> Option<Self> {
        Some(match choice {
            KeyChoice::Single => Self::Single,
            KeyChoice::Uniform if count == 1 => Self::Single,
            KeyChoice::Uniform => Self::Uniform { count },
            KeyChoice::Zipf { s } => Self::Zipf(Zipf::new(f64::from(count), s).ok()?),
        })
    }

    /// The key that `draw` would return, if that is cheap to compute and the keys are spread over memory.
    #[inline]
    pub(crate) fn peek(&self, stream: &Stream) -> Option<Key> {
        match self {
            Self::Uniform { .. } => Some(self.draw(&mut stream.clone())),
            Self::Single | Self::Zipf(_) => None,
        }
    }

    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> Key {
        match self {
            Self::Single => Key(0),
            Self::Uniform { count } => {
                // A multiplication instead of a division (Lemire 2019); its bias of 2^-32 is accepted.
                let drawn: u32 = StandardUniform.sample(stream);
                Key(((u64::from(drawn) * u64::from(*count)) >> 32) as u32)
            }
            // Zipf draws ranks from 1.
            Self::Zipf(zipf) => Key(zipf.sample(stream) as u32 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Stream {
        streams(7, 0, 1).remove(0)
    }

    fn mean(length: &Length, draws: u32) -> f64 {
        let mut stream = stream();
        (0..draws).map(|_| length.draw(&mut stream).0 as f64).sum::<f64>() / f64::from(draws)
    }

    #[test]
    fn an_exponential_length_has_its_mean() {
        let length = Length::new(&Distribution::Exp {
            mean: Nanos::from_millis(2),
        })
        .expect("a mean is enough");
        assert!((mean(&length, 100_000) / 2e6 - 1.0).abs() < 0.02);
    }

    #[test]
    fn half_of_a_lognormal_lies_below_its_median() {
        let median = Nanos::from_millis(2);
        let length = Length::new(&Distribution::LogNormal { median, sigma: 0.8 }).expect("sigma is positive");
        let mut stream = stream();
        let below = (0..100_000).filter(|_| length.draw(&mut stream) < median).count();
        assert!((49_000..51_000).contains(&below), "{below} of 100,000 below the median");
    }

    #[test]
    fn a_uniform_length_reaches_both_ends_and_an_empty_range_is_refused() {
        let (low, high) = (Nanos(1), Nanos(3));
        let length = Length::new(&Distribution::Uniform { low, high }).expect("the range is not empty");
        let mut stream = stream();
        let seen: std::collections::BTreeSet<u64> = (0..1_000).map(|_| length.draw(&mut stream).0).collect();
        assert_eq!(seen, [1, 2, 3].into());
        assert!(Length::new(&Distribution::Uniform { low: high, high: low }).is_none());
    }

    /// Standard normal deviates.
    const P10: f64 = -1.281_551_565_544_6;
    const P90: f64 = 1.281_551_565_544_6;
    const P99: f64 = 2.326_347_874_040_8;

    #[test]
    fn a_length_by_quantiles_goes_through_each_of_them() {
        let all: [(f64, f64, u64); 4] = [(0.1, P10, 20), (0.5, 0.0, 50), (0.9, P90, 80), (0.99, P99, 2_000)];
        for given in [&all[1..2], &all[2..3], &all[..3], &all[1..], &all[..]] {
            let given: Vec<_> = given.iter().chain(&all[3..]).collect();
            let mut points: Vec<_> = given.iter().map(|&&(_, z, ms)| (z, Nanos::from_millis(ms))).collect();
            points.dedup();
            let length = Length::new(&Distribution::Quantiles { points }).expect("they ascend");
            let mut stream = stream();
            let drawn: Vec<Nanos> = (0..200_000).map(|_| length.draw(&mut stream)).collect();
            for (quantile, _, ms) in given {
                let below = drawn.iter().filter(|&&length| length < Nanos::from_millis(*ms)).count();
                let share = below as f64 / drawn.len() as f64;
                // More than three times the standard deviation of a share of this many draws.
                assert!(
                    (share - quantile).abs() < 0.004,
                    "{share} below {ms} ms, not {quantile}"
                );
            }
        }
    }

    #[test]
    fn two_quantiles_are_a_lognormal_in_their_tail_too() {
        let points = vec![(0.0, Nanos::from_millis(2)), (1.0, Nanos((2e6 * 0.8_f64.exp()) as u64))];
        let length = Length::new(&Distribution::Quantiles { points }).expect("they ascend");
        let mut stream = stream();
        let beyond = Nanos((2e6 * (0.8 * P99).exp()) as u64);
        let above = (0..200_000).filter(|_| length.draw(&mut stream) > beyond).count();
        assert!(
            (1_800..2_200).contains(&above),
            "{above} of 200,000 above the p99 of lognormal(2ms, 0.8)"
        );
    }

    #[test]
    fn quantiles_that_do_not_ascend_are_none() {
        let refused = |points: &[(f64, Nanos)]| {
            Length::new(&Distribution::Quantiles {
                points: points.to_vec(),
            })
            .is_none()
        };
        assert!(refused(&[]));
        assert!(refused(&[(0.0, Nanos(5))]));
        assert!(refused(&[(0.0, Nanos(5)), (1.0, Nanos(5))]));
        assert!(refused(&[(1.0, Nanos(5)), (1.0, Nanos(6))]));
        assert!(refused(&[(0.0, Nanos(0)), (1.0, Nanos(6))]));
        assert!(refused(&[(0.0, Nanos(5)), (f64::NAN, Nanos(6))]));
        assert!(!refused(&[(0.0, Nanos(5)), (1.0, Nanos(6))]));
    }

    #[test]
    fn keys_stay_in_range_and_zipf_prefers_the_first() {
        let mut stream = stream();
        for choice in [KeyChoice::Uniform, KeyChoice::Zipf { s: 1.1 }, KeyChoice::Single] {
            let keys = KeyDraw::new(choice, 10).expect("the choice is sound");
            let mut counts = [0_u32; 10];
            for _ in 0..10_000 {
                counts[keys.draw(&mut stream).0 as usize] += 1;
            }
            match choice {
                KeyChoice::Uniform => assert!(counts.iter().all(|&count| (800..1_200).contains(&count)), "{counts:?}"),
                KeyChoice::Zipf { .. } => assert!(counts.is_sorted_by(|a, b| *a + 200 > *b), "{counts:?}"),
                KeyChoice::Single => assert_eq!(counts[0], 10_000),
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_streams_wherever_a_thread_starts() {
        let mut whole = streams(42, 0, 5);
        let mut tail = streams(42, 3, 2);
        let draw = |stream: &mut Stream| -> u64 { StandardUniform.sample(stream) };
        assert_eq!(draw(&mut whole[3]), draw(&mut tail[0]));
        assert_ne!(draw(&mut whole[0]), draw(&mut whole[1]));
    }
}
