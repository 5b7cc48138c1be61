//! What a running trial is asked from outside: to hand over what it has counted, and to change its load.
//!
//! Whoever asks leaves the question here and counts it; a thread compares that count with what it has answered, once a
//! round. Counters are handed over as they stand, and whoever asks subtracts what it knows already. A histogram is
//! swapped for an empty one that whoever asks has made: the loop copies nothing, and allocates nothing.
//!
//! Promises: asking waits for no server, and for at most `ANSWERED_WITHIN`; every count is handed over exactly once,
//! now or with a later question; the loop waits for nobody.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use check::{Violation, ViolationCounts};
use locks::Nanos;
use wire::KeyNames;

use crate::TrialError;
use crate::recorder::stats::{Counters, Histograms};
use crate::spec::Pace;
use crate::trial::Trial;

/// An idle thread looks every 20 ms.
const ANSWERED_WITHIN: Duration = Duration::from_millis(50);

/// No number of clients: a trial has fewer.
const NOT_ASKED: u32 = u32::MAX;

/// How much load there is from now on, in the whole trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// So many clients work in a closed loop.
    /// `None` as long as nobody has asked for a number.
    pub(crate) clients: Option<u32>,
    /// Arrivals a second in an open one; `None` as long as nobody has asked for a rate.
    pub(crate) rate_per_s: Option<f64>,
}

/// What was counted since the last `Trial::drain`.
#[derive(Debug)]
pub struct Drained {
    pub counters: Counters,
    pub histograms: Histograms,
    pub counts: ViolationCounts,
    /// Those of them that the checker describes: it describes the first 100 of a trial.
    pub violations: Vec<Violation>,
    /// When the trial began: the times of violations count from here.
    pub began: Nanos,
    pub names: KeyNames,
    /// As in `Measured`.
    pub keys_per_grant: u32,
}

/// While it runs.
impl Trial {
    /// What was counted in the window since the last call, and what the checker has found: counters, histograms of the
    /// clients' steps, violations. Exact: each count comes once, with this call or a later one. Before the window only
    /// what is counted in the whole trial; after the end what was left. `nominal_hold_ns` comes with the last one.
    pub fn drain(&self) -> Drained {
        let live = &self.control.live;
        let mut part = live.drain();
        if self.spec.pace == Pace::Closed {
            part.histograms.copy_response_to_service();
        }
        Drained {
            counters: part.counters,
            histograms: part.histograms,
            counts: part.found.counts,
            violations: part.found.violations,
            began: Nanos(live.began.load(Ordering::Relaxed)),
            names: KeyNames::new(&self.spec.key_prefix, self.spec.keys),
            keys_per_grant: self.spec.keys_per_grant,
        }
    }

    /// From now on so many clients work, at most as many as the trial has. The others finish what they do first.
    ///
    /// # Errors
    /// In an open loop, or when the trial has fewer clients.
    pub fn set_concurrency(&self, clients: u32) -> Result<(), TrialError> {
        if self.spec.pace != Pace::Closed || clients > self.spec.concurrency {
            return Err(TrialError::Field("concurrency"));
        }
        self.control.live.set_clients(clients);
        Ok(())
    }

