//! What a thread records of its clients: counters, histograms, a time line, errors; and what it tells the judge.
//!
//! Everything here is told, stamped by the loop. `window.rs` says when counting begins and ends, `judge.rs` connects
//! the threads with the checker.

mod buckets;
pub(crate) mod commands;
mod error_replies;
pub(crate) mod judge;
pub(crate) mod nodes;
pub(crate) mod per_client;
pub(crate) mod periods;
pub(crate) mod recording;
pub(crate) mod stats;
mod steadiness;
pub(crate) mod timeline;
mod traffic;
pub(crate) mod warming;
pub(crate) mod window;
mod writes;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use check::{ClientId, Event as Judged};
use locks::{Key, Nanos};

use crate::clients::trial_params::TrialParams;
use crate::clients::{Asked, Tried};
use crate::control::Control;
use crate::faults::FaultSpan;
use crate::live::Load;
use commands::CommandSteps;
pub(crate) use error_replies::ErrorReplies;
pub use error_replies::{ErrorPhase, ErrorReply};
use judge::Judge;
use nodes::{NodeFigures, Nodes};
use per_client::PerClient;
use periods::{FaultFigures, Periods};
use stats::{Counters, Histograms};
pub(crate) use stats::{Ended, Phase};
use timeline::Timeline;
use warming::WarmUp;
use window::{Longest, Window};
pub use writes::Writes;

/// Longer than any sleep of the loop. A key counts as stalled only after at least a reply timeout, which is 1 s.
pub(crate) const LONG_STALL: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
pub(crate) struct Recorder {
    control: Arc<Control>,
    thread: usize,
    /// The number of the thread's first client in the whole trial.
    first_client: ClientId,
    open_loop: bool,
    judge: Judge,
    /// Whether the window is open.
    counting: bool,
    counters: Counters,
    histograms: Histograms,
    timeline: Timeline,
    commands: CommandSteps,
    nodes: Option<Nodes>,
    errors: ErrorReplies,
    window: Window,
    /// Before the window, if its begin depends on what is measured until then.
    warm_up: Option<WarmUp>,
    writes: Writes,
    clients: PerClient,
    /// In a trial with faults.
    periods: Option<Box<Periods>>,
    /// When an open connection was first found closed; `NEVER` if none was.
    first_cut: Nanos,
    /// The last question to a running trial that was answered: see `live`.
    answered: u64,
}

/// What one thread measured.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) counters: Counters,
    pub(crate) histograms: Histograms,
    pub(crate) timeline: Timeline,
    pub(crate) commands: CommandSteps,
    pub(crate) nodes: Vec<NodeFigures>,
    pub(crate) error_replies: ErrorReplies,
    pub(crate) writes: Writes,
    pub(crate) clients: PerClient,
    pub(crate) faults: FaultFigures,
    pub(crate) longest: Longest,
    pub(crate) window_length: Nanos,
    pub(crate) first_cut: Nanos,
}

impl Recorder {
    /// For the thread with this index, whose `clients` clients begin at `first_client`.
    pub(crate) fn new(
        params: &TrialParams,
        control: Arc<Control>,
        thread: usize,
        (first_client, clients): (ClientId, u32),
        judge: Judge,
    ) -> Self {
        Self {
            control,
            thread,
            first_client,
            open_loop: params.is_open_loop,
            judge,
            counting: false,
            counters: Counters::default(),
            histograms: Histograms::new(),
            timeline: Timeline::new(params.duration.max(params.warmup.longest())),
            commands: CommandSteps::new(params.duration),
            nodes: Nodes::of(params.voting_servers, clients),
            errors: ErrorReplies::default(),
            window: Window::new(clients),
            warm_up: None,
            writes: Writes::to(params.written_keys, params.guard.is_some()),
            clients: PerClient::of(clients),
            periods: Periods::of(&params.fault_periods),
            first_cut: Nanos::NEVER,
            answered: 0,
        }
    }

    /// What was measured, and the judge, once nothing follows. `spans` says when each planned fault was carried out.
    pub(crate) fn finish(mut self, spans: Vec<FaultSpan>) -> (Share, Judge) {
        self.histograms.finish();
        let window = self.window.length;
        let periods = self.periods.map(|periods| periods.finish(window, spans));
        let share = Share {
            counters: self.counters,
            histograms: self.histograms,
            timeline: self.timeline,
            commands: self.commands,
            nodes: self.nodes.map(Nodes::finish).unwrap_or_default(),
            error_replies: self.errors,
            writes: self.writes,
            clients: self.clients,
            faults: periods.unwrap_or_default(),
            longest: self.window.longest,
            window_length: window,
            first_cut: self.first_cut,
        };
        (share, self.judge)
    }

