//! What a thread counts: counters, one histogram per phase and outcome, and a time line in steps of 100 ms.

use hdrhistogram::Histogram;
use locks::Nanos;

use super::buckets::{bucket, lowest};

/// Length of a step of the time line.
pub(crate) const STEP: Nanos = Nanos::from_millis(100);

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counters of a trial; `results/README.md` says what each counts.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Counters { $(pub $name: u64),* }

        impl Counters {
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// What was counted after `earlier`.
            pub(crate) fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name)),* }
            }

            /// Each counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

counters! {
    attempts, refused_attempts, grants, refused, timeouts, errors, lost, unknown, unfinished,
    commands, bytes_out, bytes_in, writes, reads, arrivals, drops, client_cpu_ns, nominal_hold_ns,
    all_grants, all_commands, reconnects, lost_calls, abandoned, no_quorum, renewals, lapsed, orphan_ns,
    unsettled, wake_ups, conflicts, conflicted_grants, acknowledged_writes, unknown_writes, stale_writes,
    sold_out, refused_writes, abandoned_works, stale_writes_accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Queue,
    Service,
    Response,
    Hold,
    Release,
    Handoff,
    SendDelay,
}

impl Phase {
    pub const ALL: [Self; 7] = [
        Self::Queue,
        Self::Service,
        Self::Response,
        Self::Hold,
        Self::Release,
        Self::Handoff,
        Self::SendDelay,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Service => "service",
            Self::Response => "response",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Handoff => "handoff",
            Self::SendDelay => "send_delay",
        }
    }
}

/// How the timed step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    Granted,
    Refused,
    Timeout,
    Error,
    Lost,
    Unknown,
    /// The step had not ended when the window closed: its real time is at least as long.
    Waiting,
}

impl Ended {
    pub const ALL: [Self; 7] = [
        Self::Granted,
        Self::Refused,
        Self::Timeout,
        Self::Error,
        Self::Lost,
        Self::Unknown,
        Self::Waiting,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
            Self::Waiting => "waiting",
        }
    }
}

/// In nanoseconds; a longer time counts as one hour.
const LONGEST: u64 = 3_600_000_000_000;

/// 1 ns to 1 h at three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are valid")
}

/// The leading bits that `histogram` keeps of a value, for three digits.
const BITS: u32 = 11;
const BUCKETS: usize = bucket::<BITS>(LONGEST) + 1;

/// Counts in the same buckets as `histogram`, and is added to it at the end. The library's own recording also updates
/// the extremes and the total, and reads a count twice as wide from memory before it goes on: with it, recording three
/// values per grant costs more than the whole checker.
#[derive(Clone, Debug)]
pub(super) struct FastHistogram {
    counts: Box<[u32]>,
    histogram: Histogram<u64>,
}

impl FastHistogram {
    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            histogram: histogram(),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        let count = &mut self.counts[bucket::<BITS>(value.min(LONGEST))];
        *count += 1;
        if *count == u32::MAX {
            self.enter();
        }
    }

    /// The histogram of all values so far.
    pub(super) fn finished(mut self) -> Histogram<u64> {
        self.enter();
        self.histogram
    }

    #[cold]
    fn enter(&mut self) {
        for (bucket, count) in self.counts.iter_mut().enumerate() {
            if *count > 0 {
                self.histogram
                    .saturating_record_n(lowest::<BITS>(bucket), std::mem::take(count).into());
            }
        }
    }
}

/// One histogram per phase and outcome, created with its first value.
#[derive(Clone, Debug)]
pub struct Histograms {
    table: [[Option<FastHistogram>; Ended::ALL.len()]; Phase::ALL.len()],
}

impl Histograms {
    pub(crate) fn empty() -> Self {
        Self {
            table: std::array::from_fn(|_| std::array::from_fn(|_| None)),
        }
    }

    /// Includes the histograms that every trial fills, so that the hot loop does not allocate them.
    pub(crate) fn new() -> Self {
        let mut empty = Self::empty();
        for phase in [
            Phase::Queue,
            Phase::Response,
            Phase::Hold,
            Phase::Release,
            Phase::SendDelay,
        ] {
            empty.table[phase as usize][Ended::Granted as usize] = Some(FastHistogram::new());
        }
        empty
    }

