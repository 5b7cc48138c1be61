//! The time line of the window: counts and response times in steps of 100 ms.
//!
//! The response times of a step go into a small histogram of 32 buckets per octave (3 %), so that live figures and the
//! time line of several threads need neither sorting nor stored samples.

use locks::Nanos;

use super::stats::STEP;

/// Values below 32 ns exactly, then 32 buckets per octave up to 2^42 ns, which is more than an hour.
const BUCKETS: usize = 32 * 38;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    grants: u64,
    refused: u64,
    errors: u64,
}

#[derive(Debug)]
pub(crate) struct Timeline {
    start: Nanos,
    /// The last step is the current one.
    steps: Vec<Step>,
    /// `BUCKETS` buckets for each step, one step after the other.
    buckets: Vec<u32>,
}

/// A finished time line as columns.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub start_ns: Vec<u64>,
    pub grants: Vec<u64>,
    pub refused: Vec<u64>,
    pub errors: Vec<u64>,
    pub p50_ns: Vec<u64>,
    pub p99_ns: Vec<u64>,
}

impl Timeline {
    /// Reserves room for a window of `length`, so that the time line does not grow while it is measured.
    pub(crate) fn new(length: Nanos) -> Self {
        let steps = (length.0 / STEP.0 + 2).min(100_000) as usize;
        Self {
            start: Nanos::NEVER,
            steps: Vec::with_capacity(steps),
            buckets: Vec::with_capacity(steps * BUCKETS),
        }
    }

    pub(crate) fn begin(&mut self, start: Nanos) {
        self.start = start;
        self.steps.clear();
        self.buckets.clear();
        self.push();
    }

    /// The end of the current step.
    pub(crate) fn next_step(&self) -> Nanos {
        self.start.after(Nanos(STEP.0.saturating_mul(self.steps.len() as u64)))
    }

    /// Closes the current step and begins the next.
    pub(crate) fn push(&mut self) {
        self.steps.push(Step::default());
        self.buckets.resize(self.buckets.len() + BUCKETS, 0);
    }

    #[inline]
    pub(crate) fn grant(&mut self, response: Nanos) {
        if let Some(step) = self.steps.last_mut() {
            step.grants += 1;
            let running = self.buckets.len() - BUCKETS;
            self.buckets[running + bucket(response.0)] += 1;
        }
    }

    pub(crate) fn refusal(&mut self) {
        if let Some(step) = self.steps.last_mut() {
            step.refused += 1;
        }
    }

    pub(crate) fn error(&mut self) {
        if let Some(step) = self.steps.last_mut() {
            step.errors += 1;
        }
    }

    /// Grants and p99 of the current step.
    pub(crate) fn running(&self) -> (u64, Nanos) {
        let grants = self.steps.last().map_or(0, |step| step.grants);
        let running = self.buckets.len().saturating_sub(BUCKETS);
        (grants, quantile(&self.buckets[running..], grants, 0.99))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        while self.steps.len() < other.steps.len() {
            self.push();
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.grants += theirs.grants;
            mine.refused += theirs.refused;
            mine.errors += theirs.errors;
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// The whole steps of a window of `length`; a last step of less than half its length is left out.
    pub(crate) fn columns(&self, length: Nanos) -> Columns {
        let whole = ((length.0 + STEP.0 / 2) / STEP.0) as usize;
        let mut columns = Columns::default();
        for (index, step) in self.steps.iter().enumerate().take(whole) {
            let buckets = &self.buckets[index * BUCKETS..(index + 1) * BUCKETS];
            columns.start_ns.push(index as u64 * STEP.0);
            columns.grants.push(step.grants);
            columns.refused.push(step.refused);
            columns.errors.push(step.errors);
            columns.p50_ns.push(quantile(buckets, step.grants, 0.5).0);
            columns.p99_ns.push(quantile(buckets, step.grants, 0.99).0);
        }
        columns
    }
}

fn bucket(value: u64) -> usize {
    if value < 32 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() as usize;
    let index = ((octave - 4) << 5) + ((value >> (octave - 5)) as usize & 31);
    index.min(BUCKETS - 1)
}

/// The middle of bucket `index`.
fn value(index: usize) -> u64 {
    if index < 32 {
        return index as u64;
    }
    let octave = (index >> 5) + 4;
    let low = (32 + (index as u64 & 31)) << (octave - 5);
    low + (1 << (octave - 5)) / 2
}

fn quantile(buckets: &[u32], count: u64, quantile: f64) -> Nanos {
    let rank = (count as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    for (index, &filled) in buckets.iter().enumerate() {
        seen += u64::from(filled);
        if filled > 0 && seen >= rank {
            return Nanos(value(index));
        }
    }
    Nanos::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_value_within_three_percent() {
        for exponent in 0..41 {
            for offset in [0, 1, 7] {
                let given = (1_u64 << exponent) + offset;
                let read = value(bucket(given));
                assert!(
                    given.abs_diff(read) as f64 <= given as f64 * 0.032,
                    "{given} was read as {read}"
                );
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn steps_of_two_threads_add_up() {
        let length = Nanos::from_millis(200);
        let (mut one, mut other) = (Timeline::new(length), Timeline::new(length));
        one.begin(Nanos::ZERO);
        other.begin(Nanos::ZERO);
        one.grant(Nanos::from_micros(100));
        other.push();
        other.grant(Nanos::from_micros(300));
        other.refusal();
        one.add(&other);
        let columns = one.columns(length);
        assert_eq!((columns.grants, columns.refused), (vec![1, 1], vec![0, 1]));
        assert!(columns.p50_ns[1].abs_diff(300_000) < 10_000);
    }

    #[test]
    fn a_short_last_step_is_left_out() {
        let mut timeline = Timeline::new(Nanos::from_millis(250));
        timeline.begin(Nanos::ZERO);
        timeline.push();
        timeline.push();
        assert_eq!(timeline.columns(Nanos::from_millis(230)).grants.len(), 2);
        assert_eq!(timeline.columns(Nanos::from_millis(260)).grants.len(), 3);
    }
}
