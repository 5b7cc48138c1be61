//! The window: when it opens and closes, and what is counted of the steps under way at either moment.
//!
//! ```text
//!            start                       end
//!   warm-up    │          window          │   drain
//!   ───────────┼──────────────────────────┼─────────
//!        due ──┼──▶ granted               │            a grant; its latency is no sample
//!              │   due ──▶ granted        │            a grant and a sample
//!              │             due ─────────┼──▶ granted no grant; a sample "waiting" of end - due
//!        due ──┼──────────────────────────┼──▶         the same: it waited for the whole window, and before
//! ```
//! The clients go on from the warm-up into the window: draining them first would empty all queues, and the window would
//! begin with an idle lock. All threads know start and end from the gate on.
//!
//! Promises: grants, commands, attempts and ends of acquires count when they happen within the window, and exactly
//! once. A latency is a sample when its acquire was due within the window, or still waits at its end. Every clock
//! reading that stamps anything goes through `read_clock`, so that the window opens and closes before the first stamp
//! that lies beyond.

use check::Event;
use locks::{LockMachine, Nanos};

use crate::client::{Client, Doing};
use crate::clock;
use crate::control::TrialPhase;
use crate::stats::{Counters, Ended, Phase};
use crate::thread::Thread;

/// Longer than any sleep of the loop. A key counts as stalled only after at least a reply timeout, which is 1 s.
const LONG_STALL: Nanos = Nanos::from_millis(100);

/// The window of one thread.
#[derive(Debug)]
pub(crate) struct Window {
    /// Known from the gate on, `NEVER` before.
    pub(crate) start: Nanos,
    /// Half-open: what happens at this time or later is not counted.
    pub(crate) end: Nanos,
    /// The length; zero until the window has closed.
    pub(crate) length: Nanos,
    /// When the window opens, has its next step, or closes.
    pub(crate) turns_at: Nanos,
    /// What the acquires under way at the start had tried before, in sum and by client.
    before: Counters,
    attempts_before: Vec<u32>,
    pub(crate) longest: Longest,
    /// When the loop last checked its sockets and timers.
    pub(crate) last_look: Nanos,
    /// When the loop last read the clock: many times between two checks.
    last_reading: Nanos,
}

impl Window {
    pub(crate) fn new(clients: u32) -> Self {
        Self {
            start: Nanos::NEVER,
            end: Nanos::ZERO,
            length: Nanos::ZERO,
            turns_at: Nanos::NEVER,
            before: Counters::default(),
            attempts_before: vec![0; clients as usize],
            longest: Longest::default(),
            last_look: Nanos::ZERO,
            last_reading: Nanos::ZERO,
        }
    }
}

/// The longest times in the window; of several threads, the longest of any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Longest {
    /// How long the loop did not check its sockets and timers, beyond its planned sleep.
    pub(crate) stall: Nanos,
    /// How long an arrival had queued for a client when the window closed.
    pub(crate) queued: Nanos,
}

impl Longest {
    pub(crate) fn of_both(self, other: Self) -> Self {
        Self {
            stall: self.stall.max(other.stall),
            queued: self.queued.max(other.queued),
        }
    }
}

impl Thread {
    /// Sets when the window will be.
    pub(crate) fn expect_window(&mut self, start: Nanos, end: Nanos) {
        self.window.start = start;
        self.window.end = end;
        self.window.turns_at = start;
        self.control.set_window(start, end);
    }

    /// The current time, after the window was opened or closed if it was time.
    #[inline]
    pub(crate) fn read_clock(&mut self) -> Nanos {
        let now = clock::now();
        self.has_read(now);
        now
    }

    /// Reports a standstill to the checker before anything is stamped with its end: the standstill may lie between a
    /// read from a socket and the stamp of what was read.
    #[inline]
    pub(crate) fn has_read(&mut self, now: Nanos) {
        if now.since(self.window.last_reading) > LONG_STALL {
            let client = self.first_client;
            self.judge.record(now, Event::DriverStalled { client });
        }
        self.window.last_reading = now;
        if now >= self.window.turns_at {
            self.turn(now);
        }
    }

