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
//! begin with an idle lock. All threads know start and end from the gate on, or, with a warm-up until steady
//! (`warming.rs`), a step before the start.
//!
//! Promises: grants, commands, attempts and ends of acquires count when they happen within the window, and exactly
//! once. A latency is a sample when its acquire was due within the window, or still waits at its end. Every clock
//! reading that stamps anything goes through `Recorder::has_read`, so that the window opens and closes before the first
//! stamp that lies beyond.

use locks::{LockMachine, Nanos};

use super::Recorder;
use super::per_client::ClientFigures;
use super::stats::{Counters, Ended, Phase};
use crate::clients::{Clients, Tried};
use crate::control::TrialPhase;

/// The window of one thread.
#[derive(Debug)]
pub(crate) struct Window {
    /// Known from the gate on, `NEVER` before.
    pub(super) start: Nanos,
    /// Half-open: what happens at this time or later is not counted.
    pub(super) end: Nanos,
    /// The length; zero until the window has closed.
    pub(super) length: Nanos,
    /// When the window opens, has its next step, or closes.
    pub(super) turns_at: Nanos,
    /// As `turns_at`, or when a step of the commands ends: nobody wakes up for these.
    pub(super) looks_at: Nanos,
    /// What the acquires under way at the start had tried before, in sum and by client.
    before: Counters,
    attempts_before: Vec<u32>,
    pub(super) longest: Longest,
    /// When the loop last checked its sockets and timers.
    pub(super) last_look: Nanos,
    /// When the loop last read the clock: many times between two checks.
    pub(super) last_reading: Nanos,
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

impl Window {
    pub(super) fn new(clients: u32) -> Self {
        Self {
            start: Nanos::NEVER,
            end: Nanos::ZERO,
            length: Nanos::ZERO,
            turns_at: Nanos::NEVER,
            looks_at: Nanos::NEVER,
            before: Counters::default(),
            attempts_before: vec![0; clients as usize],
            longest: Longest::default(),
            last_look: Nanos::ZERO,
            last_reading: Nanos::ZERO,
        }
    }

    pub(super) fn expect(&mut self, start: Nanos, end: Nanos) {
        self.start = start;
        self.end = end;
        self.turn(start);
    }

    /// At `at` is the next thing to do, also for the steps of the commands.
    pub(super) fn turn(&mut self, at: Nanos) {
        (self.turns_at, self.looks_at) = (at, at);
    }

    pub(super) fn close(&mut self, end: Nanos) {
        self.turn(Nanos::NEVER);
        self.end = end;
        self.length = end.since(self.start);
    }

    /// When it opens; `NEVER` before that is known.
    pub(crate) fn start(&self) -> Nanos {
        self.start
    }

    /// When the window opens, has its next step, or closes.
    pub(crate) fn turns_at(&self) -> Nanos {
        self.turns_at
    }

    /// The length; zero until the window has closed.
    pub(crate) fn length(&self) -> Nanos {
        self.length
    }

    /// When it closes; `NEVER` in a warm-up until steady.
    pub(crate) fn end(&self) -> Nanos {
        self.end
    }

    pub(crate) fn last_look(&self) -> Nanos {
        self.last_look
    }

    /// Whether `due` lies within the window, which is open.
    #[inline]
    pub(super) fn was_due_within(&self, due: Nanos) -> bool {
        due >= self.start
    }

    /// Records how late the loop checks again, compared with `planned`, as far as that lies in the window.
    #[inline]
    pub(super) fn note_stall(&mut self, planned: Nanos, now: Nanos) {
        let stall = now.min(self.end).since(planned.max(self.start));
        self.longest.stall = self.longest.stall.max(stall);
    }

    /// Records what an acquire under way has tried before the window, because at its end it is counted in full.
    pub(super) fn tried_before(&mut self, index: u32, tried: Tried) {
        self.attempts_before[index as usize] = tried.attempts;
        self.before.attempts += u64::from(tried.attempts);
        self.before.refused_attempts += u64::from(tried.attempts.saturating_sub(1));
        self.before.no_quorum += u64::from(tried.no_quorum);
        self.before.conflicts += u64::from(tried.conflicts);
    }

    /// Subtracts what was tried before the window.
    ///
    /// An acquire that is still under way was not counted yet: then there is less to subtract.
    pub(super) fn leave_out_before(&self, counters: &mut Counters) {
        let Counters {
            attempts,
            refused_attempts,
            no_quorum,
            conflicts,
            ..
        } = counters;
        for (count, before) in [
            (attempts, self.before.attempts),
            (refused_attempts, self.before.refused_attempts),
            (no_quorum, self.before.no_quorum),
            (conflicts, self.before.conflicts),
        ] {
            *count = count.saturating_sub(before);
        }
    }

