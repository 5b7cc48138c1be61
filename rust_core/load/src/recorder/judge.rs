//! Connects the threads with the checker: a single thread calls it directly, several threads write to one ring each.
//!
//! A separate thread empties the rings and merges their events in the order of their stamps, up to the lowest
//! watermark: the time before which no thread has any further event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use check::{Checker, Event, Merge, Report, Rules};
use hdrhistogram::Histogram;
use locks::{Key, Nanos};
use rtrb::{Consumer, Producer, RingBuffer};

use super::recording::RecordedJudge;
use super::stats::histogram;
use crate::clock;
use crate::control::Control;
use crate::live::Found;

/// How many events a thread may be ahead of the checker before it has to wait.
pub(crate) const RING: usize = 1 << 16;

/// The verdict of a trial, and its hand-overs in the window.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) report: Report,
    pub(crate) handoff: Histogram<u64>,
    /// CPU time of the checker's own thread within the window; zero when it had none.
    pub(crate) cpu: Nanos,
    /// When the verdict was given.
    pub(crate) ended: Nanos,
}

#[derive(Debug)]
pub(crate) enum Judge {
    Inline(Box<WindowedChecker>),
    Ring(RingEnd),
    /// For locks that exclude nobody: there is no belief to judge.
    NotJudged,
    /// Its events are recorded, and judged after the trial together with those of other processes.
    Later,
    /// One of the others, whose events are recorded first.
    Recorded(Box<RecordedJudge>),
}

impl Judge {
    #[inline]
    pub(crate) fn record(&mut self, at: Nanos, event: Event) {
        if cfg!(feature = "bare") {
            return;
        }
        #[cfg(test)]
        crate::replay::HEARD.with_borrow_mut(|heard| {
            heard.lines += 1;
            heard.add(format!("{at:?} {event:?}\n").as_bytes());
        });
        match self {
            Self::Recorded(recorded) => recorded.record(at, event),
            judge => judge.pass_on(at, event),
        }
    }

    #[inline]
    pub(crate) fn pass_on(&mut self, at: Nanos, event: Event) {
        match self {
            Self::Inline(checker) => checker.handle(at, event),
            Self::Ring(ring) => ring.push(at, event),
            Self::NotJudged | Self::Later => {}
            Self::Recorded(_) => unreachable!("a recorded judge is none of another"),
        }
    }

    /// Prefetches the records for the next event of `client` on `key`.
    #[inline]
    pub(crate) fn touch(&self, client: u32, key: Key) {
        if cfg!(feature = "bare") {
            return;
        }
        let judge = match self {
            Self::Recorded(recorded) => &recorded.judge,
            judge => judge,
        };
        if let Self::Inline(checker) = judge {
            checker.inner.touch(client, key);
        }
    }

    /// What the checker has found so far, if this thread calls it.
    pub(crate) fn found(&self) -> Option<Found> {
        match self {
            Self::Inline(checker) => Some(checker.found()),
            Self::Recorded(recorded) => recorded.judge.found(),
            Self::Ring(_) | Self::NotJudged | Self::Later => None,
        }
    }

    /// The verdict, if the thread called the checker directly.
    pub(crate) fn finish(self, at: Nanos) -> Option<Judged> {
        match self {
            Self::Inline(checker) => Some(checker.finish(at)),
            Self::Ring(_) | Self::NotJudged | Self::Later | Self::Recorded(_) => None,
        }
    }

    /// Promises that no event before `at` follows; after `NEVER`, none at all.
    #[inline]
    pub(crate) fn reached(&self, at: Nanos) {
        let judge = match self {
            Self::Recorded(recorded) => &recorded.judge,
            judge => judge,
        };
        if let Self::Ring(ring) = judge {
            ring.watermark.store(at.0, Ordering::Release);
        }
    }
}

/// The checker, and the window for which it keeps figures.
#[derive(Debug)]
pub(crate) struct WindowedChecker {
    inner: Checker,
    control: Arc<Control>,
    window: Window,
    handoff: Histogram<u64>,
    /// CPU time of the thread that calls the checker: at the start of the window, and over its length.
    cpu_began: Nanos,
    cpu: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Before,
    Within { end: Nanos },
    After,
}

impl WindowedChecker {
    pub(crate) fn new(clients: u32, keys: u32, rules: Rules, control: Arc<Control>) -> Self {
        Self {
            inner: Checker::new(clients, keys, rules),
            control,
            window: Window::Before,
            handoff: histogram(),
            cpu_began: Nanos::ZERO,
            cpu: Nanos::ZERO,
        }
    }

