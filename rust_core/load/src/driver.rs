//! The loop of a thread, round by round, over whatever clock and transport it is given.
//!
//! A round: wait, fire the timers that are due, read each connection that has replies and let the clients handle them,
//! write to each connection once. `incoming.rs` and `outgoing.rs` have the two directions, and take the stamps: a grant
//! after the read that brought it, a release before the write that sends it. `phases.rs` has the phases of a trial.

mod faults;
mod incoming;
mod outgoing;
mod phases;
mod saturation;

use std::sync::Arc;

use locks::{Event, LockMachine, Nanos};

use crate::LoadError;
use crate::clients::trial_params::TrialParams;
use crate::clients::{Clients, Ports};
use crate::clock::Clock;
use crate::faults::Schedule;
use crate::recorder::Recorder;
use crate::transport::{Broken, Caller, Ready, Transport};
use saturation::Saturation;

/// The longest sleep, so that a stop is noticed in time.
const LONGEST_WAIT: Nanos = Nanos::from_millis(20);

/// One thread of a trial: its clients, what carries their commands, and what records them.
#[derive(Debug)]
pub struct Driver<L, T, C> {
    pub(crate) clients: Clients<L>,
    pub(crate) transport: T,
    pub(crate) recorder: Recorder,
    pub(crate) clock: C,
    pub(crate) params: Arc<TrialParams>,
    saturation: Saturation,
    faults: Schedule,
    // Memory that is used again in each round.
    ready: Vec<Ready>,
    releasing: Vec<u32>,
    lost: Vec<Caller>,
    broken: Vec<(u32, Broken)>,
}

impl<L: LockMachine, T: Transport, C: Clock> Driver<L, T, C> {
    pub(crate) fn new(
        params: Arc<TrialParams>,
        clients: Clients<L>,
        transport: T,
        recorder: Recorder,
        clock: C,
    ) -> Self {
        Self {
            saturation: Saturation::new(&params),
            faults: Schedule::new(&params.faults, clients.first(), clients.count() as u32),
            clients,
            transport,
            recorder,
            clock,
            params,
            ready: Vec::with_capacity(256),
            releasing: Vec::new(),
            lost: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// One round, which waits at most until `limit`.
    pub fn round(&mut self, now: Nanos, limit: Nanos) -> Result<(), LoadError> {
        let timeout = if self.params.spins() || self.has_work() {
            Nanos::ZERO
        } else {
            limit.since(now).min(LONGEST_WAIT)
        };
        let planned = self.recorder.window().last_look().after(timeout);
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.transport.wait(timeout, &mut ready).map_err(LoadError::Poll)?;
        let now = self.read_clock();
        self.recorder.looks(planned, now);
        self.recorder.reached(now);
        if self.recorder.is_asked() {
            self.answer(now);
        }
        if now >= self.next_fault() {
            self.turn_faults(now)?;
        }
        // Timers before reads: a hold that has ended must not wait for a batch of replies.
        if !ready.is_empty() || now >= self.next_timed() {
            self.fire_timers(now);
        }
        self.clients.take_arrivals(now, &mut self.recorder);
        if now >= self.clients.next_stage() {
            self.clients.follow_stages(now);
        }
        self.start_waiting(now);
        self.serve_closed_first(&mut ready)?;
        for &event in &ready {
            self.serve(event, now)?;
        }
        self.ready = ready;
        if now >= self.transport.next_upkeep() {
            self.upkeep(now)?;
        }
        self.tell_losses();
        self.write_all(now)
    }

    /// Answers what was asked of the running trial.
    #[cold]
    pub(crate) fn answer(&mut self, now: Nanos) {
        let load = self.recorder.answer(self.clock.thread_cpu());
        self.clients.set_load(load, now);
    }

    /// Whether something is left to do without waiting for anything.
    fn has_work(&self) -> bool {
        let unwritten = self.transport.has_unwritten() && !self.saturation.holds_back();
        self.clients.has_starting() || self.transport.has_news() || unwritten
    }

    /// The current time, after the window was opened or closed if it was time.
    #[inline]
    pub(crate) fn read_clock(&mut self) -> Nanos {
        let now = self.clock.now();
        if self.recorder.has_read(now) {
            self.recorder.turn(now, &mut self.clients, self.clock.thread_cpu());
        }
        now
    }

    /// The clients, and where what they do goes.
    #[inline]
    pub(crate) fn split(&mut self) -> (&mut Clients<L>, Ports<'_, T>) {
        let to = Ports {
            transport: &mut self.transport,
            recorder: &mut self.recorder,
        };
        (&mut self.clients, to)
    }

    #[inline]
    pub(crate) fn dispatch(&mut self, client: u32, now: Nanos, event: Event) {
        let (clients, mut to) = self.split();
        clients.dispatch(client, now, event, &mut to);
    }

    #[inline]
    pub(crate) fn fire_timers(&mut self, now: Nanos) {
        let (clients, mut to) = self.split();
        clients.fire_timers(now, &mut to);
    }

    #[inline]
    fn start_waiting(&mut self, now: Nanos) {
        let (clients, mut to) = self.split();
        clients.start_waiting(now, &mut to);
    }

    /// When the loop must wake up for a timer, or for commands that were held back.
    #[inline]
    fn next_timed(&self) -> Nanos {
        let slack = self
            .saturation
            .slack(self.transport.outstanding(), self.clients.working());
        self.saturation.next_timed(self.clients.next_timer(), slack)
    }
}

#[cfg(test)]
mod closing;
