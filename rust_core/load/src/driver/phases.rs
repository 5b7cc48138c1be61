//! The phases of a trial on one thread: connect, warm up and measure, drain.

use locks::{LockMachine, Nanos};

use super::Driver;
use crate::LoadError;
use crate::clients::trial_params::Warmup;
use crate::clock::Clock;
use crate::control::{Control, TrialPhase};
use crate::recorder::judge::Judge;
use crate::recorder::{Share, Writes};
use crate::transport::Transport;

/// How long opening all connections may take; 10,000 take one second.
const CONNECT_WITHIN: Nanos = Nanos::from_secs(15);
/// How long the drain waits for replies that no client needs: a lock may settle before its final release is sent and
/// answered. Counted from the start of the drain, or from when the last delayed bytes came out.
const FINAL_REPLIES_WITHIN: Nanos = Nanos::from_millis(100);
/// How long a stopped trial may take to release its locks, counted in the same way.
const STOP_WITHIN: Nanos = Nanos::from_millis(100);

impl<L: LockMachine, T: Transport, C: Clock> Driver<L, T, C> {
    /// Runs this thread's part of the trial. An error stops the other threads too.
    pub(crate) fn run(mut self, control: &Control) -> Result<(Share, Judge), LoadError> {
        let ended = self.run_phases(control);
        self.recorder.reached(Nanos::NEVER);
        self.recorder.ends();
        if let Err(error) = ended {
            control.stop();
            return Err(error);
        }
        self.count_unanswered_writes();
        Ok(self.recorder.finish(self.faults.spans))
    }

    fn run_phases(&mut self, control: &Control) -> Result<(), LoadError> {
        self.connect(control)?;
        let Some(began) = control.pass_gate() else {
            return Ok(());
        };
        match self.params.warmup {
            Warmup::Fixed(length) => {
                let start = began.after(length);
                self.recorder.expect_window(start, start.after(self.params.duration));
            }
            Warmup::UntilSteady { .. } => self.recorder.warm_up(began, self.params.duration),
        }
        if self.params.warmup.longest() > Nanos::ZERO {
            control.enter(TrialPhase::Warmup, began);
        }
        let ended = self.work(control, began);
        if self.recorder.is_counting() {
            let stopped_at = self.clock.now().min(self.recorder.window().end());
            let cpu = self.clock.thread_cpu();
            self.recorder.close_window(stopped_at, &mut self.clients, cpu);
        }
        ended?;
        if self.params.dies && self.recorder.window().length() > Nanos::ZERO {
            return Ok(());
        }
        control.enter(TrialPhase::Draining, self.clock.now());
        self.drain(control)?;
        self.transport.leave();
        Ok(())
    }

    /// Opens all connections; each must have been open once before the trial begins.
    fn connect(&mut self, control: &Control) -> Result<(), LoadError> {
        let began = self.clock.now();
        while let Some(address) = self.transport.unopened() {
            if control.stopped() {
                return Ok(());
            }
            let now = self.clock.now();
            if now.since(began) >= CONNECT_WITHIN {
                let reason = format!(
                    "not all connections were open within {} s",
                    CONNECT_WITHIN.0 / 1_000_000_000
                );
                return Err(LoadError::Connect {
                    address,
                    reason,
                    refusal: None,
                });
            }
            self.round(now, self.transport.next_upkeep())?;
        }
        self.transport.all_opened();
        Ok(())
    }

    /// Lets the clients work from `began` to the end of the window, or until the trial is stopped.
    fn work(&mut self, control: &Control, began: Nanos) -> Result<(), LoadError> {
        self.answer(began);
        self.begin(began);
        loop {
            let now = self.read_clock();
            if now >= self.recorder.window().end() || control.stopped() {
                return Ok(());
            }
            self.round(now, self.next_wake())?;
        }
    }

    /// Drains: no client starts any more, and those under way finish within a time limit.
    fn drain(&mut self, control: &Control) -> Result<(), LoadError> {
        self.end_faults(self.clock.now())?;
        self.stop();
        let began = self.clock.now();
        loop {
            let now = self.clock.now();
            let quiet = now.since(began.max(self.transport.quiet_since()));
            let is_late = now.since(began) >= self.params.drain || (control.stopped() && quiet >= STOP_WITHIN);
            if self.clients.are_at_rest() {
                let has_open_calls = self.transport.has_open_calls();
                if !has_open_calls || quiet >= FINAL_REPLIES_WITHIN {
                    self.recorder.drained(0, has_open_calls);
                    return Ok(());
                }
            }
            if is_late {
                self.recorder.drained(self.clients.under_way(), true);
                return Ok(());
            }
            self.round(now, self.next_wake())?;
        }
    }

    /// Lets the clients work from now on.
    pub fn begin(&mut self, now: Nanos) {
        self.clients.begin(now);
    }

    /// Ends the work: nobody starts any more, who waits gives up, who holds releases.
    pub fn stop(&mut self) {
        let now = self.clock.now();
        self.transport.begin_drain();
        let undisturbed = self.recorder.is_undisturbed();
        let (clients, mut to) = self.split();
        clients.stop(now, undisturbed, &mut to);
    }

    /// When the next round has something to do, even if nothing arrives.
    pub fn next_wake(&self) -> Nanos {
        if self.has_work() {
            return Nanos::ZERO;
        }
        let turns_at = self.recorder.window().turns_at();
        let arrival = self.clients.next_arrival();
        self.next_timed()
            .min(turns_at)
            .min(arrival)
            .min(self.clients.next_stage())
            .min(self.next_fault())
            .min(self.transport.next_upkeep())
    }

    /// Whether, after a `stop`, no client has anything under way.
    pub fn is_at_rest(&mut self) -> bool {
        self.clients.are_at_rest()
    }

    /// At the end: a write that was sent and has no reply may have been carried out.
    pub fn count_unanswered_writes(&mut self) {
        self.clients.count_unanswered_writes(&mut self.recorder);
    }

    /// What locks whose release writes have written.
    pub fn written(&self) -> &Writes {
        self.recorder.written()
    }

    pub fn into_transport(self) -> T {
        self.transport
    }
}
