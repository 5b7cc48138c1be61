//! What a trial with planned faults records beside all else: grants, errors and response times before, during and after
//! the faults, how long holders did not know that they had lost their lock, and what became of crashed clients.
//!
//! A trial without faults has no record of this kind, and pays one branch a grant.

use std::collections::BTreeMap;

use check::Event as Judged;
use hdrhistogram::Histogram;
use locks::Nanos;

use super::Recorder;
use super::stats::FastHistogram;
use crate::faults::FaultSpan;

/// The most times to know that a thread keeps.
const MOST_TIMES: usize = 10_000;

/// Where a time lies, compared with the faults of its trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Before the first of them.
    Before,
    /// While one or more of them last.
    During,
    /// Later than the first of them, while none lasts.
    After,
}

impl Period {
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

/// What happened in one of the periods.
#[derive(Clone, Debug)]
pub struct PeriodFigures {
    /// How much of the window it takes.
    pub length: Nanos,
    pub grants: u64,
    /// Acquires that ended with an error or with unknown outcome.
    pub errors: u64,
    /// Of the grants that were due in the window.
    pub response: Histogram<u64>,
}

/// What the faults of a trial did.
#[derive(Clone, Debug, Default)]
pub struct FaultFigures {
    /// For each planned fault.
    pub spans: Vec<FaultSpan>,
    /// In the order of `Period::ALL`; empty without faults.
    pub periods: Vec<PeriodFigures>,
    pub crashes: u64,
    pub dropped_renewals: u64,
    /// From the end of a lease to the moment when its holder was told of the loss or noticed it, of each grant that
    /// ended so while or after a fault disturbed it.
    pub time_to_know: Vec<Nanos>,
}

impl FaultFigures {
    pub(crate) fn add(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.dropped_renewals += other.dropped_renewals;
        self.time_to_know.extend(other.time_to_know);
        if self.periods.is_empty() {
            (self.spans, self.periods) = (other.spans, other.periods);
            return;
        }
        for (ours, theirs) in self.spans.iter_mut().zip(other.spans) {
            *ours = ours.of_both(theirs);
        }
        for (ours, theirs) in self.periods.iter_mut().zip(other.periods) {
            ours.grants += theirs.grants;
            ours.errors += theirs.errors;
            ours.response
                .add(theirs.response)
                .expect("all histograms have the same bounds");
        }
    }
}

#[derive(Debug)]
struct Counted {
    grants: u64,
    errors: u64,
    response: FastHistogram,
}

/// The record of one thread.
#[derive(Debug)]
pub(crate) struct Periods {
    /// The times with faults, counted from the opening of the window: in order, without overlaps.
    faults: Vec<(Nanos, Nanos)>,
    counted: [Counted; 3],
    pub(crate) crashes: u64,
    pub(crate) dropped_renewals: u64,
    time_to_know: Vec<Nanos>,
    /// When the grant began whose loss a client learned of last.
    known: BTreeMap<u32, Nanos>,
}

impl Periods {
    /// `None` without faults.
    pub(crate) fn of(faults: &[(Nanos, Nanos)]) -> Option<Box<Self>> {
        let counted = |_| Counted {
            grants: 0,
            errors: 0,
            response: FastHistogram::new(),
        };
        (!faults.is_empty()).then(|| {
            Box::new(Self {
                faults: faults.to_vec(),
                counted: Period::ALL.map(counted),
                crashes: 0,
                dropped_renewals: 0,
                time_to_know: Vec::new(),
                known: BTreeMap::new(),
            })
        })
    }

    /// The period of the time `open` after the opening of the window. What is over at once takes no time.
    fn at(&self, open: Nanos) -> Period {
        let begun = self.faults.partition_point(|(from, _)| *from <= open);
        match begun.checked_sub(1).map(|last| self.faults[last]) {
            None => Period::Before,
            Some((_, to)) if open < to => Period::During,
            Some(_) => Period::After,
        }
    }

    pub(crate) fn granted(&mut self, open: Nanos, response: Option<Nanos>) {
        let counted = &mut self.counted[self.at(open) as usize];
        counted.grants += 1;
        if let Some(response) = response {
            counted.response.record(response.0);
        }
    }

    pub(super) fn failed(&mut self, open: Nanos) {
        self.counted[self.at(open) as usize].errors += 1;
    }

    /// Whether a fault began before `to` and ended after `from`.
    fn touch(&self, from: Nanos, to: Nanos) -> bool {
        self.faults.iter().any(|(began, ended)| *began < to && from <= *ended)
    }

    /// As `Recorder::knew`, with all times counted from the opening of the window.
    fn knew(&mut self, client: u32, granted: Nanos, until: Nanos, now: Nanos) {
        let is_known = self.known.insert(client, granted) == Some(granted);
        if is_known || now <= until || !self.touch(granted, now) {
            return; // Told before, or before the lease ended, or not because of a fault.
        }
        if self.time_to_know.len() < MOST_TIMES {
            self.time_to_know.push(now.since(until));
        }
    }

    /// How much of a window of this `length` each period takes.
    fn lengths(&self, length: Nanos) -> [Nanos; 3] {
        let clipped = |at: Nanos| at.min(length);
        let during = self
            .faults
            .iter()
            .map(|&(from, to)| clipped(to).since(clipped(from)).0)
            .sum();
        let before = self.faults.first().map_or(length, |(from, _)| clipped(*from));
        [
            before,
            Nanos(during),
            Nanos(length.since(before).0.saturating_sub(during)),
        ]
    }

