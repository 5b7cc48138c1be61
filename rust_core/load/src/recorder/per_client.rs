//! What is counted of each client in the window.
//!
//! Promises: bounded memory and no allocation. The quantiles of a client's waits come from 192 counters of its own, and
//! differ from its waits by at most 6.25 %, or 0.6 µs. Each thread has these counters for its first `MOST_WITH_WAITS`
//! clients; all other figures are kept for every client.

use locks::Nanos;

use super::buckets::{bucket, quantile};
use super::stats::Ended;

/// A thread keeps the waits of so many clients: 0.8 MB.
const MOST_WITH_WAITS: usize = 1_024;

/// Waits are counted in units of 1.024 µs.
const UNIT: u32 = 10;
/// Eight buckets per octave: see `buckets`.
const BITS: u32 = 4;
/// In units, 69 s. A longer wait counts as this in the quantiles; the longest wait is exact.
const LONGEST: u64 = (1 << 26) - 1;
const BUCKETS: usize = bucket::<BITS>(LONGEST) + 1;

/// The figures of one client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFigures {
    pub(crate) grants: u64,
    pub(crate) attempts: u64,
    pub(crate) wait_sum_ns: u64,
    pub(crate) wait_max_ns: u64,
}

/// The acquires of one client that ended without a grant. Apart from `ClientFigures`, which so fill half a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Ungranted {
    refused: u32,
    errors: u32,
}

#[derive(Debug)]
pub(crate) struct PerClient {
    pub(crate) figures: Vec<ClientFigures>,
    ungranted: Vec<Ungranted>,
    /// `BUCKETS` for each client that has them.
    waits: Vec<u32>,
}

/// One element per client.
#[derive(Debug, Default)]
pub struct ClientColumns {
    pub grants: Vec<u64>,
    pub attempts: Vec<u64>,
    pub refused: Vec<u64>,
    pub errors: Vec<u64>,
    /// How many waits the quantiles are of; zero for a client whose waits were not kept.
    pub waits: Vec<u64>,
    pub wait_sum_ns: Vec<u64>,
    pub wait_max_ns: Vec<u64>,
    pub wait_p50_ns: Vec<u64>,
    pub wait_p90_ns: Vec<u64>,
    pub wait_p99_ns: Vec<u64>,
}

impl PerClient {
    pub(super) fn of(clients: u32) -> Self {
        let clients = clients as usize;
        Self {
            figures: vec![ClientFigures::default(); clients],
            ungranted: vec![Ungranted::default(); clients],
            waits: vec![0; clients.min(MOST_WITH_WAITS) * BUCKETS],
        }
    }

    /// A grant; its wait goes into the quantiles if the acquire was due in the window.
    #[inline]
    pub(super) fn grant(&mut self, index: u32, wait: Nanos, was_due_within: bool) {
        let figures = &mut self.figures[index as usize];
        figures.grants += 1;
        figures.wait_sum_ns += wait.0;
        figures.wait_max_ns = figures.wait_max_ns.max(wait.0);
        if was_due_within {
            let place = index as usize * BUCKETS + bucket::<BITS>((wait.0 >> UNIT).min(LONGEST));
            if let Some(count) = self.waits.get_mut(place) {
                *count = count.saturating_add(1);
            }
        }
    }

    pub(super) fn ungranted(&mut self, index: u32, ended: Ended) {
        let counts = &mut self.ungranted[index as usize];
        match ended {
            Ended::Refused | Ended::Timeout => counts.refused = counts.refused.saturating_add(1),
            Ended::Error | Ended::Unknown => counts.errors = counts.errors.saturating_add(1),
            Ended::Granted | Ended::Lost | Ended::Waiting => {}
        }
    }

    /// It has waited for so long, and was granted or not.
    pub(super) fn waited(&mut self, index: u32, wait: Nanos) {
        let figures = &mut self.figures[index as usize];
        figures.wait_max_ns = figures.wait_max_ns.max(wait.0);
    }

    /// Appends a row for each client.
    pub(crate) fn append_to(&self, columns: &mut ClientColumns) {
        for (index, (figures, ungranted)) in self.figures.iter().zip(&self.ungranted).enumerate() {
            let waits = self
                .waits
                .get(index * BUCKETS..(index + 1) * BUCKETS)
                .unwrap_or_default();
            let count = waits.iter().map(|&count| u64::from(count)).sum();
            let of = |q| {
                // The middle of the unit; never beyond what is known exactly.
                let middle = (quantile::<BITS>(waits, count, q) << UNIT) + (1 << UNIT) / 2;
                if count == 0 { 0 } else { middle.min(figures.wait_max_ns) }
            };
            columns.grants.push(figures.grants);
            columns.attempts.push(figures.attempts);
            columns.refused.push(ungranted.refused.into());
            columns.errors.push(ungranted.errors.into());
            columns.waits.push(count);
            columns.wait_sum_ns.push(figures.wait_sum_ns);
            columns.wait_max_ns.push(figures.wait_max_ns);
            columns.wait_p50_ns.push(of(0.5));
            columns.wait_p90_ns.push(of(0.9));
            columns.wait_p99_ns.push(of(0.99));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(of: &PerClient) -> ClientColumns {
        let mut columns = ClientColumns::default();
        of.append_to(&mut columns);
        columns
    }

    fn exact(sorted: &[u64], q: f64) -> u64 {
        sorted[((sorted.len() as f64 * q).ceil() as usize).max(1) - 1]
    }

    proptest! {
        /// Against the sorted waits themselves.
        #[test]
        fn a_quantile_differs_from_the_wait_by_at_most_a_sixteenth(
            mut waits in prop::collection::vec((0_u32..36).prop_flat_map(|bits| 0..2_u64 << bits), 1..300),
        ) {
            let mut clients = PerClient::of(2);
            for &wait in &waits {
                clients.grant(1, Nanos(wait), true);
            }
            waits.sort_unstable();
            let columns = columns(&clients);
            prop_assert_eq!((columns.waits[0], columns.waits[1]), (0, waits.len() as u64));
            prop_assert_eq!(columns.wait_max_ns[1], waits[waits.len() - 1]);
            for (q, read) in [(0.5, &columns.wait_p50_ns), (0.9, &columns.wait_p90_ns), (0.99, &columns.wait_p99_ns)] {
                let exact = exact(&waits, q);
                let error = exact.abs_diff(read[1]) as f64;
                prop_assert!(error <= (exact as f64 / 16.0).max(0.0) + 600.0, "{exact} was read as {}", read[1]);
            }
        }
    }

    #[test]
    fn a_client_beyond_those_with_waits_has_all_other_figures() {
        let mut clients = PerClient::of(MOST_WITH_WAITS as u32 + 1);
        let last = MOST_WITH_WAITS as u32;
        clients.grant(last, Nanos(5_000_000), true);
        clients.ungranted(last, Ended::Timeout);
        clients.ungranted(last, Ended::Unknown);
        let columns = columns(&clients);
        let last = last as usize;
        assert_eq!((columns.grants[last], columns.wait_max_ns[last]), (1, 5_000_000));
        assert_eq!((columns.refused[last], columns.errors[last]), (1, 1));
        assert_eq!((columns.waits[last], columns.wait_p50_ns[last]), (0, 0));
    }

    #[test]
    fn a_wait_of_hours_counts_as_the_longest_of_the_quantiles() {
        let mut clients = PerClient::of(1);
        clients.grant(0, Nanos::from_secs(7_200), true);
        let columns = columns(&clients);
        assert_eq!(columns.wait_max_ns, [7_200_000_000_000]);
        assert!(columns.wait_p99_ns[0] > 60_000_000_000);
    }
}
