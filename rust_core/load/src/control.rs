//! What the threads of a trial share: the gates that they pass together, the request to stop, and their progress.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locks::Nanos;

use crate::clock;
use crate::live::Live;
use crate::recorder::warming::Warming;

/// A stop may come between the check and the wait of a thread at the gate.
const STOP_SEEN_WITHIN: Nanos = Nanos::from_millis(20);

/// The phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialPhase {
    Connecting,
    /// Connected, and waits for the time at which all processes of the trial begin.
    Ready,
    Warmup,
    Measuring,
    Draining,
    Done,
}

impl TrialPhase {
    const ALL: [Self; 6] = [
        Self::Connecting,
        Self::Ready,
        Self::Warmup,
        Self::Measuring,
        Self::Draining,
        Self::Done,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Warmup => "warmup",
            Self::Measuring => "measuring",
            Self::Draining => "draining",
            Self::Done => "done",
        }
    }
}

/// A snapshot of a running trial.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub phase: TrialPhase,
    pub elapsed: Nanos,
    pub grants: u64,
    pub grants_per_s: f64,
    /// The highest p99 of the last step over all threads.
    pub p99: Nanos,
    pub errors: u64,
    pub reconnects: u64,
}

/// The progress of one thread, written at every step of the time line.
#[derive(Debug, Default)]
pub(crate) struct ThreadProgress {
    pub(crate) grants: AtomicU64,
    /// In the last step.
    pub(crate) grants_per_s: AtomicU64,
    pub(crate) p99_ns: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) reconnects: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Control {
    stop: AtomicBool,
    phase: AtomicU8,
    phase_began: AtomicU64,
    window_start: AtomicU64,
    window_end: AtomicU64,
    pub(crate) threads: Vec<ThreadProgress>,
    pub(crate) live: Live,
    pub(crate) warming: Warming,
    /// Whether the gate opens only at a time that somebody outside sets.
    opened_from_outside: bool,
    gate: Mutex<Gate>,
    opened: Condvar,
}

#[derive(Debug)]
struct Gate {
    waiting: usize,
    passed: u64,
    opened_at: Nanos,
    /// The time that was set from outside.
    begins: Option<Nanos>,
}

impl Control {
    pub(crate) fn new(threads: u32) -> Self {
        Self {
            stop: AtomicBool::new(false),
            phase: AtomicU8::new(0),
            phase_began: AtomicU64::new(clock::now().0),
            window_start: AtomicU64::new(u64::MAX),
            window_end: AtomicU64::new(u64::MAX),
            threads: (0..threads).map(|_| ThreadProgress::default()).collect(),
            live: Live::new(threads as usize),
            warming: Warming::default(),
            opened_from_outside: false,
            gate: Mutex::new(Gate {
                waiting: 0,
                passed: 0,
                opened_at: Nanos::ZERO,
                begins: None,
            }),
            opened: Condvar::new(),
        }
    }

    /// The same, with a warm-up until steady of at most `longest`.
    pub(crate) fn until_steady(self, longest: Nanos) -> Self {
        Self {
            warming: Warming::until_steady(longest),
            ..self
        }
    }

    /// The same, whose gate opens only when `begin_at` was called.
    pub(crate) fn begun_from_outside(self) -> Self {
        Self {
            opened_from_outside: true,
            ..self
        }
    }