    fn leave_out_before_of_clients(&self, figures: &mut [ClientFigures]) {
        for (figures, &before) in figures.iter_mut().zip(&self.attempts_before) {
            figures.attempts -= u64::from(before);
        }
    }
}

impl Recorder {
    /// Sets when the window will be.
    pub(crate) fn expect_window(&mut self, start: Nanos, end: Nanos) {
        self.window.expect(start, end);
        self.control.set_window(start, end);
    }

    /// Opens the window, begins a step of its time line, or closes it: whatever was due by `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn turn<L: LockMachine>(&mut self, now: Nanos, clients: &mut Clients<L>, cpu: Nanos) {
        if !self.has_warmed_up(now) {
            return;
        }
        if !self.counting {
            self.open_window(clients, cpu);
        }
        let end = self.window.end;
        self.excuse_stalls(now);
        while self.timeline.next_step() <= now && self.timeline.next_step() < end {
            self.publish();
            self.timeline.push();
        }
        self.commands.reached(now.min(end), self.counters.commands);
        self.window.turns_at = self.timeline.next_step().min(end);
        self.window.looks_at = self.window.turns_at.min(self.commands.next_step());
        if now >= end {
            self.close_window(end, clients, cpu);
        }
    }

    fn open_window<L: LockMachine>(&mut self, clients: &Clients<L>, cpu: Nanos) {
        let start = self.window.start;
        self.control.enter(TrialPhase::Measuring, start);
        self.timeline.begin(start);
        self.commands.begin(start);
        self.counters.client_cpu_ns = cpu.0;
        self.counting = true;
        for (index, _, tried) in clients.acquiring() {
            self.window.tried_before(index, tried);
        }
        self.counters.nominal_hold_ns += clients.nominal_holds_beyond(start);
    }

    /// Ends the counting at `end`: the planned end, or earlier when the trial was stopped.
    pub(crate) fn close_window<L: LockMachine>(&mut self, end: Nanos, clients: &mut Clients<L>, cpu: Nanos) {
        // Arrivals that became due while the loop did not check are still within the window.
        clients.take_arrivals(Nanos(end.0.saturating_sub(1)), self);
        self.counters.client_cpu_ns = cpu.0 - self.counters.client_cpu_ns;
        self.commands.close(end, self.counters.commands);
        self.publish();
        self.count_unfinished(end, clients);
        self.window.leave_out_before(&mut self.counters);
        self.window.leave_out_before_of_clients(&mut self.clients.figures);
        self.counters.nominal_hold_ns -= clients.nominal_holds_beyond(end);
        self.counting = false;
        self.window.close(end);
    }

    /// Counts the clients that still wait when the window closes: the waiting time so far is a lower bound of their
    /// wait.
    pub(crate) fn count_unfinished<L: LockMachine>(&mut self, end: Nanos, clients: &Clients<L>) {
        for (index, asked, tried) in clients.acquiring() {
            self.counters.unfinished += 1;
            let attempts = self.attempts(index, tried);
            self.counters.refused_attempts += attempts.saturating_sub(1);
            self.clients.waited(index, end.since(asked.due));
            self.record(Phase::Response, Ended::Waiting, end.since(asked.due));
            if self.open_loop {
                self.record(Phase::Service, Ended::Waiting, end.since(asked.sent));
            }
        }
        for due in clients.queued() {
            self.counters.unfinished += 1;
            self.window.longest.queued = self.window.longest.queued.max(end.since(due));
            self.record(Phase::Response, Ended::Waiting, end.since(due));
        }
    }
}

#[cfg(test)]
impl Recorder {
    /// Opens the window at once.
    pub(crate) fn open(&mut self, start: Nanos, end: Nanos) {
        self.counting = true;
        self.window.expect(start, end);
        self.window.turn(Nanos::NEVER);
    }

    /// The window is still to come.
    pub(crate) fn expect_anew(&mut self, start: Nanos, end: Nanos) {
        self.counting = false;
        self.expect_window(start, end);
    }

    /// Closes the window and counts nothing of what is under way.
    pub(crate) fn close_at_once(&mut self, end: Nanos) {
        self.window.end = end;
        self.counting = false;
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn histograms(&mut self) -> &super::stats::Histograms {
        self.histograms.finish();
        &self.histograms
    }
}

#[cfg(test)]
mod tests;
