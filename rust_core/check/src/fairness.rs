//! How evenly a lock serves its clients: Jain's index over their grants, and the spread of their waits.

use locks::Nanos;

/// Jain's fairness index, (Σx)² / (n Σx²): 1 when all have the same, 1/n when one has everything. `None` when there is
/// nothing to share out: no clients, or no grants.
///
/// R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
/// Computer Systems, DEC Research Report TR-301, 1984.
pub fn jain(counts: &[u64]) -> Option<f64> {
    let (mut sum, mut sum_of_squares) = (0.0_f64, 0.0_f64);
    for &count in counts {
        let count = count as f64;
        sum += count;
        sum_of_squares += count * count;
    }
    (sum > 0.0).then(|| sum * sum / (counts.len() as f64 * sum_of_squares))
}

/// Mean and standard deviation of a stream of lengths of time, in nanoseconds, in constant memory.
///
/// B. P. Welford, Note on a Method for Calculating Corrected Sums of Squares and Products, Technometrics 4 (1962);
/// joined as T. F. Chan, G. H. Golub, R. J. `LeVeque`, Updating Formulae and a Pairwise Algorithm for Computing Sample
/// Variances, 1979. Sums of squares would lose the small spread of long waits to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    count: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl Spread {
    pub fn add(&mut self, length: Nanos) {
        let value = length.0 as f64;
        self.count += 1;
        let from_old_mean = value - self.mean;
        self.mean += from_old_mean / self.count as f64;
        self.squares += from_old_mean * (value - self.mean);
    }

    /// Joins what another thread gathered.
    pub fn join(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.mean += apart * share;
        self.squares += other.squares + apart * apart * self.count as f64 * share;
        self.count = count;
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    /// `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Of all that was added, not an estimate from a sample (divided by n, not n - 1). `None` of nothing.
    pub fn std_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / self.count as f64).sqrt())
    }
}