    /// Opens the window, begins a step of its time line, or closes it: whatever was due by `now`.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Nanos) {
        if !self.counting {
            self.open_window();
        }
        while self.timeline.next_step() <= now && self.timeline.next_step() < self.window.end {
            self.publish();
            self.timeline.push();
        }
        self.window.turns_at = self.timeline.next_step().min(self.window.end);
        if now >= self.window.end {
            self.close_window(self.window.end);
        }
    }

    fn open_window(&mut self) {
        self.control.enter(TrialPhase::Measuring, self.window.start);
        self.timeline.begin(self.window.start);
        self.counters.client_cpu_ns = clock::thread_cpu().0;
        self.counting = true;
        self.note_attempts_before();
        self.counters.nominal_hold_ns += self.nominal_holds_beyond(self.window.start);
    }

    /// Ends the counting at `end`: the planned end, or earlier when the trial was stopped.
    pub(crate) fn close_window(&mut self, end: Nanos) {
        // Arrivals that became due while the loop did not check are still within the window.
        self.take_arrivals(Nanos(end.0.saturating_sub(1)));
        self.counters.client_cpu_ns = clock::thread_cpu().0 - self.counters.client_cpu_ns;
        self.publish();
        self.count_unfinished(end);
        self.leave_out_attempts_before();
        self.counters.nominal_hold_ns -= self.nominal_holds_beyond(end);
        self.counting = false;
        self.window.turns_at = Nanos::NEVER;
        self.window.end = end;
        self.window.length = end.since(self.window.start);
    }

    /// Whether `due` lies within the window, which is open.
    #[inline]
    pub(crate) fn was_due_within(&self, due: Nanos) -> bool {
        due >= self.window.start
    }

    /// Records how late the loop checks again, compared with `planned`, as far as that lies in the window.
    #[inline]
    pub(crate) fn note_stall(&mut self, planned: Nanos, now: Nanos) {
        let stall = now.min(self.window.end).since(planned.max(self.window.start));
        self.window.longest.stall = self.window.longest.stall.max(stall);
    }

    /// Whether an acquire is under way. A try of an optimistic lock is not a grant yet.
    fn is_acquiring(&self, client: &Client) -> bool {
        let tries = self.params.strategy.is_optimistic();
        client.doing == Doing::Acquiring || (tries && !client.is_at_rest())
    }

    /// Records what the acquires under way have tried before the window, because at their ends they are counted in
    /// full.
    fn note_attempts_before(&mut self) {
        for index in 0..self.clients.len() {
            if !self.is_acquiring(&self.clients[index]) {
                continue;
            }
            let lock = &self.clients[index].lock;
            let attempts = lock.attempts();
            self.window.attempts_before[index] = attempts;
            self.window.before.attempts += u64::from(attempts);
            self.window.before.refused_attempts += u64::from(attempts.saturating_sub(1));
            self.window.before.no_quorum += u64::from(lock.no_quorum_attempts());
            self.window.before.conflicts += u64::from(lock.conflicts());
        }
    }

    /// Subtracts what was tried before the window.
    fn leave_out_attempts_before(&mut self) {
        self.counters.attempts -= self.window.before.attempts;
        self.counters.refused_attempts -= self.window.before.refused_attempts;
        self.counters.no_quorum -= self.window.before.no_quorum;
        self.counters.conflicts -= self.window.before.conflicts;
        for (figures, &before) in self.figures.iter_mut().zip(&self.window.attempts_before) {
            figures.attempts -= u64::from(before);
        }
    }

    /// What is left at `at` of all holds under way, as the workload wants them.
    fn nominal_holds_beyond(&self, at: Nanos) -> u64 {
        if self.params.strategy.is_optimistic() {
            return 0; // Their holds count when they have become grants.
        }
        let holding = |client: &&Client| matches!(client.doing, Doing::Entering | Doing::Holding | Doing::Releasing);
        let holders = self.clients.iter().filter(holding);
        holders
            .map(|client| client.granted.after(client.hold).since(at).0)
            .sum()
    }

    /// Counts the clients that still wait when the window closes: the waiting time so far is a lower bound of their
    /// wait.
    pub(crate) fn count_unfinished(&mut self, end: Nanos) {
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            if !self.is_acquiring(client) {
                continue;
            }
            let (due, sent) = (client.due, client.sent);
            self.counters.unfinished += 1;
            let attempts = self.count_attempts(index as u32);
            self.counters.refused_attempts += attempts.saturating_sub(1);
            let figures = &mut self.figures[index];
            figures.wait_max_ns = figures.wait_max_ns.max(end.since(due).0);
            self.histograms.record(Phase::Response, Ended::Waiting, end.since(due));
            if self.arrivals.is_some() {
                self.histograms.record(Phase::Service, Ended::Waiting, end.since(sent));
            }
        }
        for &due in &self.queue {
            self.counters.unfinished += 1;
            self.window.longest.queued = self.window.longest.queued.max(end.since(due));
            self.histograms.record(Phase::Response, Ended::Waiting, end.since(due));
        }
    }
}

#[cfg(test)]
mod tests;
