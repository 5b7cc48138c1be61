//! Whether a time line has become steady: the rule MSER of White ("An effective truncation heuristic for bias reduction
//! in simulation output", Simulation 69:6, 1997), over the steps of 100 ms, which take the place of the batches of five
//! observations in MSER-5.
//!
//! MSER leaves out those first values without which the standard error of the mean of the others is smallest. A time
//! line that is still changing has its best truncation near its end. As White advises, one with its best truncation in
//! the second half is too short, and so not steady yet.

/// Fewer steps are never steady: the standard errors of so few values are mostly chance.
pub(crate) const LEAST_STEPS: usize = 20;
/// The fewest values of which a standard error is taken.
const LEAST_LEFT: usize = 5;

/// Whether the grants and the p99 of the steps so far are steady. A step without a grant has a p99 of zero.
pub(crate) fn is_steady(grants: &[f64], p99_ns: &[f64]) -> bool {
    if grants.len() < LEAST_STEPS || grants.iter().all(|&count| count == 0.0) {
        return false;
    }
    // Waits differ by factors: the logarithm lets a long one count no more than a short one.
    let waits: Vec<f64> = p99_ns.iter().filter(|&&p99| p99 > 0.0).map(|p99| p99.ln()).collect();
    has_settled(grants) && (waits.len() < LEAST_STEPS || has_settled(&waits))
}

/// Whether the best truncation of `values` lies in their first half.
fn has_settled(values: &[f64]) -> bool {
    truncation(values) <= values.len() / 2
}

/// How many first values MSER leaves out; of equally good truncations the shortest.
fn truncation(values: &[f64]) -> usize {
    let (mut best, mut least) = (0, f64::INFINITY);
    for first in 0..=values.len().saturating_sub(LEAST_LEFT) {
        let left = &values[first..];
        let count = left.len() as f64;
        let mean = left.iter().sum::<f64>() / count;
        let squares: f64 = left.iter().map(|value| (value - mean).powi(2)).sum();
        let error = squares / (count * count);
        // A difference in the last bits is none.
        if error < least - f64::EPSILON * mean * mean {
            (best, least) = (first, error);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of one standard deviation, the same in each run of the tests.
    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count)
            .map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0)
            .collect()
    }

    fn steps_until_steady(values: &[f64]) -> Option<usize> {
        (LEAST_STEPS..=values.len()).find(|&count| is_steady(&values[..count], &values[..count]))
    }

    #[test]
    fn a_level_is_steady_at_once_with_noise_or_without() {
        assert_eq!(steps_until_steady(&[1_000.0; 20]), Some(20));
        let mut soon = 0;
        for seed in 0..200 {
            let level: Vec<f64> = noise(seed, 100).iter().map(|one| 1_000.0 + 30.0 * one).collect();
            soon += u32::from(steps_until_steady(&level).is_some_and(|steps| steps <= 25));
        }
        assert!(soon >= 180, "{soon} of 200 levels were seen to be steady within 2.5 s");
    }

    #[test]
    fn a_climb_is_steady_about_as_long_after_it_as_it_took() {
        let mut found: Vec<usize> = (0..50)
            .map(|seed| {
                let climbs: Vec<f64> = noise(seed, 100)
                    .iter()
                    .enumerate()
                    .map(|(step, one)| 1_000.0 * (step.min(20) as f64 / 20.0) + 1_000.0 + 10.0 * one)
                    .collect();
                steps_until_steady(&climbs).expect("it becomes steady")
            })
            .collect();
        found.sort_unstable();
        assert!(found[0] >= 30, "a climb of 20 steps was steady after {}", found[0]);
        assert!(
            (35..=50).contains(&found[25]),
            "half of the climbs were steady after {}",
            found[25]
        );
    }

    #[test]
    fn what_grows_all_the_time_never_becomes_steady() {
        for seed in 0..50 {
            let grows: Vec<f64> = noise(seed, 100)
                .iter()
                .enumerate()
                .map(|(step, one)| 100.0 + 10.0 * step as f64 + one)
                .collect();
            assert_eq!(steps_until_steady(&grows), None);
        }
    }

    #[test]
    fn a_lock_without_grants_and_a_short_time_line_are_not_steady() {
        assert!(!is_steady(&[0.0; 50], &[0.0; 50]));
        assert!(!is_steady(&[5.0; 19], &[5.0; 19]));
        assert!(is_steady(&[5.0; 20], &[0.0; 20]), "too few waits decide nothing");
    }
}