    /// This thread answers no further question.
    pub(crate) fn ends(&self) {
        self.control.live.ended(self.thread);
    }

    // The judge.

    #[inline]
    pub(crate) fn judge(&mut self, at: Nanos, event: Judged) {
        self.judge.record(at, event);
    }

    /// Promises that no event before `at` follows; after `NEVER`, none at all.
    #[inline]
    pub(crate) fn reached(&self, at: Nanos) {
        self.judge.reached(at);
    }

    pub(crate) fn into_judge(self) -> Judge {
        self.judge
    }

    // The clock and the window.

    /// To be called with every reading of the clock before anything is stamped with it. Reports a standstill to the
    /// judge: it may lie between a read from a socket and the stamp of what was read. Returns whether the window has to
    /// turn first.
    #[inline]
    pub(crate) fn has_read(&mut self, now: Nanos) -> bool {
        if now.since(self.window.last_reading) > LONG_STALL {
            let client = self.first_client;
            self.judge.record(now, Judged::DriverStalled { client });
        }
        self.window.last_reading = now;
        now >= self.window.looks_at
    }

    #[inline]
    pub(crate) fn is_counting(&self) -> bool {
        self.counting
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// The loop looks at its sockets and timers; it had planned to do so at `planned`.
    #[inline]
    pub(crate) fn looks(&mut self, planned: Nanos, now: Nanos) {
        self.window.note_stall(planned, now);
        self.window.last_look = now;
    }

    /// Whether somebody has asked something of the running trial.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.control.live.asked() != self.answered
    }

    /// Hands over what was counted, if that is asked for, and returns how much load is asked for.
    pub(crate) fn answer(&mut self, cpu: Nanos) -> Load {
        self.answered = self.control.live.asked();
        let mut counters = self.counters;
        if self.counting {
            self.window.leave_out_before(&mut counters);
            counters.client_cpu_ns = cpu.0.saturating_sub(counters.client_cpu_ns);
        }
        // What lies beyond the end of the window is left out at the end.
        counters.nominal_hold_ns = 0;
        let live = &self.control.live;
        if let Some(found) = self.judge.found() {
            live.found(found);
        }
        live.answer(self.thread, self.answered, &counters, &mut self.histograms);
        live.load()
    }

    // What clients do.

    /// Counts the attempts of an acquire that has ended, with any outcome, and returns them.
    #[inline]
    pub(crate) fn attempts(&mut self, index: u32, tried: Tried) -> u64 {
        let attempts = u64::from(tried.attempts);
        if self.counting {
            self.counters.no_quorum += u64::from(tried.no_quorum);
            self.counters.conflicts += u64::from(tried.conflicts);
            self.counters.attempts += attempts;
            self.clients.figures[index as usize].attempts += attempts;
        }
        attempts
    }

    /// Counts a grant in the window.
    #[inline]
    pub(crate) fn grant(&mut self, index: u32, asked: Asked, now: Nanos, hold: Nanos, attempts: u64) {
        let (response, service) = (now.since(asked.due), now.since(asked.sent));
        self.counters.grants += 1;
        self.counters.refused_attempts += attempts.saturating_sub(1);
        self.counters.nominal_hold_ns += hold.0;
        let was_due_within = self.window.was_due_within(asked.due);
        if was_due_within {
            self.record(Phase::Response, Ended::Granted, response);
            if self.open_loop {
                self.record(Phase::Service, Ended::Granted, service);
            }
        }
        self.timeline.grant(response);
        if let Some(periods) = &mut self.periods {
            let open = now.since(self.window.start);
            periods.granted(open, was_due_within.then_some(response));
        }
        self.clients.grant(index, response, was_due_within);
    }

