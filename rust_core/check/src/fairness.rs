//! How evenly a lock serves its clients.

/// Jain's fairness index, (Σx)² / (n Σx²): 1 when all have the same, 1/n when one has everything. `None` without
/// clients or without grants.
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
