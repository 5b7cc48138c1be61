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

/// One histogram a phase and outcome, made when the first value comes.
#[derive(Debug)]
pub struct Histograms {
    table: [[Option<Histogram<u64>>; Ended::ALL.len()]; Phase::ALL.len()],
}

impl Histograms {
    /// With those that every trial fills, so that the hot loop allocates none of them.
    pub(crate) fn new() -> Self {
        let mut empty = Self {
            table: std::array::from_fn(|_| std::array::from_fn(|_| None)),
        };
        for phase in [Phase::Queue, Phase::Response, Phase::Hold, Phase::Release, Phase::Lag] {
            empty.table[phase as usize][Ended::Granted as usize] = Some(histogram());
        }
        empty
    }

    #[inline]
    pub(crate) fn record(&mut self, phase: Phase, ended: Ended, length: Nanos) {
        if cfg!(feature = "bare") {
            return;
        }
        self.table[phase as usize][ended as usize]
            .get_or_insert_with(histogram)
            .saturating_record(length.0);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for phase in Phase::ALL {
            for ended in Ended::ALL {
                if let Some(theirs) = &other.table[phase as usize][ended as usize] {
                    self.set(phase, ended, theirs);
                }
            }
        }
    }

    /// Adds a whole histogram.
    pub(crate) fn set(&mut self, phase: Phase, ended: Ended, theirs: &Histogram<u64>) {
        let mine = self.table[phase as usize][ended as usize].get_or_insert_with(histogram);
        mine.add(theirs).expect("all histograms have the same bounds");
    }

    /// In a closed loop a client starts when it is due, so service is response and nothing queues: one is recorded.
    pub(crate) fn copy_response_to_service(&mut self) {
        let response = self.table[Phase::Response as usize].clone();
        self.table[Phase::Service as usize] = response;
    }

    /// The histograms that hold anything.
    pub fn filled(&self) -> impl Iterator<Item = (Phase, Ended, &Histogram<u64>)> {
        Phase::ALL.into_iter().flat_map(move |phase| {
            Ended::ALL.into_iter().filter_map(move |ended| {
                let histogram = self.table[phase as usize][ended as usize].as_ref()?;
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
        let listed: Vec<_> = histograms
            .filled()
            .map(|(phase, ended, h)| (phase, ended, h.max()))
            .collect();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].1, Ended::Granted);
        assert!((listed[0].2 as f64 / 3e12 - 1.0).abs() < 0.001);
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