    #[inline]
    pub(crate) fn record(&mut self, phase: Phase, ended: Ended, length: Nanos) {
        if cfg!(feature = "bare") {
            return;
        }
        self.table[phase as usize][ended as usize]
            .get_or_insert_with(FastHistogram::new)
            .record(length.0);
    }

    /// Adds all recorded counts to the histograms. To be called after the last value; until then the histograms are
    /// incomplete.
    pub(crate) fn finish(&mut self) {
        for recorder in self.table.iter_mut().flatten().flatten() {
            recorder.enter();
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for phase in Phase::ALL {
            for ended in Ended::ALL {
                if let Some(theirs) = &other.table[phase as usize][ended as usize] {
                    self.set(phase, ended, &theirs.histogram);
                }
            }
        }
    }

    /// Adds a whole histogram.
    pub(crate) fn set(&mut self, phase: Phase, ended: Ended, theirs: &Histogram<u64>) {
        let mine = self.table[phase as usize][ended as usize].get_or_insert_with(FastHistogram::new);
        mine.histogram.add(theirs).expect("all histograms have the same bounds");
    }

    /// In a closed loop a client starts when it is due, so service time equals response time and nothing queues: only
    /// one of them is recorded.
    pub(crate) fn copy_response_to_service(&mut self) {
        for ended in Ended::ALL {
            if let Some(response) = self.table[Phase::Response as usize][ended as usize].take() {
                self.set(Phase::Service, ended, &response.histogram);
                self.table[Phase::Response as usize][ended as usize] = Some(response);
            }
        }
    }

    /// The histograms that are not empty.
    pub fn filled(&self) -> impl Iterator<Item = (Phase, Ended, &Histogram<u64>)> {
        Phase::ALL.into_iter().flat_map(move |phase| {
            Ended::ALL.into_iter().filter_map(move |ended| {
                let FastHistogram { histogram, .. } = self.table[phase as usize][ended as usize].as_ref()?;
                (!histogram.is_empty()).then_some((phase, ended, histogram))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filled_histograms_are_listed_and_none_is_clamped_below_an_hour() {
        let mut histograms = Histograms::new();
        histograms.record(Phase::Response, Ended::Granted, Nanos::from_secs(3_000));
        histograms.record(Phase::Response, Ended::Refused, Nanos(5));
        histograms.finish();
        let listed: Vec<_> = histograms
            .filled()
            .map(|(phase, ended, h)| (phase, ended, h.max()))
            .collect();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].1, Ended::Granted);
        assert!((listed[0].2 as f64 / 3e12 - 1.0).abs() < 0.001);
    }

    /// The first and the last values of every octave, some in between, an hour, and beyond.
    fn edges() -> impl Iterator<Item = u64> {
        let powers = (0..63).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
        powers
            .filter(|&value| value <= LONGEST)
            .chain((1..200).map(|step| step * step * step * 449_000))
            .chain([LONGEST, u64::MAX])
    }

    #[test]
    fn a_value_is_counted_in_the_bucket_that_the_library_has_for_it() {
        for value in edges() {
            let mut histograms = Histograms::new();
            histograms.record(Phase::Hold, Ended::Granted, Nanos(value));
            histograms.finish();
            let mut theirs = histogram();
            theirs.saturating_record(value);
            let (_, _, ours) = histograms.filled().next().expect("it holds one");
            let counted = |h: &Histogram<u64>| (h.min(), h.max(), h.len(), h.value_at_quantile(0.5));
            assert_eq!(counted(ours), counted(&theirs), "of {value}");
        }
    }

    #[test]
    fn no_value_is_lost_when_a_count_is_full() {
        let mut recorder = FastHistogram::new();
        recorder.counts[bucket::<BITS>(7)] = u32::MAX - 1;
        for _ in 0..3 {
            recorder.record(7);
        }
        recorder.enter();
        assert_eq!(recorder.histogram.count_at(7), u64::from(u32::MAX) + 2);
    }

    #[test]
    fn counters_add_up_by_name() {
        let mut sum = Counters {
            grants: 2,
            ..Counters::default()
        };
        sum.add(&Counters {
            grants: 3,
            drops: 1,
            ..Counters::default()
        });
        assert!(sum.named().contains(&("grants", 5)) && sum.named().contains(&("drops", 1)));
    }
}