    /// For a window of this length, with what was carried out when.
    pub(crate) fn finish(self, window: Nanos, spans: Vec<FaultSpan>) -> FaultFigures {
        let lengths = self.lengths(window);
        let periods = self.counted.into_iter().zip(lengths);
        FaultFigures {
            spans,
            periods: periods
                .map(|(counted, length)| PeriodFigures {
                    length,
                    grants: counted.grants,
                    errors: counted.errors,
                    response: counted.response.finished(),
                })
                .collect(),
            crashes: self.crashes,
            dropped_renewals: self.dropped_renewals,
            time_to_know: self.time_to_know,
        }
    }
}

impl Recorder {
    /// While a fault lasts, nobody may be granted anything: that is no stall of a key.
    pub(super) fn excuse_stalls(&mut self, now: Nanos) {
        let open = now.since(self.window.start);
        let periods = self.periods.as_deref();
        if periods.is_some_and(|periods| periods.at(open) == Period::During) {
            let client = self.first_client;
            self.judge.record(now, Judged::DriverStalled { client });
        }
    }

    /// A client has crashed; it left a lock behind that nobody can release for `left`.
    pub(crate) fn crashed(&mut self, client: u32, left: Nanos) {
        if let Some(nodes) = &mut self.nodes {
            nodes.forget(client);
        }
        self.counters.orphan_ns = self.counters.orphan_ns.saturating_add(left.0);
        if let Some(periods) = &mut self.periods {
            periods.crashes += 1;
        }
    }

    /// A renewal was sent and lost on purpose.
    pub(crate) fn dropped_renewal(&mut self) {
        if let Some(periods) = &mut self.periods {
            periods.dropped_renewals += 1;
        }
    }

    /// The client whose grant began at `granted` was told at `now` that its lease has ended at `until`, or noticed it.
    #[inline]
    pub(crate) fn knew(&mut self, client: u32, granted: Nanos, until: Nanos, now: Nanos) {
        let start = self.window.start;
        if let Some(periods) = &mut self.periods
            && now >= start
        {
            periods.knew(client, granted.since(start), until.since(start), now.since(start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn periods() -> Periods {
        *Periods::of(&[(ms(10), ms(20)), (ms(30), ms(30)), (ms(40), ms(90))]).expect("there are faults")
    }

    #[test]
    fn a_grant_counts_in_the_period_in_which_it_happens() {
        let mut periods = periods();
        for open in [0, 9, 10, 19, 20, 30, 39, 40] {
            periods.granted(ms(open), (open != 9).then(|| ms(1)));
        }
        periods.failed(ms(15));
        let figures = periods.finish(ms(50), Vec::new());
        let of = |pick: fn(&PeriodFigures) -> u64| figures.periods.iter().map(pick).collect::<Vec<_>>();
        assert_eq!(of(|period| period.grants), [2, 3, 3]);
        assert_eq!(of(|period| period.errors), [0, 1, 0]);
        assert_eq!(of(|period| period.response.len()), [1, 3, 3]);
        assert_eq!(of(|period| period.length.0 / 1_000_000), [10, 20, 20]);
    }

    #[test]
    fn a_trial_without_faults_keeps_no_record() {
        assert!(Periods::of(&[]).is_none());
    }

    #[test]
    fn only_a_loss_that_a_fault_disturbed_has_a_time_to_know() {
        let mut periods = periods();
        periods.knew(1, ms(0), ms(5), ms(9));
        periods.knew(2, ms(0), ms(5), ms(12));
        periods.knew(2, ms(0), ms(5), ms(13));
        periods.knew(3, ms(0), ms(15), ms(12));
        periods.knew(4, ms(21), ms(25), ms(29));
        assert_eq!(periods.finish(ms(50), Vec::new()).time_to_know, [ms(7)]);
    }

    #[test]
    fn threads_add_up() {
        let span = |began, ended| FaultSpan {
            began: Some(ms(began)),
            ended: Some(ms(ended)),
        };
        let of_thread = |open, span| {
            let mut periods = periods();
            periods.crashes = 1;
            periods.granted(ms(open), Some(ms(1)));
            periods.finish(ms(50), vec![span])
        };
        let mut sum = of_thread(0, span(3, 7));
        sum.add(of_thread(15, span(2, 5)));
        sum.add(of_thread(16, FaultSpan::default()));
        assert_eq!((sum.crashes, sum.spans.as_slice()), (3, &[span(2, 7)][..]));
        let grants: Vec<u64> = sum.periods.iter().map(|period| period.grants).collect();
        assert_eq!(grants, [1, 2, 0]);
        assert_eq!(sum.periods[1].response.len(), 2);
    }

    #[test]
    fn threads_add_up_where_the_core_carries_out_no_fault_of_its_own() {
        let of_thread = |open| {
            let mut periods = periods();
            periods.granted(ms(open), Some(ms(1)));
            periods.finish(ms(50), Vec::new())
        };
        let mut sum = FaultFigures::default();
        for open in [0, 15, 16] {
            sum.add(of_thread(open));
        }
        let grants: Vec<u64> = sum.periods.iter().map(|period| period.grants).collect();
        assert_eq!(grants, [1, 2, 0]);
    }
}