    fn found(&self) -> Found {
        Found {
            counts: self.inner.counts(),
            violations: self.inner.violations().to_vec(),
        }
    }

    #[inline]
    pub(crate) fn handle(&mut self, at: Nanos, event: Event) {
        match self.window {
            Window::Before => {
                let (start, end) = self.control.window();
                if at >= start {
                    self.inner.begin_window(start);
                    self.window = Window::Within { end };
                    self.cpu_began = clock::thread_cpu();
                }
            }
            Window::Within { end } if at >= end => {
                self.inner.end_window(end);
                self.window = Window::After;
                self.cpu = clock::thread_cpu().since(self.cpu_began);
            }
            Window::Within { .. } | Window::After => {}
        }
        if let Some(handoff) = self.inner.on(at, event)
            && matches!(self.window, Window::Within { .. })
        {
            self.handoff.saturating_record(handoff.0);
        }
    }

    pub(crate) fn finish(self, at: Nanos) -> Judged {
        Judged {
            report: self.inner.finish(at),
            handoff: self.handoff,
            cpu: Nanos::ZERO,
            ended: at,
        }
    }
}

/// The writing end of a thread's ring.
#[derive(Debug)]
pub(crate) struct RingEnd {
    events: Producer<(Nanos, Event)>,
    watermark: Arc<AtomicU64>,
}

impl RingEnd {
    fn push(&mut self, at: Nanos, event: Event) {
        let mut item = (at, event);
        while let Err(rtrb::PushError::Full(back)) = self.events.push(item) {
            assert!(!self.events.is_abandoned(), "the checker has ended");
            item = back;
            std::thread::yield_now();
        }
    }
}

impl Drop for RingEnd {
    // A thread that has ended, or panicked, must not hold back the others.
    fn drop(&mut self) {
        self.watermark.store(u64::MAX, Ordering::Release);
    }
}

/// What a thread told its judge, for whoever judges it.
#[derive(Debug)]
pub struct Heard(Source);

impl Heard {
    /// As many events as a thread tells between two looks of a simulator.
    const ROOM: usize = 1 << 12;

    pub(crate) fn new() -> (Judge, Self) {
        let (end, source) = ring(Self::ROOM);
        (Judge::Ring(end), Self(source))
    }

    /// Takes everything that was told since the last look, in order.
    pub fn take(&mut self, mut each: impl FnMut(Nanos, Event)) {
        while let Ok((at, event)) = self.0.events.pop() {
            each(at, event);
        }
    }
}

/// The reading end of a ring, for the checker.
#[derive(Debug)]
pub(crate) struct Source {
    events: Consumer<(Nanos, Event)>,
    watermark: Arc<AtomicU64>,
}

/// A ring with room for so many events, which one thread writes and the checker reads.
pub(crate) fn ring(room: usize) -> (RingEnd, Source) {
    let (producer, consumer) = RingBuffer::new(room);
    let watermark = Arc::new(AtomicU64::new(0));
    let source = Source {
        events: consumer,
        watermark: Arc::clone(&watermark),
    };
    (
        RingEnd {
            events: producer,
            watermark,
        },
        source,
    )
}

/// The loop of the checker's thread, until all rings are finished.
pub(crate) fn merge(mut checker: WindowedChecker, mut sources: Vec<Source>) -> Judged {
    let mut merge = Merge::new(sources.len(), RING);
    let mut open = sources.len();
    let mut answered = 0;
    while open > 0 {
        open = 0;
        for (index, source) in sources.iter_mut().enumerate() {
            // The watermark is read first: an event that is pushed later is not earlier than it.
            let watermark = Nanos(source.watermark.load(Ordering::Acquire));
            while let Ok((at, event)) = source.events.pop() {
                merge.push(index, at, event);
            }
            if watermark == Nanos::NEVER {
                merge.finish(index);
            } else {
                merge.watermark(index, watermark);
                open += 1;
            }
        }
        merge.drain(|at, event| checker.handle(at, event));
        let asked = checker.control.live.asked();
        if asked != answered {
            answered = asked;
            checker.control.live.found(checker.found());
        }
        if open > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let cpu = checker.cpu;
    Judged {
        cpu,
        ..checker.finish(clock::now())
    }
}
