//! What a thread counts: counters, one histogram a phase and outcome, and a time line in steps of 100 ms.

use hdrhistogram::Histogram;
use locks::Nanos;

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
    all_grants, all_commands, reconnects, lost_calls, abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Queue,
    Service,
    Response,
    Hold,
    Release,
    Handoff,
    Lag,
}

impl Phase {
    pub const ALL: [Self; 7] = [
        Self::Queue,
        Self::Service,
        Self::Response,
        Self::Hold,
        Self::Release,
        Self::Handoff,
        Self::Lag,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Service => "service",
            Self::Response => "response",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Handoff => "handoff",
            Self::Lag => "lag",
        }
    }
}

/// How the thing timed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    Granted,
    Refused,
    Timeout,
    Error,
    Lost,
    Unknown,
}

impl Ended {
    pub const ALL: [Self; 6] = [
        Self::Granted,
        Self::Refused,
        Self::Timeout,
        Self::Error,
        Self::Lost,
        Self::Unknown,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// 1 ns to 1 h at three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are sound")
}

/// Values that are kept before they are entered.
const PENDING: usize = 256;

/// A histogram, and the values that are still to be entered. The counts of a histogram lie far apart in memory: entered
/// one by one, between all that the loop does, each value would wait for its own; in a row they come side by side.
#[derive(Debug)]
struct Recorder {
    pending: Vec<u64>,
    histogram: Histogram<u64>,
}

impl Recorder {
    fn new() -> Self {
        Self {
            pending: Vec::with_capacity(PENDING),
            histogram: histogram(),
        }
    }

    #[inline]
    fn record(&mut self, value: u64) {
        self.pending.push(value);
        if self.pending.len() == PENDING {
            self.enter_pending();
        }
    }

    #[inline(never)]
    fn enter_pending(&mut self) {
        for value in self.pending.drain(..) {
            self.histogram.saturating_record(value);
        }
    }
}

/// One histogram a phase and outcome, made when the first value comes.
#[derive(Debug)]
pub struct Histograms {
    table: [[Option<Recorder>; Ended::ALL.len()]; Phase::ALL.len()],
}

impl Histograms {
    /// With those that every trial fills, so that the hot loop allocates none of them.
    pub(crate) fn new() -> Self {
        let mut empty = Self {
            table: std::array::from_fn(|_| std::array::from_fn(|_| None)),
        };
        for phase in [Phase::Queue, Phase::Response, Phase::Hold, Phase::Release, Phase::Lag] {
            empty.table[phase as usize][Ended::Granted as usize] = Some(Recorder::new());
        }
        empty
    }

    #[inline]
    pub(crate) fn record(&mut self, phase: Phase, ended: Ended, length: Nanos) {
        if cfg!(feature = "bare") {
            return;
        }
        self.table[phase as usize][ended as usize]
            .get_or_insert_with(Recorder::new)
            .record(length.0);
    }

    /// Enters what is still kept. To be called when the last value was recorded; until then the histograms lack some.
    pub(crate) fn finish(&mut self) {
        for recorder in self.table.iter_mut().flatten().flatten() {
            recorder.enter_pending();
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
        let mine = self.table[phase as usize][ended as usize].get_or_insert_with(Recorder::new);
        mine.histogram.add(theirs).expect("all histograms have the same bounds");
    }

    /// In a closed loop a client starts when it is due, so service is response and nothing queues: one is recorded.
    pub(crate) fn copy_response_to_service(&mut self) {
        for ended in Ended::ALL {
            if let Some(response) = self.table[Phase::Response as usize][ended as usize].take() {
                self.set(Phase::Service, ended, &response.histogram);
                self.table[Phase::Response as usize][ended as usize] = Some(response);
            }
        }
    }

    /// The histograms that hold anything.
    pub fn filled(&self) -> impl Iterator<Item = (Phase, Ended, &Histogram<u64>)> {
        Phase::ALL.into_iter().flat_map(move |phase| {
            Ended::ALL.into_iter().filter_map(move |ended| {
                let Recorder { histogram, .. } = self.table[phase as usize][ended as usize].as_ref()?;
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

    #[test]
    fn no_value_is_lost_however_many_come() {
        for count in [0, 1, PENDING - 1, PENDING, PENDING + 1, 3 * PENDING] {
            let mut histograms = Histograms::new();
            for value in 0..count as u64 {
                histograms.record(Phase::Hold, Ended::Granted, Nanos(value));
            }
            histograms.finish();
            let entered: u64 = histograms.filled().map(|(_, _, histogram)| histogram.len()).sum();
            assert_eq!(entered, count as u64);
        }
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