    /// Lets the threads pass the gate with this time, once all have arrived. The first call counts.
    pub(crate) fn begin_at(&self, at: Nanos) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.begins.get_or_insert(at);
        self.open_if_all_wait(&mut gate);
    }

    fn open_if_all_wait(&self, gate: &mut Gate) {
        if gate.waiting < self.threads.len() {
            return;
        }
        let Some(at) = gate.begins.or_else(|| (!self.opened_from_outside).then(clock::now)) else {
            return self.enter(TrialPhase::Ready, clock::now());
        };
        gate.waiting = 0;
        gate.passed += 1;
        gate.opened_at = at;
        self.opened.notify_all();
    }

    /// Ends the trial early; harmless after its end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.opened.notify_all();
    }

    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until all threads have arrived, and for the time that was set from outside; all get the same time. `None`
    /// when the trial was stopped.
    pub(crate) fn pass_gate(&self) -> Option<Nanos> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let round = gate.passed;
        gate.waiting += 1;
        self.open_if_all_wait(&mut gate);
        while gate.passed == round && !self.stopped() {
            gate = self.wait(gate, STOP_SEEN_WITHIN);
        }
        let opened_at = gate.opened_at;
        while gate.passed > round && !self.stopped() {
            let left = opened_at.since(clock::now());
            if left == Nanos::ZERO {
                return Some(opened_at);
            }
            gate = self.wait(gate, left.min(STOP_SEEN_WITHIN));
        }
        None
    }

    fn wait<'a>(&'a self, gate: MutexGuard<'a, Gate>, at_most: Nanos) -> MutexGuard<'a, Gate> {
        let waited = self.opened.wait_timeout(gate, Duration::from_nanos(at_most.0));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn enter(&self, phase: TrialPhase, at: Nanos) {
        self.phase_began.store(at.0, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Sets the window, before any event in it. All threads that set it set the same times.
    pub(crate) fn set_window(&self, start: Nanos, end: Nanos) {
        self.window_end.store(end.0, Ordering::Release);
        self.window_start.store(start.0, Ordering::Release);
    }

    /// Start and end of the window; `NEVER` before it is known.
    pub(crate) fn window(&self) -> (Nanos, Nanos) {
        let start = Nanos(self.window_start.load(Ordering::Acquire));
        (start, Nanos(self.window_end.load(Ordering::Acquire)))
    }

    pub(crate) fn progress(&self) -> Progress {
        let sum = |pick: fn(&ThreadProgress) -> &AtomicU64| -> u64 {
            self.threads
                .iter()
                .map(|thread| pick(thread).load(Ordering::Relaxed))
                .sum()
        };
        let p99 = self
            .threads
            .iter()
            .map(|thread| thread.p99_ns.load(Ordering::Relaxed))
            .max();
        Progress {
            phase: TrialPhase::ALL[usize::from(self.phase.load(Ordering::Relaxed))],
            elapsed: clock::now().since(Nanos(self.phase_began.load(Ordering::Relaxed))),
            grants: sum(|thread| &thread.grants),
            grants_per_s: sum(|thread| &thread.grants_per_s) as f64,
            p99: Nanos(p99.unwrap_or(0)),
            errors: sum(|thread| &thread.errors),
            reconnects: sum(|thread| &thread.reconnects),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn all_threads_pass_a_gate_with_the_same_point() {
        let control = Arc::new(Control::new(3));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let control = Arc::clone(&control);
                std::thread::spawn(move || (control.pass_gate(), control.pass_gate()))
            })
            .collect();
        let passed: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect();
        assert!(
            passed
                .iter()
                .all(|gates| *gates == passed[0] && gates.0.is_some() && gates.1 >= gates.0)
        );
    }

    #[test]
    fn a_gate_that_is_opened_from_outside_waits_for_all_threads_and_for_its_time() {
        let control = Arc::new(Control::new(2).begun_from_outside());
        let pass = || {
            let control = Arc::clone(&control);
            std::thread::spawn(move || (control.pass_gate(), clock::now()))
        };
        let first = pass();
        let at = clock::now().after(Nanos::from_millis(30));
        control.begin_at(at);
        control.begin_at(Nanos::ZERO);
        std::thread::sleep(Duration::from_millis(40));
        assert!(!first.is_finished() && control.progress().phase == TrialPhase::Connecting);
        for thread in [first, pass()] {
            let (began, passed) = thread.join().expect("no thread panics");
            assert!(began == Some(at) && passed >= at);
        }
    }

    #[test]
    fn threads_that_all_wait_for_a_time_say_so_and_no_thread_is_early() {
        let control = Arc::new(Control::new(1).begun_from_outside());
        let thread = {
            let control = Arc::clone(&control);
            std::thread::spawn(move || (control.pass_gate(), clock::now()))
        };
        let since = clock::now();
        while control.progress().phase != TrialPhase::Ready {
            assert!(clock::now().since(since) < Nanos::from_secs(20), "it never says so");
            std::thread::yield_now();
        }
        let at = clock::now().after(Nanos::from_millis(30));
        control.begin_at(at);
        let (began, passed) = thread.join().expect("no thread panics");
        assert!(began == Some(at) && passed >= at);
    }

    #[test]
    fn a_stop_opens_the_gate_for_those_who_wait_in_vain() {
        let control = Arc::new(Control::new(2));
        let waiting = {
            let control = Arc::clone(&control);
            std::thread::spawn(move || control.pass_gate())
        };
        control.stop();
        assert_eq!(waiting.join().expect("no thread panics"), None);
    }
}