    /// From now on arrivals come at this rate; 0: none.
    ///
    /// # Errors
    /// In a closed loop, or when the rate is negative or no number.
    pub fn set_rate(&self, per_s: f64) -> Result<(), TrialError> {
        if self.spec.pace == Pace::Closed || !(per_s.is_finite() && per_s >= 0.0) {
            return Err(TrialError::Field("rate"));
        }
        self.control.live.set_rate(per_s);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Live {
    /// How many questions there were.
    asked: AtomicU64,
    clients: AtomicU32,
    began: AtomicU64,
    /// The bits of the rate; those of a NaN as long as there is none.
    rate_bits: AtomicU64,
    handed: Mutex<Handed>,
    answered: Condvar,
}

#[derive(Debug)]
struct Handed {
    /// For each thread the last question that it has answered; `u64::MAX` once it has ended.
    answers: Vec<u64>,
    /// For each thread an empty histogram to swap with, if it is asked for its own.
    empty: Vec<Option<Histograms>>,
    counters: Vec<Counters>,
    /// Handed over, and not drained yet.
    histograms: Vec<Histograms>,
    found: Found,
    /// What was drained so far.
    drained: Counters,
    drained_histograms: Histograms,
    drained_counts: ViolationCounts,
    drained_violations: usize,
}

/// What is new since the last drain.
struct Part {
    counters: Counters,
    histograms: Histograms,
    found: Found,
}

/// What the checker has found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) counts: ViolationCounts,
    pub(crate) violations: Vec<Violation>,
}

impl Live {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            asked: AtomicU64::new(0),
            clients: AtomicU32::new(NOT_ASKED),
            began: AtomicU64::new(0),
            rate_bits: AtomicU64::new(f64::NAN.to_bits()),
            handed: Mutex::new(Handed {
                answers: vec![0; threads],
                empty: (0..threads).map(|_| None).collect(),
                counters: vec![Counters::default(); threads],
                histograms: Vec::new(),
                found: Found::default(),
                drained: Counters::default(),
                drained_histograms: Histograms::empty(),
                drained_counts: ViolationCounts::default(),
                drained_violations: 0,
            }),
            answered: Condvar::new(),
        }
    }

    pub(crate) fn begin(&self, at: Nanos) {
        self.began.store(at.0, Ordering::Relaxed);
    }

    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last question.
    #[inline]
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    // Whoever asks.

    pub(crate) fn set_clients(&self, clients: u32) {
        self.clients.store(clients, Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn set_rate(&self, per_s: f64) {
        self.rate_bits.store(per_s.to_bits(), Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Release);
    }

    /// What was counted since the last call. What a thread does not hand over in time comes with the next call.
    fn drain(&self) -> Part {
        let threads = self.handed().answers.len();
        let fresh: Vec<Histograms> = (0..threads).map(|_| Histograms::new()).collect();
        let mut handed = self.handed();
        for (empty, fresh) in handed.empty.iter_mut().zip(fresh) {
            empty.get_or_insert(fresh);
        }
        let question = self.asked.fetch_add(1, Ordering::Release) + 1;
        let until = Instant::now() + ANSWERED_WITHIN;
        while handed.answers.iter().any(|&answer| answer < question) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.answered.wait_timeout(handed, left);
            handed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        handed.take()
    }

    // The threads of the trial.

    pub(crate) fn load(&self) -> Load {
        let clients = self.clients.load(Ordering::Relaxed);
        let rate = f64::from_bits(self.rate_bits.load(Ordering::Relaxed));
        Load {
            clients: (clients != NOT_ASKED).then_some(clients),
            rate_per_s: (!rate.is_nan()).then_some(rate),
        }
    }

    /// A thread answers `question`: hands over what it has counted, if it is asked for that.
    pub(crate) fn answer(&self, thread: usize, question: u64, counters: &Counters, histograms: &mut Histograms) {
        let mut handed = self.handed();
        handed.answers[thread] = question;
        if let Some(empty) = handed.empty[thread].take() {
            handed.counters[thread] = *counters;
            handed.histograms.push(std::mem::replace(histograms, empty));
        }
        self.answered.notify_all();
    }

    /// The thread answers nothing more.
    pub(crate) fn ended(&self, thread: usize) {
        self.handed().answers[thread] = u64::MAX;
        self.answered.notify_all();
    }

    pub(crate) fn found(&self, found: Found) {
        self.handed().found = found;
    }

    /// The end of the trial: `counters` are those of all threads, `histograms` the rest of theirs. Adds to the
    /// histograms what was handed over before.
    pub(crate) fn finish(&self, counters: &Counters, histograms: &mut Histograms, found: Found) {
        let mut handed = self.handed();
        handed.counters.fill(Counters::default());
        handed.counters[0] = *counters;
        handed.histograms.push(histograms.clone());
        handed.found = found;
        let Handed {
            histograms: left,
            drained_histograms,
            ..
        } = &mut *handed;
        *histograms = drained_histograms.clone();
        for part in left {
            part.finish();
            histograms.add(part);
        }
    }
}

impl Handed {
    fn take(&mut self) -> Part {
        let mut histograms = Histograms::empty();
        for mut part in self.histograms.drain(..) {
            part.finish();
            histograms.add(&part);
        }
        self.drained_histograms.add(&histograms);
        let mut counters = Counters::default();
        for of_thread in &self.counters {
            counters.add(of_thread);
        }
        let violations = self.found.violations.get(self.drained_violations..).unwrap_or_default();
        let part = Part {
            counters: counters.since(&self.drained),
            histograms,
            found: Found {
                counts: self.found.counts.since(&self.drained_counts),
                violations: violations.to_vec(),
            },
        };
        self.drained = counters;
        self.drained_counts = self.found.counts;
        self.drained_violations = self.found.violations.len();
        part
    }
}
