//! One thread of a trial: its clients, its connections, and the loop that serves them.
//!
//! A round: wait, fire the timers that are due, read each connection that has replies and let the clients handle them,
//! write to each connection once. `starts.rs` and `steps.rs` have the steps of a client, `io.rs` has input and output.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use check::ClientId;
use locks::{Actions, KeyList, Nanos};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::LoadError;
use crate::channels::{Confirmed, Message};
use crate::client::{Client, ClientFigures};
use crate::clock;
use crate::connection::{Caller, Connection};
use crate::control::{Control, TrialPhase};
use crate::dialect::{Encoder, Target};
use crate::error_replies::ErrorReplies;
use crate::judge::Judge;
use crate::poller::{Poller, Ready};
use crate::stats::{Counters, Histograms};
use crate::subscriptions::Subscriptions;
use crate::timeline::Timeline;
use crate::timers::Timers;
use crate::trial_params::TrialParams;
use crate::window::{Longest, Window};
use crate::workload::Arrivals;
use crate::writes::Writes;

/// The longest sleep, so that a stop is noticed in time.
const LONGEST_WAIT: Nanos = Nanos::from_millis(20);
/// How long opening all connections may take; 10,000 take one second.
const CONNECT_WITHIN: Nanos = Nanos::from_secs(15);
/// How long the drain waits for replies that no client needs: a lock may settle before its final release is sent and
/// answered. Counted from the start of the drain, or from when the last delayed bytes came out.
const FINAL_REPLIES_WITHIN: Nanos = Nanos::from_millis(100);
/// How long a stopped trial may take to release its locks, counted in the same way.
const STOP_WITHIN: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) index: usize,
    /// The core that the thread is bound to.
    pub(crate) core: Option<u32>,
    pub(crate) params: Arc<TrialParams>,
    pub(crate) control: Arc<Control>,
    pub(crate) judge: Judge,
    /// The number of its first client in the whole trial.
    pub(crate) first_client: u32,
    pub(crate) clients: Vec<Client>,
    pub(crate) figures: Vec<ClientFigures>,
    /// The keys that each client names; empty if each names only one.
    pub(crate) key_sets: Vec<KeyList>,
    /// The connections to server 0, then those to server 1, and so on; after them each client's own, or those for
    /// subscriptions, if there are any.
    pub(crate) connections: Vec<Connection>,
    pub(crate) per_server: u32,
    pub(crate) targets: Vec<Target>,
    pub(crate) encoders: Vec<Encoder>,
    pub(crate) poller: Poller,
    pub(crate) timers: Timers,
    /// When delayed bytes of each connection come out.
    pub(crate) delays: Timers,
    pub(crate) arrivals: Option<Arrivals>,
    /// Open loop: clients without work, and due times without a client.
    pub(crate) idle: VecDeque<u32>,
    pub(crate) queue: VecDeque<Nanos>,
    /// Clients that start in this round.
    pub(crate) starting: Vec<u32>,
    /// Calls that could not be sent; their clients are told in this round.
    pub(crate) unsendable: Vec<Caller>,
    /// Clients whose own connection, or subscription, closed; they are told in this round.
    pub(crate) disconnected: Vec<u32>,
    /// Clients whose lock closed the session of its own hold; until their release.
    pub(crate) hung_up: Vec<u32>,
    pub(crate) subscriptions: Subscriptions,
    /// Calls about a channel that this thread answers without the server, in this round.
    pub(crate) confirmed: Vec<Confirmed>,
    /// Messages that were read and not handed out yet.
    pub(crate) messages: Vec<Message>,
    pub(crate) dirty: Vec<u32>,
    /// Spare memory for `dirty`.
    pub(crate) kept: Vec<u32>,
    /// Since when commands in `dirty` wait for the next replies; `NEVER` when none do.
    pub(crate) held_back: Nanos,
    /// Calls without a reply, whether sent or still in a buffer.
    pub(crate) outstanding: usize,
    pub(crate) actions: Actions,
    pub(crate) scratch: Vec<u8>,
    pub(crate) ready: Vec<Ready>,
    /// When a connection next needs attention without any event on its socket.
    pub(crate) next_upkeep: Nanos,
    /// Whether clients may start.
    pub(crate) running: bool,
    /// Whether the window is open.
    pub(crate) counting: bool,
    /// Since when the thread has been connecting; a failing connection then ends the trial. `None` once all have been
    /// open.
    pub(crate) connecting: Option<Nanos>,
    /// The window is over: connections that clients close from now on stay closed.
    pub(crate) ending: bool,
    pub(crate) counters: Counters,
    pub(crate) histograms: Histograms,
    pub(crate) timeline: Timeline,
    pub(crate) error_replies: ErrorReplies,
    pub(crate) window: Window,
    pub(crate) writes: Writes,
    /// When an open connection was first found closed; `NEVER` if none was.
    pub(crate) first_cut: Nanos,
}

/// What one thread measured.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) counters: Counters,
    pub(crate) histograms: Histograms,
    pub(crate) timeline: Timeline,
    pub(crate) error_replies: ErrorReplies,
    pub(crate) writes: Writes,
    pub(crate) figures: Vec<ClientFigures>,
    pub(crate) longest: Longest,
    pub(crate) window_length: Nanos,
    pub(crate) first_cut: Nanos,
}

/// Binds the calling thread to `core`.
fn bind_to(core: u32) {
    let mut cores = CpuSet::new();
    cores.set(core as usize);
    // Fails only if the core was taken away since it was looked up; then any other core will do.
    let _ = sched_setaffinity(None, &cores);
}

