//! The time line of the window: counts and response times in steps of 100 ms.
//!
//! A window without end keeps bounded memory: when there are `MOST_STEPS`, each two become one, and from then on a step
//! takes twice as long.
//!
//! The response times of a step go into a small histogram of 32 buckets per octave (3 %), so that live figures and the
//! time line of several threads need neither sorting nor stored samples.

use locks::Nanos;

use super::buckets;
use super::stats::STEP;

/// 32 buckets per octave: see `buckets`.
const BITS: u32 = 6;
/// Up to 2^42 ns, which is more than an hour.
const BUCKETS: usize = 32 * 38;

/// Five minutes of steps as they begin; with their buckets 15 MB.
const MOST_STEPS: usize = 3_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    grants: u64,
    refused: u64,
    errors: u64,
}

impl Step {
    fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.refused += other.refused;
        self.errors += other.errors;
    }
}

fn add_each(counts: &mut [u32], others: &[u32]) {
    for (count, other) in counts.iter_mut().zip(others) {
        *count = count.saturating_add(*other);
    }
}

#[derive(Debug)]
pub(crate) struct Timeline {
    start: Nanos,
    /// How long a step takes.
    step: Nanos,
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
    /// The mean load of each step; empty for a load that does not change.
    pub offered: Vec<f64>,
}

impl Timeline {
    /// Reserves room for a window of `length`, so that the time line does not grow while it is measured.
    pub(crate) fn new(length: Nanos) -> Self {
        let steps = (length.0 / STEP.0 + 2).min(MOST_STEPS as u64) as usize;
        Self {
            start: Nanos::NEVER,
            step: STEP,
            steps: Vec::with_capacity(steps),
            buckets: Vec::with_capacity(steps * BUCKETS),
        }
    }

    pub(crate) fn begin(&mut self, start: Nanos) {
        self.start = start;
        self.step = STEP;
        self.steps.clear();
        self.buckets.clear();
        self.push();
    }

    /// The end of the current step.
    pub(crate) fn next_step(&self) -> Nanos {
        self.start
            .after(Nanos(self.step.0.saturating_mul(self.steps.len() as u64)))
    }

    /// Closes the current step and begins the next.
    pub(crate) fn push(&mut self) {
        if self.steps.len() == MOST_STEPS {
            self.fold();
        }
        self.steps.push(Step::default());
        self.buckets.resize(self.buckets.len() + BUCKETS, 0);
    }

    /// Makes one step out of each two.
    #[cold]
    fn fold(&mut self) {
        self.step = Nanos(self.step.0 * 2);
        for place in 0..self.steps.len().div_ceil(2) {
            let mut step = self.steps[2 * place];
            let from = 2 * place * BUCKETS;
            self.buckets.copy_within(from..from + BUCKETS, place * BUCKETS);
            if let Some(second) = self.steps.get(2 * place + 1) {
                step.add(second);
                let (to, from) = self.buckets.split_at_mut(from + BUCKETS);
                let to = &mut to[place * BUCKETS..(place + 1) * BUCKETS];
                add_each(to, &from[..BUCKETS]);
            }
            self.steps[place] = step;
        }
        let left = self.steps.len().div_ceil(2);
        self.steps.truncate(left);
        self.buckets.truncate(left * BUCKETS);
    }

    #[inline]
    pub(crate) fn grant(&mut self, response: Nanos) {
        if let Some(step) = self.steps.last_mut() {
            step.grants += 1;
            let running = self.buckets.len() - BUCKETS;
            let count = &mut self.buckets[running + bucket(response.0)];
            *count = count.saturating_add(1);
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

    /// Grants a second and p99 of the current step, at its end.
    pub(crate) fn running(&self) -> (u64, Nanos) {
        let grants = self.steps.last().map_or(0, |step| step.grants);
        let running = self.buckets.len().saturating_sub(BUCKETS);
        let per_s = grants as f64 * 1e9 / self.step.0 as f64;
        (per_s as u64, quantile(&self.buckets[running..], grants, 0.99))
    }

    /// Adds the time line of another thread, which may have been stopped a step earlier or later.
    pub(crate) fn add(&mut self, mut other: Self) {
        while self.step < other.step {
            self.fold();
        }
        while other.step < self.step {
            other.fold();
        }
        while self.steps.len() < other.steps.len() {
            self.push();
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.add(theirs);
        }
        add_each(&mut self.buckets, &other.buckets);
    }

    /// How long a step takes.
    pub(crate) const fn step(&self) -> Nanos {
        self.step
    }

    /// The whole steps of a window of `length`; a last step of less than half its length is left out.
    pub(crate) fn columns(&self, length: Nanos) -> Columns {
        let length_of_step = self.step.0;
        let whole = ((length.0 + length_of_step / 2) / length_of_step) as usize;
        let mut columns = Columns::default();
        for (index, step) in self.steps.iter().enumerate().take(whole) {
            let buckets = &self.buckets[index * BUCKETS..(index + 1) * BUCKETS];
            columns.start_ns.push(index as u64 * length_of_step);
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
    buckets::bucket::<BITS>(value).min(BUCKETS - 1)
}

fn quantile(counts: &[u32], count: u64, quantile: f64) -> Nanos {
    Nanos(buckets::quantile::<BITS>(counts, count, quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_time_counts_in_the_last_bucket() {
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
        one.add(other);
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

    #[test]
    fn a_window_without_end_keeps_bounded_memory_and_loses_no_count() {
        let mut timeline = Timeline::new(Nanos::NEVER);
        timeline.begin(Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let end = Nanos(STEP.0 * 5 * MOST_STEPS as u64);
        let mut grants = 0;
        while now < end {
            while timeline.next_step() <= now {
                timeline.push();
            }
            timeline.grant(Nanos(now.0 / STEP.0 + 1));
            grants += 1;
            now = now.after(STEP);
        }
        assert!(timeline.steps.len() <= MOST_STEPS);
        let columns = timeline.columns(end);
        assert_eq!(columns.grants.iter().sum::<u64>(), grants);
        let steps: Vec<u64> = columns.start_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|&step| step == 8 * STEP.0), "{:?}", &steps[..3]);
        assert!(columns.grants.iter().all(|&count| count == 8));
        let rises = columns.p50_ns.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert_eq!(rises, 0, "no step has the response times of another");
    }

    #[test]
    fn threads_whose_steps_differ_in_length_add_up() {
        let (mut long, mut short) = (Timeline::new(Nanos::NEVER), Timeline::new(Nanos::NEVER));
        for timeline in [&mut long, &mut short] {
            timeline.begin(Nanos::ZERO);
            timeline.grant(Nanos(7));
        }
        while short.steps.len() < MOST_STEPS {
            short.push();
            long.push();
        }
        long.push();
        short.grant(Nanos(9));
        long.add(short);
        let columns = long.columns(Nanos(STEP.0 * MOST_STEPS as u64));
        assert_eq!((columns.grants[0], columns.grants.iter().sum::<u64>()), (2, 3));
        assert_eq!(columns.grants[MOST_STEPS / 2 - 1], 1);
    }
}
