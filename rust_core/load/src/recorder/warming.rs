//! A warm-up until steady: when the window opens.
//!
//! Each thread adds the grants and the p99 of each of its steps to those of the other threads. The last thread to add a
//! step looks whether all steps so far are steady, and then sets the window. The window begins at the end of a later
//! step, and every thread looks at the end of each step, so all threads learn of it before it begins. A thread that stood
//! still meanwhile looks before it stamps anything.
//!
//! Does not do: deciding what is steady; see `steadiness.rs`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use locks::Nanos;

use super::Recorder;
use super::stats::STEP;
use super::steadiness::is_steady;

/// How long before its begin a window is set at the latest.
const NOTICE: Nanos = Nanos::from_millis(20);

/// What the threads share. Without steps the warm-up has a fixed length.
#[derive(Debug, Default)]
pub(crate) struct Warming {
    steps: Vec<Step>,
    ended: OnceLock<Warmed>,
}

/// One step, of all threads that have added theirs.
#[derive(Debug, Default)]
struct Step {
    grants: AtomicU64,
    p99_ns: AtomicU64,
    threads: AtomicU32,
}

/// How a warm-up until steady ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warmed {
    pub steady: bool,
    pub length: Nanos,
}

impl Warming {
    /// For a warm-up of at most `longest`; all its memory is reserved here.
    pub(crate) fn until_steady(longest: Nanos) -> Self {
        Self {
            steps: (0..longest.0 / STEP.0).map(|_| Step::default()).collect(),
            ended: OnceLock::new(),
        }
    }

    pub(crate) fn ended(&self) -> Option<Warmed> {
        self.ended.get().copied()
    }

    /// Adds a step of one thread. With the last of `threads` threads, whether the steps up to this one end the warm-up,
    /// and whether they are steady.
    fn add(&self, index: usize, grants: u64, p99: Nanos, threads: u32) -> Option<bool> {
        let step = self.steps.get(index)?;
        step.grants.fetch_add(grants, Ordering::Relaxed);
        step.p99_ns.fetch_max(p99.0, Ordering::Relaxed);
        // Those who add later see what was added before.
        if step.threads.fetch_add(1, Ordering::AcqRel) + 1 < threads {
            return None;
        }
        let so_far = &self.steps[..=index];
        let column = |pick: fn(&Step) -> &AtomicU64| -> Vec<f64> {
            so_far
                .iter()
                .map(|step| pick(step).load(Ordering::Relaxed) as f64)
                .collect()
        };
        let steady = is_steady(&column(|step| &step.grants), &column(|step| &step.p99_ns));
        (steady || index + 2 >= self.steps.len()).then_some(steady)
    }
}

/// The warm-up of one thread.
#[derive(Debug)]
pub(super) struct WarmUp {
    began: Nanos,
    /// Of the window that follows.
    duration: Nanos,
}

impl Recorder {
    /// Begins a warm-up until steady, before a window of `duration`.
    pub(crate) fn warm_up(&mut self, began: Nanos, duration: Nanos) {
        self.timeline.begin(began);
        self.window.turn(self.timeline.next_step());
        self.window.end = Nanos::NEVER;
        self.warm_up = Some(WarmUp { began, duration });
    }

    /// A grant before the window.
    #[inline]
    pub(crate) fn granted_early(&mut self, response: Nanos) {
        if self.warm_up.is_some() {
            self.timeline.grant(response);
        }
    }

    /// Adds the steps that have ended by `now`. Whether the window opens.
    pub(super) fn has_warmed_up(&mut self, now: Nanos) -> bool {
        let Some(WarmUp { began, duration }) = self.warm_up else {
            return true;
        };
        while self.timeline.next_step() <= now {
            let index = (self.timeline.next_step().since(began).0 / STEP.0) as usize - 1;
            let (grants, p99) = self.timeline.running();
            let threads = self.control.threads.len() as u32;
            if let Some(steady) = self.control.warming.add(index, grants, p99, threads) {
                self.set_window(index, now, steady);
            }
            self.timeline.push();
        }
        let (start, end) = self.control.window();
        if start == Nanos::NEVER {
            self.window.turn(self.timeline.next_step());
            return false;
        }
        debug_assert!(end == start.after(duration), "all threads have the same window");
        self.warm_up = None;
        self.window.expect(start, end);
        now >= start
    }

    /// Sets the window of all threads, after step `index`: at the end of the next step, or of a later one if that is near.
    fn set_window(&self, index: usize, now: Nanos, steady: bool) {
        let Some(WarmUp { began, duration }) = &self.warm_up else {
            return;
        };
        let next = now.after(NOTICE).since(*began).0.div_ceil(STEP.0);
        let length = Nanos(STEP.0 * next.max(index as u64 + 2));
        if self.control.warming.ended.set(Warmed { steady, length }).is_ok() {
            let start = began.after(length);
            self.control.set_window(start, start.after(*duration));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_to_add_a_step_decides() {
        let warming = Warming::until_steady(Nanos::from_secs(3));
        for step in 0..19 {
            assert_eq!(warming.add(step, 50, Nanos(100), 2), None);
            assert_eq!(warming.add(step, 50, Nanos(100), 2), None, "twenty steps are needed");
        }
        assert_eq!(
            warming.add(19, 50, Nanos(100), 2),
            None,
            "the other thread has not added its step"
        );
        assert_eq!(warming.add(19, 50, Nanos(100), 2), Some(true));
    }

    #[test]
    fn a_warm_up_that_never_becomes_steady_ends_a_step_before_its_length() {
        let warming = Warming::until_steady(Nanos::from_secs(3));
        for step in 0..28 {
            assert_eq!(warming.add(step, step as u64 * 100, Nanos(100), 1), None);
        }
        assert_eq!(warming.add(28, 2_800, Nanos(100), 1), Some(false));
        assert_eq!(warming.add(30, 0, Nanos::ZERO, 1), None, "there are 30 steps");
    }
}
