//! When the clients of an open loop arrive: at a steady rate, in stages, or as somebody asks while the trial runs.

use locks::Nanos;
use rand_distr::{Distribution as Draw, Exp1};

use super::stages::Stages;
use super::workload::Stream;
use crate::spec::ArrivalKind;

/// The schedule of an open loop: the due times of its arrivals.
#[derive(Debug)]
pub(crate) struct Arrivals {
    kind: ArrivalKind,
    /// The mean gap; infinite while no arrivals come.
    gap_ns: f64,
    stream: Stream,
    start: Nanos,
    /// From `start`; a float, so that a gap of a third of a nanosecond does not drift.
    next_ns: f64,
    /// The rate over time, instead of the gap.
    stages: Option<Staged>,
}

#[derive(Debug)]
struct Staged {
    stages: Stages,
    /// One in so many arrivals comes here.
    share: f64,
    /// The sum of the rate over time at which the next one comes.
    sum: f64,
}

impl Arrivals {
    /// `None` when the rate is not a positive number.
    pub(crate) fn new(kind: ArrivalKind, rate_per_s: f64, stream: Stream) -> Option<Self> {
        if !(rate_per_s.is_finite() && rate_per_s > 0.0) {
            return None;
        }
        Some(Self {
            kind,
            gap_ns: 1e9 / rate_per_s,
            stream,
            start: Nanos::NEVER,
            next_ns: f64::INFINITY,
            stages: None,
        })
    }

    /// From its start on the schedule follows these stages, if there are any; one in `share` arrivals comes here.
    pub(crate) fn follow(&mut self, stages: Option<Stages>, share: f64) {
        self.stages = stages.map(|stages| Staged {
            stages,
            share,
            sum: 0.0,
        });
    }

    /// Arrivals come at this rate from now on; 0: none. What is left of the gap under way is stretched or shortened in
    /// proportion, which for Poisson arrivals is as if it were drawn anew.
    pub(crate) fn set_rate(&mut self, per_s: f64, now: Nanos) {
        if self.stages.take().is_some() {
            self.gap_ns = f64::INFINITY;
        }
        let before = std::mem::replace(&mut self.gap_ns, 1e9 / per_s);
        if self.start == Nanos::NEVER || self.gap_ns.to_bits() == before.to_bits() {
            return;
        }
        let elapsed = now.since(self.start).0 as f64;
        if before.is_infinite() {
            self.next_ns = elapsed;
            self.step();
        } else if self.next_ns > elapsed {
            self.next_ns = elapsed + (self.next_ns - elapsed) * (self.gap_ns / before);
        }
    }

    /// Starts the schedule at `at`; the first arrival comes one gap later.
    pub(crate) fn begin(&mut self, at: Nanos) {
        self.start = at;
        self.next_ns = 0.0;
        self.step();
    }

    /// No further arrivals.
    pub(crate) fn end(&mut self) {
        self.start = Nanos::NEVER;
    }

    pub(crate) fn next_due(&self) -> Nanos {
        if self.start == Nanos::NEVER {
            Nanos::NEVER
        } else {
            self.start.after(Nanos(self.next_ns as u64))
        }
    }