impl Thread {
    /// Runs this thread's part of the trial. An error stops the other threads too.
    pub(crate) fn run(mut self) -> Result<(Share, Judge), LoadError> {
        clock::sharpen_timeouts();
        if let Some(core) = self.core {
            bind_to(core);
        }
        let ended = self.run_phases();
        self.judge.reached(Nanos::NEVER);
        if let Err(error) = ended {
            self.control.stop();
            return Err(error);
        }
        self.count_unanswered_writes();
        self.histograms.finish();
        let share = Share {
            counters: self.counters,
            histograms: self.histograms,
            timeline: self.timeline,
            error_replies: self.error_replies,
            writes: self.writes,
            figures: self.figures,
            longest: self.window.longest,
            window_length: self.window.length,
            first_cut: self.first_cut,
        };
        Ok((share, self.judge))
    }

    fn run_phases(&mut self) -> Result<(), LoadError> {
        self.connect()?;
        let Some(began) = self.control.pass_gate() else {
            return Ok(());
        };
        let start = began.after(self.params.warmup);
        let end = start.after(self.params.duration);
        self.expect_window(start, end);
        if start > began {
            self.control.enter(TrialPhase::Warmup, began);
        }
        let ended = self.work(began, end);
        if self.counting {
            let stopped_at = clock::now().min(end);
            self.close_window(stopped_at);
        }
        ended?;
        if self.params.dies && self.window.length > Nanos::ZERO {
            return Ok(());
        }
        self.control.enter(TrialPhase::Draining, clock::now());
        self.ending = true;
        self.drain()?;
        self.terminate_sessions();
        Ok(())
    }

    /// Opens all connections; each must have been open once before the trial begins.
    fn connect(&mut self) -> Result<(), LoadError> {
        let began = clock::now();
        self.connecting = Some(began);
        while let Some(waiting) = self.connections.iter().find(|connection| !connection.is_ready()) {
            if self.control.stopped() {
                return Ok(());
            }
            let now = clock::now();
            if now.since(began) >= CONNECT_WITHIN {
                let address = self.targets[usize::from(waiting.server)].address.to_string();
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
            self.round(now, self.next_upkeep)?;
        }
        self.connecting = None;
        self.begin_delays();
        Ok(())
    }

    /// Lets the clients work from `began` until `end`, or until the trial is stopped.
    fn work(&mut self, began: Nanos, end: Nanos) -> Result<(), LoadError> {
        self.running = true;
        self.begin(began);
        loop {
            let now = self.read_clock();
            if now >= end || self.control.stopped() {
                return Ok(());
            }
            let mut limit = self.window.turns_at.min(self.next_timed()).min(self.next_upkeep);
            if let Some(arrivals) = &self.arrivals {
                limit = limit.min(arrivals.next_due());
            }
            self.round(now, limit)?;
        }
    }

    /// Drains: no client starts any more, and those under way finish within a time limit.
    fn drain(&mut self) -> Result<(), LoadError> {
        self.running = false;
        self.stop_clients();
        let began = clock::now();
        loop {
            let now = clock::now();
            let quiet = self.quiet_for(began, now);
            let is_late = now.since(began) >= self.params.drain || (self.control.stopped() && quiet >= STOP_WITHIN);
            let under_way = self.clients.iter().filter(|client| !client.is_at_rest()).count();
            if under_way == 0 && (self.has_no_open_calls() || quiet >= FINAL_REPLIES_WITHIN) {
                self.counters.unsettled += u64::from(!self.has_no_open_calls());
                return Ok(());
            }
            if is_late {
                self.counters.unsettled += 1;
                self.counters.abandoned += under_way as u64;
                return Ok(());
            }
            self.round(now, self.next_timed().min(self.next_upkeep))?;
        }
    }

    /// One round of the loop, which waits at most until `limit`.
    pub(crate) fn round(&mut self, now: Nanos, limit: Nanos) -> Result<(), LoadError> {
        let is_waited_for = [
            !self.starting.is_empty(),
            !self.unsendable.is_empty() || !self.disconnected.is_empty() || !self.confirmed.is_empty(),
            self.has_unsent_commands(),
        ];
        let timeout = if self.params.spins() || is_waited_for.contains(&true) {
            Nanos::ZERO
        } else {
            limit.min(self.delays.next()).since(now).min(LONGEST_WAIT)
        };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        let planned = self.window.last_look.after(timeout);
        self.poller.wait(timeout, &mut ready).map_err(LoadError::Poll)?;
        let now = self.read_clock();
        self.note_stall(planned, now);
        self.window.last_look = now;
        self.judge.reached(now);
        self.add_due(now, &mut ready);
        // Timers before reads: a hold that has ended must not wait for a batch of replies.
        if !ready.is_empty() || now >= self.next_timed() {
            self.fire_timers(now);
        }
        self.take_arrivals(now);
        self.start_waiting(now);
        self.handle_closed_first(&mut ready)?;
        self.messages_first(&mut ready);
        for &event in &ready {
            self.on_ready(event)?;
        }
        self.ready = ready;
        if now >= self.next_upkeep {
            self.upkeep(now)?;
        }
        self.report_unsendable();
        self.flush_all(now)
    }

    /// The number in the whole trial of this thread's client `index`.
    pub(crate) const fn number(&self, index: u32) -> ClientId {
        self.first_client + index
    }

    /// Publishes this thread's progress.
    pub(crate) fn publish(&self) {
        let progress = &self.control.threads[self.index];
        let (step_grants, p99) = self.timeline.running();
        progress.grants.store(self.counters.grants, Ordering::Relaxed);
        progress.step_grants.store(step_grants, Ordering::Relaxed);
        progress.p99_ns.store(p99.0, Ordering::Relaxed);
        let errors = self.counters.errors + self.counters.unknown;
        progress.errors.store(errors, Ordering::Relaxed);
        progress.reconnects.store(self.counters.reconnects, Ordering::Relaxed);
    }
}