    /// Counts an acquire that ended without a grant, if the window is open.
    pub(crate) fn ungranted(&mut self, index: u32, asked: Asked, now: Nanos, ended: Ended, attempts: u64) {
        if !self.counting {
            return;
        }
        let (response, service) = (now.since(asked.due), now.since(asked.sent));
        if self.window.was_due_within(asked.due) {
            self.record(Phase::Response, ended, response);
            if self.open_loop {
                self.record(Phase::Service, ended, service);
            }
        }
        match ended {
            Ended::Refused | Ended::Timeout => {
                self.counters.refused_attempts += attempts;
                self.counters.refused += u64::from(ended == Ended::Refused);
                self.counters.timeouts += u64::from(ended == Ended::Timeout);
                self.timeline.refusal();
            }
            Ended::Error | Ended::Unknown => {
                self.counters.refused_attempts += attempts.saturating_sub(1);
                self.counters.errors += u64::from(ended == Ended::Error);
                self.counters.unknown += u64::from(ended == Ended::Unknown);
                self.timeline.error();
                if let Some(periods) = &mut self.periods {
                    periods.failed(now.since(self.window.start));
                }
            }
            Ended::Lost => {
                self.counters.refused_attempts += attempts;
                self.counters.lost += 1;
            }
            Ended::Granted | Ended::Waiting => {
                unreachable!("{ended:?} is counted elsewhere")
            }
        }
        self.clients.waited(index, response);
        self.clients.ungranted(index, ended);
    }

    /// Records how long a step took, in the window or, for a grant of the window, after it.
    #[inline]
    pub(crate) fn record(&mut self, phase: Phase, ended: Ended, length: Nanos) {
        self.histograms.record(phase, ended, length);
    }

    /// A timer of a hold, a pause or a retry fired so late. In an open loop the lag is that of arrivals only.
    #[inline]
    pub(crate) fn timer_fired(&mut self, late: Nanos) {
        if self.counting && !self.open_loop {
            self.record(Phase::SendDelay, Ended::Granted, late);
        }
    }

    /// Counted in the whole trial.
    #[inline]
    pub(crate) fn granted(&mut self) {
        self.counters.all_grants += 1;
    }

    /// A request ended so that a lock may still be taken; counted in the whole trial.
    pub(crate) fn in_doubt(&mut self) {
        self.counters.unsettled += 1;
    }

    // Of grants of the window, whenever it happens.

    pub(crate) fn lapsed(&mut self) {
        self.counters.lapsed += 1;
    }

    pub(crate) fn lost(&mut self) {
        self.counters.lost += 1;
    }

    pub(crate) fn conflicts(&mut self, conflicts: u32) {
        self.counters.conflicts += u64::from(conflicts);
    }

    pub(crate) fn conflicted(&mut self) {
        self.counters.conflicted_grants += 1;
    }

    pub(crate) fn renewed(&mut self) {
        self.counters.renewals += u64::from(self.counting);
    }

    /// An arrival was noticed.
    pub(crate) fn arrived(&mut self, due: Nanos, now: Nanos, dropped: bool) {
        if self.counting && self.window.was_due_within(due) {
            self.counters.arrivals += 1;
            self.counters.drops += u64::from(dropped);
            self.record(Phase::SendDelay, Ended::Granted, now.since(due));
        }
    }

    /// A client has taken up work that was due then.
    pub(crate) fn queued(&mut self, due: Nanos, now: Nanos) {
        if self.counting && self.window.was_due_within(due) {
            self.record(Phase::Queue, Ended::Granted, now.since(due));
        }
    }

    // For the loop.

    /// Prefetches the records for the next event of a client; `judged` names it to the judge.
    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    #[inline(always)]
    pub(crate) fn touch(&self, index: u32, judged: Option<(ClientId, Key)>) {
        std::hint::black_box(self.clients.figures[index as usize].grants);
        if let Some((client, key)) = judged {
            self.judge.touch(client, key);
        }
    }

    #[inline]
    pub(crate) fn touch_judge(&self, client: ClientId, key: Key) {
        self.judge.touch(client, key);
    }

    /// Publishes this thread's progress.
    fn publish(&self) {
        let progress = &self.control.threads[self.thread];
        let (grants_per_s, p99) = self.timeline.running();
        progress.grants.store(self.counters.grants, Ordering::Relaxed);
        progress.grants_per_s.store(grants_per_s, Ordering::Relaxed);
        progress.p99_ns.store(p99.0, Ordering::Relaxed);
        let errors = self.counters.errors + self.counters.unknown;
        progress.errors.store(errors, Ordering::Relaxed);
        progress.reconnects.store(self.counters.reconnects, Ordering::Relaxed);
    }
}