    /// The due time of the next arrival, if it has come.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.next_due();
        if due > now {
            return None;
        }
        self.step();
        Some(due)
    }

    fn step(&mut self) {
        let gap: f64 = match self.kind {
            ArrivalKind::Constant => 1.0,
            ArrivalKind::Poisson => Exp1.sample(&mut self.stream),
        };
        match &mut self.stages {
            None => self.next_ns += gap * self.gap_ns,
            Some(Staged { stages, share, sum }) => {
                *sum += gap * *share;
                self.next_ns = stages.when(*sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::streams;
    use super::*;
    use crate::spec::Stage;

    fn stream() -> Stream {
        streams(7, 0, 1).remove(0)
    }

    fn steady(kind: ArrivalKind, per_s: f64) -> Arrivals {
        Arrivals::new(kind, per_s, stream()).expect("the rate is positive")
    }

    fn count_until(arrivals: &mut Arrivals, ms: u64) -> u64 {
        std::iter::from_fn(|| arrivals.pop(Nanos::from_millis(ms))).count() as u64
    }

    #[test]
    fn constant_arrivals_do_not_drift_and_poisson_ones_keep_the_rate() {
        for kind in [ArrivalKind::Constant, ArrivalKind::Poisson] {
            let mut arrivals = Arrivals::new(kind, 3_000.0, stream()).expect("the rate is positive");
            assert_eq!(arrivals.next_due(), Nanos::NEVER);
            arrivals.begin(Nanos::from_secs(5));
            let mut count = 0;
            while arrivals.pop(Nanos::from_secs(15)).is_some() {
                count += 1;
            }
            match kind {
                ArrivalKind::Constant => assert_eq!(count, 30_000),
                ArrivalKind::Poisson => assert!((29_300..30_700).contains(&count), "{count}"),
            }
        }
        assert!(Arrivals::new(ArrivalKind::Poisson, 0.0, stream()).is_none());
        assert!(Arrivals::new(ArrivalKind::Poisson, f64::NAN, stream()).is_none());
    }

    #[test]
    fn a_rate_that_is_asked_for_holds_from_then_on() {
        for kind in [ArrivalKind::Constant, ArrivalKind::Poisson] {
            let mut arrivals = steady(kind, 1_000.0);
            arrivals.set_rate(0.0, Nanos::ZERO);
            arrivals.begin(Nanos::ZERO);
            assert_eq!(count_until(&mut arrivals, 1_000), 0);
            for (end, per_s) in [(11_000, 3_000.0), (12_000, 0.0), (22_000, 1_000.0)] {
                let before = end - if per_s == 0.0 { 1_000 } else { 10_000 };
                arrivals.set_rate(per_s, Nanos::from_millis(before));
                let count = count_until(&mut arrivals, end);
                let expected = per_s as u64 * (end - before) / 1_000;
                let off = match kind {
                    ArrivalKind::Constant => 1,
                    ArrivalKind::Poisson => 5 * expected.isqrt(),
                };
                assert!(count.abs_diff(expected) <= off, "{count} instead of {expected}");
            }
        }
    }

    /// The gap under way keeps its share: at half of a gap of 10 s, half of the new gap is left.
    #[test]
    fn what_is_left_of_a_gap_is_stretched_in_proportion() {
        let mut arrivals = steady(ArrivalKind::Constant, 0.1);
        arrivals.begin(Nanos::ZERO);
        arrivals.set_rate(1.0, Nanos::from_secs(5));
        assert_eq!(arrivals.next_due(), Nanos::from_millis(5_500));
        arrivals.set_rate(1.0, Nanos::from_millis(5_400));
        assert_eq!(
            arrivals.next_due(),
            Nanos::from_millis(5_500),
            "the same rate again changes nothing"
        );
    }

    #[test]
    fn arrivals_follow_their_stages_and_every_thread_takes_its_share() {
        let stages = [
            (0.0, 2_000.0, 2_000),
            (2_000.0, 2_000.0, 1_000),
            (0.0, 0.0, 1_000),
            (500.0, 0.0, 2_000),
        ];
        let stages = stages.map(|(from, to, ms)| Stage {
            from,
            to,
            length: Nanos::from_millis(ms),
        });
        for (kind, share) in [
            (ArrivalKind::Constant, 1.0),
            (ArrivalKind::Constant, 2.0),
            (ArrivalKind::Poisson, 1.0),
        ] {
            let mut arrivals = steady(kind, 2_000.0);
            arrivals.follow(Stages::new(Nanos::from_millis(500), &stages), share);
            arrivals.begin(Nanos::ZERO);
            for (end, expected) in [
                (500, 0),
                (1_500, 500),
                (2_500, 1_500),
                (3_500, 2_000),
                (4_500, 0),
                (6_500, 500),
            ] {
                let count = count_until(&mut arrivals, end);
                let expected = expected / share as u64;
                let off = match kind {
                    ArrivalKind::Constant => 1,
                    ArrivalKind::Poisson => 5 * u64::isqrt(expected),
                };
                assert!(
                    count.abs_diff(expected) <= off,
                    "{count} instead of {expected} until {end} ms"
                );
            }
            assert_eq!(arrivals.next_due(), Nanos::NEVER);
        }
    }
}
